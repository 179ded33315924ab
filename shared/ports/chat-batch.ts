import type { CallOutcome } from '../domain/outcome.ts';
import type { ChatRequest } from './chat-caller.ts';

/** A request of a batch: what a call has, without what only a connection needs. */
export type BatchRequest = Pick<ChatRequest, 'messages' | 'maxTokens' | 'reasoningEffort'>;

/** Why something could not be had. */
export type BatchFault = Exclude<CallOutcome, { status: 'ok' | 'length' }>;

/**
 * A batch as its provider has it.
 *
 * - `working`: also while it is being cancelled; results are there once it has ended.
 * - `ended`, `expired`, `cancelled`: what was run until then has results, the rest has none.
 * - `failed`: nothing of it was run, for the reason in `failure`.
 */
export interface BatchJob {
  id: string;
  state: 'working' | 'ended' | 'expired' | 'cancelled' | 'failed';
  /** Kind `batch_too_large` where fewer requests at once would do. */
  failure: BatchFault | null;
  /** Files with results, in the provider's names. */
  resultFiles: readonly string[];
}

/**
 * A provider's batch interface: many requests as one job, answered within a day or so for less money. One operation
 * is one attempt: faults are results, nothing is tried again inside.
 */
export interface ChatBatch {
  requestsAtMost: number;
  bytesAtMost: number;
  /** What a request costs, as a share of the price of a call. */
  priceMultiplier: number;
  /** A request as it goes into `submit`. `id` comes back with its result. */
  encode(id: string, request: BatchRequest): Buffer;
  /**
   * Makes a batch. `tag` finds it again when nobody knows whether it was made. `mayExist`: the provider may have made
   * it all the same, and may charge it.
   */
  submit(
    requests: readonly Buffer[],
    tag: string,
  ): Promise<{ job: BatchJob } | { fault: BatchFault; mayExist: boolean }>;
  /** The batch that was submitted with `tag`, or null where there is none. */
  find(tag: string): Promise<{ job: BatchJob | null } | { fault: BatchFault }>;
  look(batchId: string): Promise<{ job: BatchJob } | { fault: BatchFault }>;
  /**
   * Hands over the results of a batch that has ended, in the provider's order: not that of the requests. Some may be
   * missing, and after a fault some have been handed over already.
   */
  results(
    job: BatchJob,
    take: (id: string, outcome: CallOutcome) => Promise<void>,
  ): Promise<{ fault: BatchFault | null }>;
  close(): Promise<void>;
}
