/** What a state machine looks like once it is checked and compiled: paths parsed, numbers known, names resolved. */

/** What `$$` paths read while a state runs. */
export interface StateContext {
  readonly execution: ExecutionIdentity;
  readonly stateName: string;
  readonly enteredAtMs: number;
  readonly item: MapItem | null;
  retryCount: number;
  taskToken: string | null;
}

export interface ExecutionIdentity {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly startedAtMs: number;
  readonly machineId: string;
  readonly machineName: string;
}

export interface MapItem {
  readonly index: number;
  readonly value: unknown;
}

/** A compiled path, intrinsic or payload template. Throws `StatesError` where the data lacks what it needs. */
export type Evaluate = (input: unknown, context: StateContext) => unknown;
export type EvaluateNumber = (input: unknown, context: StateContext) => number;
/** A compiled `ResultPath`: puts the result into a copy of the state's input. */
export type Merge = (input: unknown, result: unknown) => unknown;

export interface Chain {
  readonly startAt: string;
  readonly states: ReadonlyMap<string, State>;
}

export interface Machine {
  readonly name: string;
  readonly chain: Chain;
  readonly timeoutSeconds: number | null;
}

interface Flow {
  readonly name: string;
  readonly input: Evaluate;
  readonly output: Evaluate;
  /** Null where the chain ends. */
  readonly next: string | null;
}

export interface PassState extends Flow {
  readonly type: 'Pass';
  readonly result: Evaluate;
  readonly merge: Merge;
}

export interface SucceedState extends Flow {
  readonly type: 'Succeed';
}

export interface WaitState extends Flow {
  readonly type: 'Wait';
  readonly waitMs: (input: unknown, context: StateContext, nowMs: number) => number;
}

export interface ChoiceRule {
  readonly matches: (input: unknown, context: StateContext) => boolean;
  readonly next: string;
}

export interface ChoiceState extends Flow {
  readonly type: 'Choice';
  readonly rules: readonly ChoiceRule[];
}

export interface FailState {
  readonly type: 'Fail';
  readonly name: string;
  readonly next: null;
  readonly error: Evaluate | null;
  readonly cause: Evaluate | null;
}

export interface Retrier {
  readonly errors: readonly string[];
  readonly intervalSeconds: number;
  readonly backoffRate: number;
  readonly maxAttempts: number;
  readonly maxDelaySeconds: number;
  readonly fullJitter: boolean;
}

export interface Catcher {
  readonly errors: readonly string[];
  readonly next: string;
  readonly merge: Merge;
}

interface Work extends Flow {
  readonly select: Evaluate;
  readonly merge: Merge;
  readonly retriers: readonly Retrier[];
  readonly catchers: readonly Catcher[];
}

export interface TaskState extends Work {
  readonly type: 'Task';
  readonly resource: string;
  readonly parameters: Evaluate;
  readonly timeoutSeconds: EvaluateNumber;
  readonly heartbeatSeconds: EvaluateNumber | null;
}

export interface ParallelState extends Work {
  readonly type: 'Parallel';
  readonly parameters: Evaluate;
  readonly branches: readonly Chain[];
}

export interface ResultWriter {
  readonly parameters: Evaluate;
  readonly outputType: 'JSON' | 'JSONL';
  readonly transformation: 'NONE' | 'COMPACT' | 'FLATTEN';
}

export interface MapState extends Work {
  readonly type: 'Map';
  readonly distributed: boolean;
  readonly label: string;
  readonly processor: Chain;
  readonly items: Evaluate;
  readonly reader: { readonly parameters: Evaluate; readonly maxItems: EvaluateNumber | null } | null;
  readonly itemSelector: Evaluate | null;
  readonly maxConcurrency: EvaluateNumber | null;
  readonly toleratedFailureCount: EvaluateNumber | null;
  readonly toleratedFailurePercentage: EvaluateNumber | null;
  readonly writer: ResultWriter | null;
}

export type WorkState = TaskState | ParallelState | MapState;
export type State = PassState | SucceedState | WaitState | ChoiceState | FailState | WorkState;
