import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { paperComposition } from '../../../bench/paper/composition.ts';
import { cellKey, expectedCounts, ladderKey } from '../../../bench/paper/expected.ts';
import { judgeItem } from '../../../bench/paper/judge.ts';
import { outcomeAt, scriptLane } from '../../../bench/paper/outcomes.ts';
import { buildSplit, type Interface } from '../../../bench/paper/release.ts';
import { readReference, referenceFolder, targetsOf } from '../../../bench/paper/targets.ts';
import { wordReply } from '../../../bench/paper/wording.ts';
import type { TaskRow } from '../../../shared/benchmarks/return/release-format.ts';
import { scoreByRule } from '../../../shared/benchmarks/return/score-reply.ts';

const seed = 53126;
const tasks: TaskRow[] = [];
const split = buildSplit(paperComposition, seed, 1, (rows) => tasks.push(...rows.tasks));

const countBy = (keyOf: (task: TaskRow) => string): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const task of tasks) counts[keyOf(task)] = (counts[keyOf(task)] ?? 0) + 1;
  return counts;
};

test('the generated Test split has the composition of the paper', () => {
  expect(tasks).toHaveLength(5_000);
  expect(new Set(tasks.map((task) => task.pair_id)).size).toBe(2_500);
  expect(new Set(tasks.map((task) => task.source_root_id)).size).toBe(1_875);
  const each = { preserve: 625, revise: 625, retrieve: 625, rebind: 625 };
  expect(countBy((task) => `${task.operation} ${task.history_horizon}`)).toEqual(
    Object.fromEntries(
      ['short', 'long'].flatMap((horizon) =>
        Object.entries(each).map(([operation, n]) => [`${operation} ${horizon}`, n]),
      ),
    ),
  );
  expect(countBy((task) => `${task.history_side} ${task.history_horizon} ${task.required_modality}`)).toEqual(
    {
      'task short V': 624,
      'task short A': 626,
      'task long V': 624,
      'task long A': 626,
      'evidence short V': 626,
      'evidence short A': 624,
      'evidence long V': 626,
      'evidence long A': 624,
    },
  );
});

test('the same seed gives the same split, another seed another one', () => {
  const keys = (of: number) => buildSplit(paperComposition, of, 0).requests.map(({ key }) => key);

  expect(keys(seed)).toEqual(split.requests.map(({ key }) => key));
  expect(keys(seed + 1)).not.toEqual(keys(seed));
});

const answerOf = (
  name: Interface,
  { options, gold, aliases }: (typeof split.requests)[number]['question'],
) =>
  name === 'mcq'
    ? { gold: 'ABCD'[gold]!, aliases: ['ABCD'[gold]!], choices: options }
    : { gold: aliases[0]!, aliases, choices: [] };

test('every wording comes out as it has to, by rule or by a judge that sees nothing else', () => {
  const seen = { rule: 0, equivalent: 0, incorrect: 0, uncertain: 0 };

  for (const facts of split.requests) {
    if (facts.condition === 'AUX') continue;
    for (const outcome of ['correct', 'wrong'] as const) {
      const raw = wordReply(facts, outcome, 7);
      const answer = answerOf(facts.interface, facts.question);
      const { ruleCorrect } = scoreByRule({ ...answer, raw, interface: facts.interface });
      const { verdict } = judgeItem({
        ...answer,
        id: 'item-000000',
        answer_type: facts.interface,
        options: answer.choices,
        candidate: raw,
      });
      if (ruleCorrect) seen.rule += 1;
      else seen[verdict] += 1;
      const isRight = ruleCorrect || verdict === 'equivalent';
      expect(isRight, `${outcome}: ${JSON.stringify(raw)} for ${JSON.stringify(facts.question)}`).toBe(
        outcome === 'correct',
      );
    }
  }

  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(100);
});

describe.runIf(existsSync(referenceFolder))("the scripts of the paper's lanes", () => {
  const reference = existsSync(referenceFolder)
    ? readReference(referenceFolder)
    : { cells: [], ladders: [], leaderboard: [] };
  const scripts = targetsOf(reference).map((targets) => scriptLane(targets, split, seed));
  const expected = expectedCounts(split, scripts);

  test('95,000 views, 94,984 of them valid', () => {
    expect([expected.views, expected.valid]).toEqual([95_000, 94_984]);
    // 6 lanes of 29,375 requests, 4 of those on V and 3 of those on A:
    // V: 312·10 + 312·22 + 313·15 = 14,679; A: 313·10 + 313·22 + 312·15 = 14,696.
    expect([expected.requests, expected.requestsAlone]).toEqual([
      6 * 29_375 + 4 * 14_679 + 3 * 14_696,
      427_500,
    ]);
  });

  test('every cell and every ladder of the paper', () => {
    const cells = reference.cells.map((row): [string, number[]] => [
      cellKey(row.model!, row.interface as Interface, row.horizon as 'short', row.operation!),
      [Number(row.n), Number(row.single_correct), Number(row.multi_correct)],
    ]);
    const ladders = reference.ladders.map((row): [string, number[]] => {
      const n = Number(row.n);
      const count = (name: string, of: number) => Math.round((Number(row[name]) * of) / 100);
      return [
        ladderKey(row.role as 'task', row.model!, row.interface as Interface),
        [n, count('single', 2 * n), count('reference', n), count('conflict', n)],
      ];
    });

    expect(cells).toHaveLength(208);
    expect(expected.cells).toEqual(new Map(cells));
    expect(expected.ladders).toEqual(new Map(ladders));
  });

  test('a lane is asked nothing beyond its channels', () => {
    for (const script of scripts) {
      const foreign = split.requests.filter(
        ({ modality, index }) =>
          !script.targets.modalities.includes(modality) && outcomeAt(script, index) !== 'not-asked',
      );
      expect(foreign).toEqual([]);
    }
  });
});
