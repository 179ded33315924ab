import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadScenario } from '../../mock/scenario.ts';
import { type MockProvider, startMockProvider } from '../../mock/server.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';

const example = path.join(import.meta.dirname, '../../examples/small-voxmem');

interface Sweep {
  benchmark: Record<string, unknown>;
  models: { id: string; model: string; settings?: Record<string, unknown> }[];
  judge?: Record<string, unknown>;
}

let mock: MockProvider;
beforeAll(async () => {
  const scenario = loadScenario(path.join(example, 'scenario.json'));
  // A second judge, who is content with nothing.
  scenario.models['strict-judge'] = {
    ...scenario.models['simulated-judge']!,
    reply: { text: '{"verdict": "incorrect"}' },
    faults: [],
  };
  // Whatever it is asked: a folded prompt makes other requests of those that the scripts know.
  scenario.models['persona-any'] = {
    ...scenario.models['persona-wordbound']!,
    reply: { text: 'Blue.' },
  };
  mock = await startMockProvider({ scenario });
});
afterAll(() => mock.close());

const workplace = () => {
  const folder = temporaryFolder();
  const out = path.join(folder, 'out');
  const written: Sweep = parse(readFileSync(path.join(example, 'sweep.yaml'), 'utf8'));
  written.benchmark.release = path.join(example, 'data');
  return {
    out,
    async run(change: (sweep: Sweep) => void = () => {}) {
      const sweep = structuredClone(written);
      change(sweep);
      const before = structuredClone(mock.stats().byModel);
      const ended = await turnsweep(['run', sweepFile(folder, sweep), '--out', out], {
        env: { MOCK_BASE_URL: mock.url, TURNSWEEP_CACHE: path.join(folder, 'cache') },
      });
      const calls = (model: string) =>
        (mock.stats().byModel[model]?.requests ?? 0) - (before[model]?.requests ?? 0);
      return { ...ended, calls };
    },
    summary: () => JSON.parse(readFileSync(path.join(out, 'report', 'summary.json'), 'utf8')),
    rows: (file: string): Record<string, unknown>[] =>
      readFileSync(path.join(out, file), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
  };
};

const evaluated = ['persona-listener', 'persona-wordbound'];
const families = {
  'persona-listener': 'A',
  'simulated-judge': 'A',
  'persona-wordbound': 'B',
  'strict-judge': 'B',
  'always-abstains': 'C',
};

describe('a judged run of small-voxmem', () => {
  it('is judged again by another judge without a call to a model, and both are compared', async () => {
    const { run, summary } = workplace();
    await run((sweep) => {
      sweep.benchmark.options = { families };
    });

    const again = await run((sweep) => {
      sweep.benchmark.options = { families };
      sweep.judge!.model = 'strict-judge';
    });

    expect(again.code).toBe(2);
    expect(evaluated.map(again.calls)).toEqual([0, 0]);
    expect(again.calls('simulated-judge')).toBe(0);
    expect(again.calls('strict-judge')).toBeGreaterThan(0);
    const { judges } = summary();
    const overall = (rows: Record<string, unknown>[]) => rows.filter(({ scope }) => scope === 'overall');
    // Of 57, 60 and 60 replies the first judge finds 42, 14 and 16 correct, the second none.
    expect(
      overall(judges.agreement).map((row) => [
        row.lane,
        row.compared,
        row.bothCorrect,
        row.firstOnlyCorrect,
        row.secondOnlyCorrect,
        row.bothIncorrect,
        row.kappa,
      ]),
    ).toEqual([
      [null, 177, 0, 0, 72, 105, 0],
      ['persona-listener', 57, 0, 0, 42, 15, 0],
      ['persona-wordbound', 60, 0, 0, 14, 46, 0],
      ['always-abstains', 60, 0, 0, 16, 44, 0],
    ]);
    const [pair] = overall(judges.pairs) as [Record<string, unknown>];
    expect(pair.meanAbsoluteDifferencePp).toBeCloseTo((100 * (42 / 57 + 14 / 60 + 16 / 60)) / 3, 9);
    // The first judge is now the strict one, of family B; the differences are the second's accuracies, negated.
    expect(pair.favouritism).toEqual({
      ofFirstPp: expect.closeTo((100 * (16 - 14)) / 60, 9),
      ofSecondPp: expect.closeTo(100 * (42 / 57 - 16 / 60), 9),
      betweenPp: expect.closeTo(100 * (42 / 57 - 14 / 60), 9),
    });
  });

  it('has every committed wrong answer traced by the auditor, once, and none else', async () => {
    const { run, rows, summary, out } = workplace();

    const { calls } = await run((sweep) => {
      sweep.benchmark.options = { attribution: true };
    });

    const said = evaluated.flatMap((lane) =>
      rows(`scores/${lane}.jsonl`).filter(({ status }) => status === 'incorrect'),
    );
    const declining = ['Insufficient evidence.', 'I cannot process audio.', 'I do not know.'];
    const committed = said.filter(({ response }) => !declining.includes(String(response)));
    const asked = evaluated.flatMap((lane) => rows(`judging/follow-ups/${lane}.jsonl`));
    expect(asked.length).toBe(committed.length);
    expect(committed.length).toBe(51);
    expect(readFileSync(path.join(out, 'judging', 'follow-ups', 'always-abstains.jsonl'), 'utf8')).toBe('');
    const { attribution, judging } = summary();
    const errors = attribution.cells.reduce((sum: number, cell: { errors: number }) => sum + cell.errors, 0);
    expect(errors).toBe(committed.length);
    const distinct = new Set(asked.map(({ key }) => key)).size;
    expect(judging.followUps).toEqual({ items: distinct, judged: distinct });
    // Verdicts and audits each once; a reply without a verdict is asked about twice.
    expect(calls('simulated-judge')).toBe(judging.judged + 1 + distinct);
  });

  it('needs no judge where texts are compared', async () => {
    const { run, summary } = workplace();

    const { code, calls } = await run((sweep) => {
      sweep.benchmark.options = { grader: 'exact-match', lengths: ['8k'] };
      delete sweep.judge;
    });

    expect(code).toBe(0);
    expect(calls('simulated-judge')).toBe(0);
    const baseline = summary().matched.filter(({ lane }: { lane: string }) => lane === 'always-abstains');
    expect(
      baseline.map((row: Record<string, unknown>) => [row.length, row.scope, row.correct, row.n]),
    ).toEqual([
      ['8k', 'overall', 4, 15],
      ['8k', 'answerable', 0, 11],
      ['8k', 'answer_refusal', 4, 4],
    ]);
  });
});

describe('the system prompt', () => {
  it('is a turn of its own, or folded where the lane says so, and every record tells which', async () => {
    const { run, out } = workplace();

    await run((sweep) => {
      sweep.benchmark.options = { lengths: ['8k'] };
      sweep.models[1]!.model = 'persona-any';
      sweep.models[1]!.settings = { systemPrompt: 'folded' };
    });

    const deliveries = (lane: string) => {
      return new Set(
        readFileSync(path.join(out, 'lanes', lane, 'requests.pack'), 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).value.systemPromptDelivery),
      );
    };
    expect(deliveries('persona-listener')).toEqual(new Set(['native']));
    expect(deliveries('persona-wordbound')).toEqual(new Set(['folded']));
    const bySystem = Object.keys(mock.stats().requestsBySystem);
    expect(bySystem).not.toContain('persona-listener none');
    expect(bySystem.filter((key) => key.startsWith('persona-any '))).toEqual(['persona-any none']);
  });
});
