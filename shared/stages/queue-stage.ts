import { createHash, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { errorNames } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Workflow } from '../ports/workflow.ts';

/** The part of an SQS event that a stage reads; the embedded event source makes the same shape. */
export interface QueueEvent {
  Records: readonly {
    messageId: string;
    body: string;
    attributes: { ApproximateReceiveCount: string };
  }[];
}

export interface BatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

export interface QueueStageOptions<Message extends { taskToken: string }> {
  stage: string;
  schema: z.ZodType<Message>;
  core: (message: Message) => Promise<unknown>;
  workflow: Pick<Workflow, 'succeed' | 'fail' | 'heartbeat'>;
  ledger: Pick<Ledger, 'takeLease' | 'leaseOwner' | 'releaseLease'>;
  /** How long a delivery may work before another one may take its place. */
  visibilitySeconds: number;
  maxReceiveCount: number;
  /** With it the time above is renewed while the work lasts, in thirds: it only has to outlast a pause. */
  renewal?: Pick<Clock, 'sleep'>;
  /** Once aborted, work that failed was interrupted: its message goes to somebody else, whatever it has counted. */
  handBack?: AbortSignal;
  /** Told about every exception: the message comes back, the reason must not be lost. */
  onError: (error: unknown, context: { stage: string; messageId: string; receiveCount: number }) => void;
}

const answeredForSeconds = 86_400;

const leaseOf = (token: string): string =>
  `token/${createHash('sha256').update(token).digest('hex').slice(0, 32)}`;

/**
 * Wraps a stage's core as the handler of a queue's event source: parse, run, answer the task token.
 *
 * A message may be delivered twice, also at the same time. The lease on its task token lets one
 * delivery work and is kept once that has answered, so that no other ever works; a delivery that comes
 * after the answer is dropped, and so is one whose execution was stopped meanwhile: nobody waits for its
 * answer, so it must not cost a call. An exception leaves the message to be redelivered (crash recovery only:
 * expected failures are outcomes); at the last receive the token is failed with `MessagePoisoned`, so
 * that the workflow goes on while the message goes to the dead letters. A delivery beyond the last does nothing else.
 */
export const createQueueStage =
  <Message extends { taskToken: string }>(options: QueueStageOptions<Message>) =>
  async (event: QueueEvent): Promise<BatchResponse> => {
    const failures: { itemIdentifier: string }[] = [];
    for (const record of event.Records) {
      if (!(await handleRecord(options, record))) failures.push({ itemIdentifier: record.messageId });
    }
    return { batchItemFailures: failures };
  };

const handleRecord = async <Message extends { taskToken: string }>(
  options: QueueStageOptions<Message>,
  record: QueueEvent['Records'][number],
): Promise<boolean> => {
  const { ledger, workflow } = options;
  const receiveCount = Number(record.attributes.ApproximateReceiveCount);
  const token = tokenOf(record.body);
  if (token === null) {
    // Without a token nobody waits for an answer: the dead-letter queue is where people look.
    options.onError(new Error('message without a task token'), context(options.stage, record, receiveCount));
    return false;
  }
  if (receiveCount > options.maxReceiveCount) {
    // Its last delivery was killed before it could say so: whatever lease that has left, nobody works on it.
    const cause = 'its handler was killed at the last receive';
    options.onError(new Error(cause), context(options.stage, record, receiveCount));
    await workflow.fail(token, errorNames.messagePoisoned, cause);
    return false;
  }
  const lease = leaseOf(token);
  const answered = `${lease}/answered`;
  const owner = randomUUID();
  if (!(await ledger.takeLease(lease, owner, options.visibilitySeconds))) {
    return (await ledger.leaseOwner(answered)) !== null;
  }
  const stopRenewing = keepLease(options, lease, owner);
  try {
    if (await workflow.heartbeat(token)) {
      const message = options.schema.safeParse(JSON.parse(record.body));
      if (message.success) await workflow.succeed(token, await options.core(message.data));
      else await workflow.fail(token, errorNames.contractViolated, message.error.message);
    }
  } catch (error) {
    if (options.handBack?.aborted) {
      await ledger.releaseLease(lease, owner);
      return false;
    }
    options.onError(error, context(options.stage, record, receiveCount));
    await ledger.releaseLease(lease, owner);
    if (receiveCount >= options.maxReceiveCount) {
      const cause = error instanceof Error ? error.message : String(error);
      await workflow.fail(token, errorNames.messagePoisoned, cause);
    }
    return false;
  } finally {
    stopRenewing();
  }
  await ledger.takeLease(lease, owner, answeredForSeconds);
  await ledger.takeLease(answered, owner, answeredForSeconds);
  return true;
};

/** Renews the lease until told to stop. One that was lost is not: the first record written counts anyway. */
const keepLease = <Message extends { taskToken: string }>(
  { ledger, renewal, visibilitySeconds, ...options }: QueueStageOptions<Message>,
  lease: string,
  owner: string,
): (() => void) => {
  if (renewal === undefined) return () => {};
  const over = new AbortController();
  const keep = async () => {
    for (let isHeld = true; isHeld; ) {
      await renewal.sleep((visibilitySeconds * 1000) / 3, over.signal);
      isHeld = await ledger.takeLease(lease, owner, visibilitySeconds);
    }
  };
  keep().catch((error) => {
    if (!over.signal.aborted)
      options.onError(error, { stage: options.stage, messageId: lease, receiveCount: 0 });
  });
  return () => over.abort();
};

const tokenOf = (body: string): string | null => {
  try {
    const token: unknown = JSON.parse(body)?.taskToken;
    return typeof token === 'string' && token !== '' ? token : null;
  } catch {
    return null; // Not JSON: the caller reports it.
  }
};

const context = (stage: string, record: QueueEvent['Records'][number], receiveCount: number) => ({
  stage,
  messageId: record.messageId,
  receiveCount,
});
