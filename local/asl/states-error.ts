import type { Retrier } from './program.ts';

/** A failure as state machines see it. `error` is null only for a Fail state without `Error`. */
export class StatesError extends Error {
  readonly error: string | null;
  readonly causeText: string | null;

  constructor(error: string | null, causeText: string | null) {
    super(causeText ?? error ?? 'failed');
    this.name = error ?? 'Error';
    this.error = error;
    this.causeText = causeText;
  }
}

/** A failure that no wildcard of Retry or Catch matches. */
export const runtimeFault = (cause: string): StatesError => new StatesError('States.Runtime', cause);

/** Whatever was thrown, as a failure of the state machine; a fault of the runtime itself is `States.Runtime`. */
export const asStatesError = (thrown: unknown): StatesError => {
  if (thrown instanceof StatesError) return thrown;
  return runtimeFault(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown));
};

/** Errors that end an execution unless a list names them: the wildcards leave them alone. */
const terminalErrors: ReadonlySet<string | null> = new Set(['States.DataLimitExceeded', 'States.Runtime']);

/**
 * Whether an `ErrorEquals` list matches. `States.TaskFailed` stands for everything but `States.Timeout`,
 * `States.ALL` for everything; neither for the terminal errors (Step Functions guide, "Handling errors").
 */
export const matchesError = (listed: readonly string[], error: string | null): boolean =>
  listed.some((name) => {
    if (name === error) return true;
    if (terminalErrors.has(error)) return false;
    return name === 'States.ALL' || (name === 'States.TaskFailed' && error !== 'States.Timeout');
  });

/** Seconds before the `attempt`-th retry (1-based) of one retrier; `draw` is uniform in [0, 1). */
export const retryDelaySeconds = (retrier: Retrier, attempt: number, draw: () => number): number => {
  const grown = retrier.intervalSeconds * retrier.backoffRate ** (attempt - 1);
  const capped = Math.min(grown, retrier.maxDelaySeconds);
  return retrier.fullJitter ? capped * draw() : capped;
};
