export type ExecutionStatus = 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'ABORTED';

export interface ExecutionDescription {
  name: string;
  status: ExecutionStatus;
  output: unknown;
  error: string | null;
  cause: string | null;
}

/** Starts state machines and answers their task tokens. */
export interface Workflow {
  /** The same machine, name and input again returns the first execution; another input is an error. */
  start(machine: string, name: string, input: unknown): Promise<string>;
  describe(executionId: string): Promise<ExecutionDescription>;
  stop(executionId: string, cause: string): Promise<void>;
  /** False where nobody waits for the token any more (answered, timed out or stopped). */
  succeed(taskToken: string, output: unknown): Promise<boolean>;
  fail(taskToken: string, error: string, cause: string): Promise<boolean>;
  /** Resets the heartbeat clock; false as above. */
  heartbeat(taskToken: string): Promise<boolean>;
}
