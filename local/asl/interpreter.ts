import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { AslEvent, AslIntegrations, NestedExecution } from './integrations.ts';
import { runMap } from './map.ts';
import { checkSize } from './payload.ts';
import type {
  Chain,
  ChoiceState,
  ExecutionIdentity,
  FailState,
  MapItem,
  ParallelState,
  State,
  StateContext,
  WaitState,
  WorkState,
} from './program.ts';
import { type Scope, sleep } from './scope.ts';
import { asStatesError, matchesError, retryDelaySeconds, runtimeFault, StatesError } from './states-error.ts';
import { runTask } from './tasks.ts';
import type { Tokens } from './tokens.ts';

/** What every execution of a runtime shares. */
export interface Services {
  readonly integrations: AslIntegrations;
  readonly clock: Clock;
  readonly random: Random;
  readonly payloadLimitBytes: number;
  readonly tokens: Tokens;
  /** Transitions so far, of all executions. */
  transitions: number;
  readonly emit:
    | ((
        type: AslEvent['type'],
        execution: ExecutionIdentity,
        state: string | null,
        error?: StatesError,
      ) => void)
    | null;
  startExecution(machine: string, name: string | null, input: unknown): NestedExecution;
}

/** What the states of one chain share while it runs. */
export interface Frame {
  readonly execution: ExecutionIdentity;
  readonly item: MapItem | null;
  readonly scope: Scope;
}

interface Step {
  readonly output: unknown;
  readonly next: string | null;
}

/** Cheap states never leave the microtask queue; so often, timers and files get their turn all the same. */
const transitionsPerTurn = 256;

/** Runs a chain of states to its end and returns its output; throws `StatesError`, or the reason of a stop. */
export const runChain = async (
  services: Services,
  chain: Chain,
  input: unknown,
  frame: Frame,
): Promise<unknown> => {
  checkSize(input, services.payloadLimitBytes, 'the input');
  let data = input;
  for (let name: string | null = chain.startAt; name !== null; ) {
    services.transitions += 1;
    if (services.transitions % transitionsPerTurn === 0) await setImmediate();
    frame.scope.signal.throwIfAborted();
    const state: State = chain.states.get(name)!;
    const context: StateContext = {
      execution: frame.execution,
      stateName: name,
      enteredAtMs: services.clock.now(),
      item: frame.item,
      retryCount: 0,
      taskToken: null,
    };
    services.emit?.('StateEntered', frame.execution, name);
    const pending = takeStep(services, state, data, context, frame);
    const step: Step = pending instanceof Promise ? await pending : pending;
    if (step.output !== data && !('retriers' in state)) {
      checkSize(step.output, services.payloadLimitBytes, `the output of state ${JSON.stringify(name)}`);
    }
    services.emit?.('StateExited', frame.execution, name);
    data = step.output;
    name = step.next;
  }
  return data;
};

const takeStep = (
  services: Services,
  state: State,
  data: unknown,
  context: StateContext,
  frame: Frame,
): Step | Promise<Step> => {
  switch (state.type) {
    case 'Pass': {
      const result = state.result(state.input(data, context), context);
      return { output: state.output(state.merge(data, result), context), next: state.next };
    }
    case 'Succeed':
      return { output: state.output(state.input(data, context), context), next: null };
    case 'Choice':
      return choose(state, state.input(data, context), context);
    case 'Fail':
      throw failure(state, data, context);
    case 'Wait':
      return wait(services, state, state.input(data, context), context, frame);
    default:
      return work(services, state, data, context, frame);
  }
};

const choose = (state: ChoiceState, data: unknown, context: StateContext): Step => {
  const next = state.rules.find((rule) => rule.matches(data, context))?.next ?? state.next;
  if (next === null) {
    throw new StatesError('States.NoChoiceMatched', `state ${JSON.stringify(state.name)}: no rule matches`);
  }
  return { output: state.output(data, context), next };
};

const failure = (state: FailState, data: unknown, context: StateContext): StatesError => {
  const read = (field: 'error' | 'cause'): string | null => {
    const value = state[field]?.(data, context) ?? null;
    if (value === null || typeof value === 'string') return value;
    throw runtimeFault(`state ${JSON.stringify(state.name)}: its ${field} is not a string`);
  };
  return new StatesError(read('error'), read('cause'));
};

const wait = async (
  services: Services,
  state: WaitState,
  data: unknown,
  context: StateContext,
  frame: Frame,
): Promise<Step> => {
  const ms = state.waitMs(data, context, services.clock.now());
  if (ms > 0) await sleep(services.clock, ms, frame.scope.signal);
  return { output: state.output(data, context), next: state.next };
};

const perform = (
  services: Services,
  state: WorkState,
  input: unknown,
  context: StateContext,
  frame: Frame,
): Promise<unknown> => {
  switch (state.type) {
    case 'Task':
      return runTask(services, state, input, context, frame);
    case 'Parallel':
      return runParallel(services, state, input, context, frame);
    case 'Map':
      return runMap({ services, state, input, context, frame, runChain });
  }
};

/** Task, Parallel and Map: attempts, retries and catchers. */
const work = async (
  services: Services,
  state: WorkState,
  data: unknown,
  context: StateContext,
  frame: Frame,
): Promise<Step> => {
  const { signal } = frame.scope;
  const attempts = state.retriers.map(() => 0);
  for (;;) {
    try {
      const result = await perform(services, state, state.input(data, context), context, frame);
      const merged = state.merge(data, state.select(result, context));
      const output = state.output(merged, context);
      checkSize(output, services.payloadLimitBytes, `the output of state ${JSON.stringify(state.name)}`);
      return { output, next: state.next };
    } catch (thrown) {
      signal.throwIfAborted();
      const error = asStatesError(thrown);
      const index = state.retriers.findIndex((retrier) => matchesError(retrier.errors, error.error));
      const retrier = state.retriers[index];
      if (retrier !== undefined && attempts[index]! < retrier.maxAttempts) {
        attempts[index]! += 1;
        context.retryCount += 1;
        services.emit?.('StateRetried', frame.execution, state.name, error);
        const seconds = retryDelaySeconds(retrier, attempts[index]!, () => services.random.next());
        await sleep(services.clock, seconds * 1000, signal);
        continue;
      }
      const catcher = state.catchers.find(({ errors }) => matchesError(errors, error.error));
      if (catcher === undefined) throw error;
      services.emit?.('StateCaught', frame.execution, state.name, error);
      const output = catcher.merge(data, { Error: error.error ?? '', Cause: error.causeText ?? '' });
      checkSize(
        output,
        services.payloadLimitBytes,
        `the caught error of state ${JSON.stringify(state.name)}`,
      );
      return { output, next: catcher.next };
    }
  }
};

const runParallel = async (
  services: Services,
  state: ParallelState,
  input: unknown,
  context: StateContext,
  frame: Frame,
): Promise<unknown> => {
  const branchInput = state.parameters(input, context);
  const scope = frame.scope.child();
  try {
    return await Promise.all(
      state.branches.map((branch) => runChain(services, branch, branchInput, { ...frame, scope })),
    );
  } catch (error) {
    scope.abort(error);
    throw error;
  } finally {
    scope.end();
  }
};
