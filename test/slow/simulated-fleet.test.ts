import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, expect, test } from 'vitest';
import { measureCommand } from '../../bench/measure.ts';
import { compareWithScript } from '../../bench/paper/check-report.ts';
import type { Composition } from '../../bench/paper/composition.ts';
import { expectedCounts } from '../../bench/paper/expected.ts';
import { startFleet } from '../../bench/paper/fleet.ts';
import { scriptLane } from '../../bench/paper/outcomes.ts';
import { writeRelease } from '../../bench/paper/release.ts';
import { type FleetLane, judgeModel, sweepFileText } from '../../bench/paper/sweep-file.ts';
import { type LaneTargets, targetsOf } from '../../bench/paper/targets.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-fleet-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** 10 roots: 3 short and 3 long pairs on the task side, 4 of each on the evidence side. */
const composition: Composition = {
  taskShort: { V: 2, A: 1 },
  taskLong: { V: 1, A: 2 },
  evidence: { V: 2, A: 2 },
};

/*
 * Omni has 14 pairs: 56 views. It lacks the reference of one long pair on openqa (whose control is right, whose conflict
 * comes out right), the control of one long pair on mcq, and a native turn of one short pair on the evidence side, which
 * four views share: 1 + 2 + 4 views. Seer, V only, has 7 pairs: 28 views.
 */
const cells = `
model,family,interface,horizon,operation,n,single_correct,multi_correct
Omni,Omni,openqa,short,Reconfirm,3,2,2
Omni,Omni,openqa,short,Reground,3,2,1
Omni,Omni,openqa,short,Retrieve,3,2,2
Omni,Omni,openqa,short,Rebind,3,2,1
Omni,Omni,openqa,long,Reconfirm,2,1,1
Omni,Omni,openqa,long,Reground,3,2,1
Omni,Omni,openqa,long,Retrieve,4,3,3
Omni,Omni,openqa,long,Rebind,4,3,0
Omni,Omni,mcq,short,Reconfirm,3,3,3
Omni,Omni,mcq,short,Reground,3,3,1
Omni,Omni,mcq,short,Retrieve,3,3,3
Omni,Omni,mcq,short,Rebind,3,3,2
Omni,Omni,mcq,long,Reconfirm,2,2,1
Omni,Omni,mcq,long,Reground,2,2,0
Omni,Omni,mcq,long,Retrieve,4,4,4
Omni,Omni,mcq,long,Rebind,4,4,1
Seer,LVLM,openqa,short,Reconfirm,2,1,1
Seer,LVLM,openqa,short,Reground,2,1,0
Seer,LVLM,openqa,short,Retrieve,2,2,1
Seer,LVLM,openqa,short,Rebind,2,2,0
Seer,LVLM,openqa,long,Reconfirm,1,1,1
Seer,LVLM,openqa,long,Reground,1,1,1
Seer,LVLM,openqa,long,Retrieve,2,2,2
Seer,LVLM,openqa,long,Rebind,2,2,0
Seer,LVLM,mcq,short,Reconfirm,2,2,2
Seer,LVLM,mcq,short,Reground,2,2,0
Seer,LVLM,mcq,short,Retrieve,2,1,2
Seer,LVLM,mcq,short,Rebind,2,1,1
Seer,LVLM,mcq,long,Reconfirm,1,0,1
Seer,LVLM,mcq,long,Reground,1,0,0
Seer,LVLM,mcq,long,Retrieve,2,1,1
Seer,LVLM,mcq,long,Rebind,2,1,0
`;

const ladders = `
role,model,interface,n,single,reference,conflict
task,Omni,openqa,5,60,60,20
task,Omni,mcq,5,100,80,20
evidence,Omni,openqa,7,71.42857142857143,71.42857142857143,14.285714285714286
evidence,Omni,mcq,7,100,100,42.857142857142854
task,Seer,openqa,3,66.66666666666667,66.66666666666667,33.333333333333336
task,Seer,mcq,3,66.66666666666667,100,0
evidence,Seer,openqa,4,100,75,0
evidence,Seer,mcq,4,50,75,25
`;

