import type { ExecutionDescription } from '../../shared/ports/workflow.ts';

/** The services that state machines call. */
export interface AslIntegrations {
  /**
   * `lambda:invoke`. The result is wrapped as `{ExecutedVersion: '$LATEST', Payload, StatusCode: 200}`. A thrown
   * error's `name` is the error that Retry and Catch see; the cause is `{"errorType", "errorMessage"}` as JSON.
   */
  invokeFunction(functionName: string, payload: unknown, signal: AbortSignal): Promise<unknown>;
  /** `sqs:sendMessage` and its `.waitForTaskToken`. `body` is MessageBody, as JSON text where it is no string. */
  sendMessage(
    queueUrl: string,
    body: string,
    options: { delaySeconds?: number; messageGroupId?: string },
  ): Promise<{ messageId: string }>;
  /** `batch:submitJob.sync`, with the task's parameters. */
  submitJob(parameters: unknown, signal: AbortSignal): Promise<unknown>;
  /** Lines of an item file, for `ItemReader`. */
  readLines(bucket: string, key: string): AsyncIterable<string>;
  /** Writes a file of a `ResultWriter`; where `lines` throws, nothing must become visible. */
  writeLines(bucket: string, key: string, lines: AsyncIterable<string>): Promise<void>;
}

/** One step of an execution, for logs and progress. */
export interface AslEvent {
  type:
    | 'ExecutionStarted'
    | 'ExecutionSucceeded'
    | 'ExecutionFailed'
    | 'ExecutionTimedOut'
    | 'ExecutionAborted'
    | 'StateEntered'
    | 'StateExited'
    | 'StateRetried'
    | 'StateCaught';
  executionId: string;
  machine: string;
  /** Milliseconds since the epoch, by the runtime's clock. */
  atMs: number;
  /** Null for events of the execution itself. */
  state: string | null;
  error: string | null;
  cause: string | null;
}

/** An execution started by a task. */
export interface NestedExecution {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  readonly startedAtMs: number;
  /** False where the name stood for an execution that was there already. */
  readonly created: boolean;
  readonly ended: Promise<ExecutionDescription>;
  stop(cause: string): void;
}
