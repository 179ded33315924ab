import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadScenario } from '../../mock/scenario.ts';
import { type MockProvider, startMockProvider } from '../../mock/server.ts';
import { temporaryFolder, turnsweep } from '../support/command-line.ts';

const example = path.join(import.meta.dirname, '../../examples/small-voxmem');
/** Written by hand from the replies; nothing of it was made by the program. */
const expected = JSON.parse(readFileSync(path.join(example, 'expected.json'), 'utf8'));
const lengths = ['8K', '16K', '32K', '64K'] as const;

let mock: MockProvider;
beforeAll(async () => {
  mock = await startMockProvider({ scenario: loadScenario(path.join(example, 'scenario.json')) });
});
afterAll(() => mock.close());

const rowsOf = (out: string, file: string): Record<string, string>[] =>
  parse(readFileSync(path.join(out, 'report', file), 'utf8'), { columns: true });

const statusesOf = (out: string, lane: string): Record<string, string[]> => {
  const statuses: Record<string, string[]> = {};
  for (const line of readFileSync(path.join(out, 'scores', `${lane}.jsonl`), 'utf8')
    .trim()
    .split('\n')) {
    const { questionId, contextLength, status } = JSON.parse(line);
    statuses[questionId] ??= [];
    statuses[questionId][lengths.indexOf(contextLength.toUpperCase())] = status;
  }
  return statuses;
};

/** Correct and counted, by length, as `expected.json` has them. */
const countsOf = (rows: Record<string, string>[], lane: string) =>
  Object.fromEntries(
    rows
      .filter((row) => row.lane === lane)
      .map((row) => [
        row.length!.toUpperCase(),
        Object.fromEntries(
          ([['answerable'], ['refusal', 'answer_refusal'], ['overall']] as const).map(
            ([name, column = name]) => [name, [Number(row[`${column}_correct`]), Number(row[`${column}_n`])]],
          ),
        ),
      ]),
  );

describe('a sweep of small-voxmem', () => {
  it('comes to what was counted by hand, item by item and in the tables', async () => {
    const folder = temporaryFolder();
    const out = path.join(folder, 'out');

    const { code, stderr } = await turnsweep(['run', path.join(example, 'sweep.yaml'), '--out', out], {
      env: { MOCK_BASE_URL: mock.url, TURNSWEEP_CACHE: path.join(folder, 'cache') },
    });

    // Three views came to nothing: one empty, one stopped in the middle, one turned away.
    expect(code, stderr).toBe(2);
    const always = Object.fromEntries(
      Object.keys(expected.items['persona-listener']).map((id) => {
        const isRefused = ['q_00003', 'q_00007', 'q_00011', 'q_00015'].includes(id);
        return [id, lengths.map(() => (isRefused ? 'correct' : 'incorrect'))];
      }),
    );
    expect(statusesOf(out, 'persona-listener')).toEqual(expected.items['persona-listener']);
    expect(statusesOf(out, 'persona-wordbound')).toEqual(expected.items['persona-wordbound']);
    expect(statusesOf(out, 'always-abstains')).toEqual(always);

    const models = rowsOf(out, 'models.csv');
    expect(countsOf(models, 'persona-listener')).toEqual(
      expected.correctOfQuestionsThatCountAtEveryLength['persona-listener'],
    );
    expect(countsOf(models, 'persona-wordbound')).toEqual(expected.correctOf['persona-wordbound']);
    expect(countsOf(models, 'always-abstains')).toEqual(expected.correctOf['always-abstains']);

    // Of 10 answerable questions that count at both lengths, 10 are right at 8K and 2 at 64K; of 11, 3 and 2.
    const retention = rowsOf(out, 'retention.csv')
      .filter(({ group, scope }) => group === 'all' && scope === 'answerable')
      .map((row) => [row.lane, Number(row.retention)]);
    expect(retention.slice(0, 2)).toEqual([
      ['persona-listener', 0.2],
      ['persona-wordbound', expect.closeTo(2 / 3, 9)],
    ]);

    // Replies are found by all that user turns hold: timestamps and clips, by voxmem-protocol §3, and nothing else.
    const asked = Object.keys(mock.stats().requestsByFingerprint).filter((key) => key.startsWith('persona-'));
    expect(asked.length).toBe(120);
    expect(mock.stats().malformed).toBe(0);
  });
});
