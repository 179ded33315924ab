import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  aggregateLane,
  type ReturnTask,
  releaseSummary,
} from '../../../../shared/benchmarks/return/aggregate.ts';
import type { AnswerRow, ReviewCacheRow } from '../../../../shared/benchmarks/return/release-format.ts';
import { groupsCsv } from '../../../../shared/benchmarks/return/report-tables.ts';
import { reviewIdentity } from '../../../../shared/benchmarks/return/review-identity.ts';
import {
  byRequestId,
  type ScoredRecord,
  scoringSummary,
  toScoredRecord,
} from '../../../../shared/benchmarks/return/scored-record.ts';

const release = '../shared/reference/return-release';
const examples = `${release}/examples`;

const text = (path: string): string => readFileSync(path, 'utf8');
const json = <Value>(path: string): Value => JSON.parse(text(path)) as Value;
const jsonl = <Row>(path: string): Row[] =>
  text(path)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);

/** Equal values, and members in the same order. */
const expectSame = (actual: unknown, expected: unknown) => {
  expect(actual).toEqual(expected);
  expect(JSON.stringify(actual)).toBe(JSON.stringify(expected));
};

interface Prediction {
  request_id: string;
  status: 'ok';
  raw_text: string;
}

const identityOf = (answer: AnswerRow, raw: string): string =>
  reviewIdentity({ ...answer, scoringQuestion: answer.scoring_question, raw });

const scored = (run: string): ScoredRecord[] => {
  const predictions = new Map(
    jsonl<Prediction>(`${examples}/${run}/predictions.jsonl`).map((row) => [row.request_id, row]),
  );
  const verdicts = new Map(
    jsonl<ReviewCacheRow>(`${examples}/${run}/review_cache.jsonl`).map((row) => [row.identity, row.judgment]),
  );
  return jsonl<AnswerRow>(`${release}/data/tasks/answers.jsonl`)
    .filter((answer) => predictions.has(answer.request_id))
    .map((answer) => {
      const { raw_text: rawText } = predictions.get(answer.request_id)!;
      const verdict = verdicts.get(identityOf(answer, rawText)) ?? null;
      return toScoredRecord(answer, { status: 'ok', rawText }, verdict);
    })
    .sort(byRequestId);
};

interface Contract {
  config: { model: string; modalities: string[] };
  task_ids: string[];
}

const report = (run: string) => {
  const { config, task_ids } = json<Contract>(`${examples}/${run}/run_contract.reduced.json`);
  const records = new Map(scored(run).map((record) => [record.request_id, record]));
  const all = new Map(
    jsonl<ReturnTask>(`${release}/data/tasks/tasks.jsonl`).map((row) => [row.task_id, row]),
  );
  const tasks = task_ids
    .map((id) => all.get(id)!)
    .filter((task) => config.modalities.includes(task.required_modality));
  const lane = aggregateLane(tasks, ['openqa', 'mcq'], (id) => records.get(id));
  return { lane, summary: releaseSummary(config.model, lane) };
};

describe.runIf(existsSync(examples))('the recorded runs of the release', () => {
  const runs = [
    'current_validation/qwen3_vl',
    'current_validation/qwen38_api',
    'current_validation/stepaudio_api',
    'recorded_outputs/qwen38_api',
  ];
  const having = (file: string) => runs.filter((run) => existsSync(`${examples}/${run}/${file}`));

  test.each(runs)('%s: scored records, row by row', (run) => {
    const expected = jsonl<ScoredRecord>(`${examples}/${run}/scoring/scored_records.jsonl`);

    expectSame(scored(run), expected);
  });

  test.each(having('scoring/summary.json'))('%s: scoring summary', (run) => {
    expectSame(scoringSummary(scored(run)), json(`${examples}/${run}/scoring/summary.json`));
  });

  test.each(runs)('%s: every review identity comes out of a scored record', (run) => {
    const identities = new Set(
      jsonl<ScoredRecord>(`${examples}/${run}/scoring/scored_records.jsonl`).map((record) =>
        identityOf(record as AnswerRow, record.raw_text!),
      ),
    );

    for (const { identity } of jsonl<ReviewCacheRow>(`${examples}/${run}/review_cache.jsonl`))
      expect(identities).toContain(identity);
  });

  test.each(runs)('%s: paired items and operation pairs', (run) => {
    const { lane } = report(run);

    const folder = `${examples}/${run}/report`;
    const valid = jsonl<{ task_id: string }>(`${folder}/paired_items.jsonl`);
    expectSame(lane.pairedItems, valid);
    expectSame(lane.operationPairs, jsonl(`${folder}/operation_pairs.jsonl`));
  });

  test.each(having('report/groups.csv'))('%s: groups, byte by byte', (run) => {
    const { lane } = report(run);

    expect([...groupsCsv(lane.groups)].join('')).toBe(text(`${examples}/${run}/report/groups.csv`));
  });

  test.each(having('report/summary.json'))('%s: summary', (run) => {
    expectSame(report(run).summary, json(`${examples}/${run}/report/summary.json`));
  });
});
