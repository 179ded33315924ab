import { describe, expect, it } from 'vitest';
import { createStartSweep } from '../../functions/start-sweep/start-sweep.ts';
import { errorNames } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';

const storedRun = 'weekly-0123456789ab';
const tick = { run: storedRun, scheduledTime: '2026-01-05T03:00:00Z' };
const runOfTick = 'weekly-20260105t030000z-0123456789ab';

const settings = (run: string) => ({
  v: 1,
  run,
  seed: 7,
  taskIds: ['t1'],
  options: {},
  prompts: {},
  budgetMicroUsd: 5_000_000,
  lanes: [],
  judge: null,
});

const homeWith = (objects: Map<string, string>) => {
  const executions = new Map<string, unknown>();
  const store = {
    getText: async (key: string) => objects.get(key) ?? null,
    putIfAbsent: async (key: string, body: string) => {
      if (objects.has(key)) return false;
      objects.set(key, body);
      return true;
    },
  } as Partial<ObjectStore> as ObjectStore;
  const workflow = {
    start: async (machine: string, name: string, input: unknown) => {
      executions.set(`${machine}/${name}`, input);
      return `${machine}/${name}`;
    },
  };
  return { executions, startSweep: createStartSweep({ store, workflow, machine: 'sweep' }) };
};

const storedObjects = () =>
  new Map([
    [keys.run.contract(storedRun), '{"hash":"0123","contract":{}}'],
    [keys.run.settings(storedRun), JSON.stringify(settings(storedRun))],
    [keys.lane.request(storedRun, 'a', 'r1'), '{"reply":"of an earlier run"}'],
  ]);

describe('start-sweep', () => {
  it('starts the stored run under the name of the tick, with its contract, settings and no reply', async () => {
    const objects = storedObjects();
    const { executions, startSweep } = homeWith(objects);

    const started = await startSweep(tick);

    expect(started).toEqual({ run: runOfTick, executionId: `sweep/${runOfTick}-1` });
    expect(executions).toEqual(new Map([[`sweep/${runOfTick}-1`, { run: runOfTick, retryErrors: false }]]));
    expect(objects.get(keys.run.contract(runOfTick))).toBe('{"hash":"0123","contract":{}}');
    expect(JSON.parse(objects.get(keys.run.settings(runOfTick))!)).toEqual(settings(runOfTick));
    expect([...objects.keys()].filter((key) => key.startsWith(`runs/${runOfTick}/`))).toHaveLength(2);
  });

  it('starts nothing more when the tick is delivered again', async () => {
    const objects = storedObjects();
    const { executions, startSweep } = homeWith(objects);

    await startSweep(tick);
    const before = new Map(objects);
    await startSweep(tick);

    expect(objects).toEqual(before);
    expect(executions.size).toBe(1);
  });

  it('makes another run of the next tick', async () => {
    const { executions, startSweep } = homeWith(storedObjects());

    await startSweep(tick);
    await startSweep({ ...tick, scheduledTime: '2026-01-12T03:00:00Z' });

    expect([...executions.keys()]).toEqual([
      `sweep/${runOfTick}-1`,
      'sweep/weekly-20260112t030000z-0123456789ab-1',
    ]);
  });

  it('says which run is missing', async () => {
    const { startSweep } = homeWith(new Map());

    await expect(startSweep(tick)).rejects.toMatchObject({
      name: errorNames.objectMissing,
      where: keys.run.contract(storedRun),
    });
  });
});
