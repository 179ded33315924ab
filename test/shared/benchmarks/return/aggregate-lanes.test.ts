import { expect, it } from 'vitest';
import {
  type LaneAggregate,
  type LaneScores,
  usualSetting,
} from '../../../../shared/benchmarks/benchmark.ts';
import { returnBenchmark } from '../../../../shared/benchmarks/return/benchmark.ts';
import type { RequestRecord } from '../../../../shared/contracts/records.ts';
import type { Channel } from '../../../../shared/domain/request.ts';
import { buildRelease } from '../../../support/return-release-builder.ts';

/** Two roots, of which the first has evidence to see and the second to hear: 16 views each. */
const scoredRelease = async () => {
  const { files, rows, taskIds } = buildRelease({ roots: 2 });
  const open = (path: string) => files[path]!.split('\n');
  const { inputs, answers } = await returnBenchmark.read(open, open, usualSetting, false);
  const gold = new Map(rows.answers.map((row) => [row.request_id, row.gold]));
  const replyWithGold = (requestId: string) => ({ rawText: gold.get(requestId)! }) as RequestRecord;
  const scoresOf = (id: string, modalities: Channel[]): LaneScores => {
    const ofLane = rows.tasks.filter((task) => modalities.includes(task.required_modality));
    const shown = taskIds.filter((taskId) => ofLane.some((task) => task.task_id === taskId));
    const wanted = { taskIds: shown, interfaces: ['openqa', 'mcq'] };
    return {
      title: { id, displayName: id.toUpperCase(), family: null, model: id, modalities },
      taskIds: shown,
      scores: returnBenchmark.score(inputs, answers!, wanted, replyWithGold),
      followUps: new Map(),
    };
  };
  return { inputs, scoresOf };
};

it('gives each lane away before it takes the next, and knows all of them in the end', async () => {
  const { inputs, scoresOf } = await scoredRelease();
  const steps: string[] = [];
  const given: LaneAggregate[] = [];
  async function* lanes() {
    for (const [id, modalities] of [
      ['both', ['V', 'A']],
      ['sees', ['V']],
    ] as [string, Channel[]][]) {
      steps.push(`take ${id}`);
      yield scoresOf(id, modalities);
    }
  }

  const aggregate = await returnBenchmark.aggregate(inputs, {
    interfaces: ['openqa', 'mcq'],
    seed: 1,
    lanes: lanes(),
    verdict: () => null,
    judges: [],
    async onLane(lane) {
      steps.push(`begin ${lane.lane}`);
      await new Promise((resolve) => setImmediate(resolve));
      given.push(lane);
      steps.push(`end ${lane.lane}`);
    },
  });

  expect(steps).toEqual(['take both', 'begin both', 'end both', 'take sees', 'begin sees', 'end sees']);
  expect(given.map(({ lane, valid, open, files }) => ({ lane, valid, open, files: files.length }))).toEqual([
    { lane: 'both', valid: 32, open: 0, files: 5 },
    { lane: 'sees', valid: 16, open: 0, files: 5 },
  ]);
  expect(Object.keys(aggregate.summary.lanes as object)).toEqual(['both', 'sees']);
  // Header, then interface × horizon of each lane.
  expect(
    aggregate.files
      .find(({ path }) => path === 'models.csv')!
      .content.trim()
      .split('\n'),
  ).toHaveLength(9);
});
