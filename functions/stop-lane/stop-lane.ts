import { stopLaneInput } from '../../shared/contracts/stage-messages.ts';
import { keys } from '../../shared/keys.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';

export interface StopLanePorts {
  store: ObjectStore;
  clock: Pick<Clock, 'now'>;
}

/** What Batch says of a job that failed, as far as people want to read it. */
interface FailedJob {
  StatusReason?: string;
  Container?: { Reason?: string; ExitCode?: number; LogStreamName?: string };
}

/**
 * Marks a lane whose workers cannot work: nothing of it is recorded as failed, its views stay open, and people
 * read why. The next start of the run clears the mark.
 */
export const createStopLane =
  ({ store, clock }: StopLanePorts) =>
  async (rawInput: unknown): Promise<{ lane: string }> => {
    const { run, lane, error } = stopLaneInput.parse(rawInput);
    const mark = {
      v: 1,
      kind: 'workers_failed',
      message: messageOf(error.Cause) ?? error.Error,
      timeUtc: new Date(clock.now()).toISOString(),
    };
    await store.put(keys.lane.stopped(run, lane), JSON.stringify(mark));
    return { lane };
  };

const longestMessage = 500;

/** Step Functions gives the whole job as the cause of its failure; other causes are text. */
const messageOf = (cause: string | undefined): string | null => {
  if (cause === undefined || cause === '') return null;
  let job: FailedJob;
  try {
    job = JSON.parse(cause) as FailedJob;
  } catch {
    return cause.slice(0, longestMessage);
  }
  const facts = [
    job.StatusReason,
    job.Container?.Reason,
    job.Container?.ExitCode === undefined ? undefined : `exit code ${job.Container.ExitCode}`,
    job.Container?.LogStreamName && `log stream ${job.Container.LogStreamName}`,
  ].filter(Boolean);
  return (facts.length === 0 ? cause : facts.join('; ')).slice(0, longestMessage);
};