type Row = Record<string, string>;
const rowsOf = (text: string): Row[] => parse(text.trim(), { columns: true }) as Row[];
const targets: LaneTargets[] = targetsOf({ cells: rowsOf(cells), ladders: rowsOf(ladders) });

const lanes: FleetLane[] = [
  {
    id: 'omni',
    displayName: 'Omni',
    family: 'Omni',
    modalities: ['V', 'A'],
    model: 'omni-1',
    maxTokens: 64,
    retryMaxTokens: 256,
    attempts: 3,
  },
  { id: 'seer', displayName: 'Seer', family: 'LVLM', modalities: ['V'], model: 'seer-1' },
];

test('a sweep against the simulated fleet comes out at the counts that its script was given', async () => {
  const seed = 11;
  const release = path.join(folder, 'release');
  const split = writeRelease(release, composition, seed, 1);
  const scripts = targets.map((ofLane) => scriptLane(ofLane, split, seed));
  const fleet = await startFleet(
    {
      composition,
      seed,
      lanes: lanes.map((lane, at) => ({
        wireModel: lane.model,
        modalities: lane.modalities,
        retryMaxTokens: lane.retryMaxTokens ?? null,
        codes: scripts[at]!.codes,
      })),
      judgeModels: [judgeModel],
      latencyMs: 0,
      lengthStopsPerMille: 100,
    },
    2,
  );
  const sweep = path.join(folder, 'sweep.yaml');
  const out = path.join(folder, 'out');
  writeFileSync(
    sweep,
    sweepFileText({
      name: 'small',
      release,
      lanes,
      urlOf: fleet.urlOf,
      judgeUrl: fleet.judgeUrl,
      maxInFlight: undefined,
      resampleSeed: seed,
    }),
  );

  const run = await measureCommand(['run', sweep, '--out', out, '--json']);
  const served = await fleet.stats();
  await fleet.reset();
  const again = await measureCommand(['run', sweep, '--out', out, '--json']);
  const servedAgain = await fleet.stats();
  fleet.stop();

  // Exit 2: finished, with excluded views.
  expect([run.code, again.code], run.complaints).toEqual([2, 2]);
  expect(JSON.parse(readFileSync(path.join(out, 'report/summary.json'), 'utf8')).counts).toMatchObject({
    views: 84,
    valid: 77,
    excluded: 7,
    pending: 0,
    open: 0,
  });
  const found = rowsOf(readFileSync(path.join(out, 'report/cells.csv'), 'utf8'));
  const columns = Object.keys(rowsOf(cells)[0]!);
  expect(found.map((row) => columns.map((name) => row[name]).join(','))).toEqual(
    rowsOf(cells).map((row) => columns.map((name) => row[name]).join(',')),
  );
  const foundLadders = rowsOf(readFileSync(path.join(out, 'report/ladders.csv'), 'utf8'));
  expect(
    new Map(foundLadders.map((row) => [`${row.role} ${row.model} ${row.interface}`, numbers(row)])),
  ).toEqual(
    new Map(rowsOf(ladders).map((row) => [`${row.role} ${row.model} ${row.interface}`, numbers(row)])),
  );
  // Omni: 3·10 + 3·22 + 4·15; Seer: 2·10 + 22 + 2·15. Alone: 3 calls for a short view, 6 for a long one.
  const expected = expectedCounts(split, scripts);
  expect([expected.requests, expected.requestsAlone]).toEqual([156 + 72, 7 * 4 * 9 + 4 * 4 * 3 + 3 * 4 * 6]);
  for (const comparison of compareWithScript(path.join(out, 'report'), expected))
    expect(comparison.differences, comparison.what).toEqual([]);
  expect(served).toMatchObject({ refused: {}, repeatedReplies: 0 });
  expect(served.lengthStops).toBeGreaterThan(0);
  expect(served.judgedItems).toBeGreaterThan(0);
  expect(servedAgain.requests).toBe(0);
});

const numbers = ({ n, single, reference, conflict }: Row): number[] =>
  [n, single, reference, conflict].map(Number);
