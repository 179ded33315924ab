/**
 * Errors that state machines act upon: each stands in a Retry or Catch list of `state-machines/*.asl.json`. What
 * answers a task token, or ends a state as failed, uses these alone.
 */
export const handledErrors = {
  contractViolated: 'ContractViolated',
  laneDrained: 'LaneDrained',
  messagePoisoned: 'MessagePoisoned',
  workersFailed: 'WorkersFailed',
} as const;

/**
 * Errors that end what meets them and are for people to mend. No state machine lists them: where a stage throws
 * one, its execution fails, and a later start goes on from what is recorded.
 */
export const endingErrors = {
  accessDenied: 'AccessDenied',
  aslInvalid: 'AslInvalid',
  benchmarkInvalid: 'BenchmarkInvalid',
  contractDiffers: 'ContractDiffers',
  mediaToolFailed: 'MediaToolFailed',
  mediaUnusable: 'MediaUnusable',
  objectChanged: 'ObjectChanged',
  objectDamaged: 'ObjectDamaged',
  objectMissing: 'ObjectMissing',
  runFolderBusy: 'RunFolderBusy',
  storageFailed: 'StorageFailed',
  usage: 'UsageWrong',
} as const;

/** Every error name of the system. */
export const errorNames = { ...handledErrors, ...endingErrors } as const;

export type ErrorName = (typeof errorNames)[keyof typeof errorNames];

export interface Place {
  /** File, key or command-line option in which the fault lies. */
  where?: string;
  /** What the reader can do about it, one clause. */
  remedy?: string;
  cause?: unknown;
}

/** An expected failure. `name` is stable; `message` is one line: what, where, how to mend. */
export class TurnsweepError extends Error {
  readonly where: string | undefined;
  readonly remedy: string | undefined;

  constructor(name: ErrorName, what: string, place: Place = {}) {
    const where = place.where === undefined ? '' : ` (${place.where})`;
    const remedy = place.remedy === undefined ? '' : `; ${place.remedy}`;
    super(`${what}${where}${remedy}`, { cause: place.cause });
    this.name = name;
    this.where = place.where;
    this.remedy = place.remedy;
  }
}

/** One fault found in an input file: a list of these is what `validate` prints. */
export interface Problem {
  file: string;
  /** 1-based; null where the fault concerns the whole file. */
  line: number | null;
  message: string;
}

/** Several faults of one input at once; nothing was called and nothing written. */
export class ProblemsFound extends TurnsweepError {
  readonly problems: readonly Problem[];

  constructor(name: ErrorName, what: string, problems: readonly Problem[]) {
    super(name, what);
    this.problems = problems;
  }
}

export const isNamed = (error: unknown, name: ErrorName): boolean =>
  error instanceof Error && error.name === name;
