import { z } from 'zod';
import { runSettings } from '../../shared/contracts/run.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { scheduledRunId, startName } from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Workflow } from '../../shared/ports/workflow.ts';

export interface StartSweepPorts {
  store: ObjectStore;
  workflow: Pick<Workflow, 'start'>;
  /** The sweep state machine, as the workflow knows it. */
  machine: string;
}

const startSweepInput = z.strictObject({
  /** A run in the store whose contract and settings are used again. */
  run: z.string(),
  /** When the tick was due: the same at every delivery of it. */
  scheduledTime: z.iso.datetime(),
});

/**
 * Starts a stored run again under a name made from the scheduled time. The new run has no replies, so all
 * are asked for afresh. A second delivery of a tick writes the same files and starts the new run's first
 * start again, which starts nothing. Throws `ObjectMissing` where the stored run is not there.
 */
export const createStartSweep =
  ({ store, workflow, machine }: StartSweepPorts) =>
  async (rawInput: unknown): Promise<{ run: string; executionId: string }> => {
    const input = startSweepInput.parse(rawInput);
    const run = scheduledRunId(input.run, new Date(input.scheduledTime));
    const contract = await needed(store, keys.run.contract(input.run));
    const settings = runSettings.parse(JSON.parse(await needed(store, keys.run.settings(input.run))));
    const imported = await store.getText(keys.judging.imported(input.run));
    if (imported !== null) await store.putIfAbsent(keys.judging.imported(run), imported);
    await store.putIfAbsent(keys.run.settings(run), `${JSON.stringify({ ...settings, run }, null, 2)}\n`);
    await store.putIfAbsent(keys.run.contract(run), contract);
    return {
      run,
      executionId: await workflow.start(machine, startName(run, 1), { run, retryErrors: false }),
    };
  };

const needed = async (store: ObjectStore, key: string): Promise<string> => {
  const text = await store.getText(key);
  if (text !== null) return text;
  throw new TurnsweepError(errorNames.objectMissing, 'a schedule names a run that is not in the bucket', {
    where: key,
    remedy: 'upload the run once with `turnsweep run SWEEP.yaml --on aws`, or correct the schedule',
  });
};
