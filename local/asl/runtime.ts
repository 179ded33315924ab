import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { ExecutionDescription, ExecutionStatus, Workflow } from '../../shared/ports/workflow.ts';
import { reject } from './definition.ts';
import type { AslEvent, AslIntegrations, NestedExecution } from './integrations.ts';
import { runChain, type Services } from './interpreter.ts';
import { type CompiledMachine, compileMachine } from './load.ts';
import type { ExecutionIdentity } from './program.ts';
import { createScope, type Scope, sleep } from './scope.ts';
import { asStatesError, runtimeFault, StatesError } from './states-error.ts';
import { createTokens } from './tokens.ts';

export type { AslEvent, AslIntegrations } from './integrations.ts';
export { loadStateMachine } from './load.ts';

export interface AslRuntime extends Workflow {
  /** Resolves when the execution has ended, however it ended. Throws `ObjectMissing` for an unknown id. */
  result(executionId: string): Promise<ExecutionDescription>;
  /** Aborts what runs and refuses what would be started. */
  close(): Promise<void>;
}

interface Execution {
  readonly identity: ExecutionIdentity;
  readonly scope: Scope;
  description: ExecutionDescription;
  readonly ended: Promise<ExecutionDescription>;
}

/** Why a whole execution was stopped from outside its states. */
interface Ending {
  readonly status: 'ABORTED' | 'TIMED_OUT';
  readonly error: string | null;
  readonly cause: string;
}

const arnPrefix = 'arn:aws:states:local:000000000000';
const payloadLimit = 262_144;
// Step Functions, StartExecution: 1 to 80 characters, none of these.
const forbiddenInName = /[\s<>{}[\]?*"#%\\^|~`$&,;:/\p{Cc}]/u;

const endEvents = {
  ABORTED: 'ExecutionAborted',
  FAILED: 'ExecutionFailed',
  SUCCEEDED: 'ExecutionSucceeded',
  TIMED_OUT: 'ExecutionTimedOut',
} as const satisfies Record<Exclude<ExecutionStatus, 'RUNNING'>, AslEvent['type']>;

/**
 * Executes state machines in this process, by the rules of the Amazon States Language (JSONPath, reference paths).
 * All machines are checked and compiled at once; throws `AslInvalid` for anything that would not be executed.
 * `start` throws `ContractDiffers` where the name stands for an execution with another input, `UsageWrong` for a bad
 * name, an unknown machine or a closed runtime; `describe` and `stop` throw `ObjectMissing` for an unknown id.
 * `payloadLimitBytes` bounds the JSON of each state's input and output (Step Functions: 256 KiB).
 */
export const createAslRuntime = (options: {
  machines: Readonly<Record<string, unknown>>;
  integrations: AslIntegrations;
  clock: Clock;
  random: Random;
  payloadLimitBytes?: number;
  onEvent?: (event: AslEvent) => void;
}): AslRuntime => {
  const { integrations, clock, random, onEvent } = options;
  const machines = compileAll(options.machines);
  const tokens = createTokens(clock);
  const executions = new Map<string, Execution>();
  let closed = false;

  const emit: Services['emit'] =
    onEvent === undefined
      ? null
      : (type, { id, machineName }, state, error) =>
          onEvent({
            type,
            executionId: id,
            machine: machineName,
            atMs: clock.now(),
            state,
            error: error?.error ?? null,
            cause: error?.causeText ?? null,
          });

  const run = (machine: CompiledMachine, identity: ExecutionIdentity): Execution => {
    const scope = createScope();
    const timers = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<ExecutionDescription>();
    const { name } = identity;
    const execution: Execution = {
      identity,
      scope,
      description: { name, status: 'RUNNING', output: null, error: null, cause: null },
      ended,
    };
    const finish = (status: keyof typeof endEvents, output: unknown, error: StatesError | null) => {
      if (execution.description.status !== 'RUNNING') return;
      execution.description = {
        name,
        status,
        output,
        error: error?.error ?? null,
        cause: error?.causeText ?? null,
      };
      // Without a reason given, abort makes an exception with a stack for nobody to read.
      timers.abort(null);
      emit?.(endEvents[status], identity, null, error ?? undefined);
      resolve(execution.description);
    };
    const onAbort = () => {
      const { status, error, cause } = scope.signal.reason as Ending;
      finish(status, null, new StatesError(error, cause));
    };
    scope.signal.addEventListener('abort', onAbort, { once: true });
    const { timeoutSeconds } = machine;
    if (timeoutSeconds !== null) {
      const ending: Ending = {
        status: 'TIMED_OUT',
        error: 'States.Timeout',
        cause: `the execution did not end within ${timeoutSeconds} s`,
      };
      sleep(clock, timeoutSeconds * 1000, timers.signal).then(
        () => scope.abort(ending),
        (error) => {
          if (timers.signal.aborted) return;
          scope.abort({
            status: 'ABORTED',
            error: null,
            cause: asStatesError(error).message,
          } satisfies Ending);
        },
      );
    }
    const frame = { execution: identity, item: null, scope };
    const begin = async () => {
      emit?.('ExecutionStarted', identity, null);
      return await runChain(services, machine.chain, identity.input, frame);
    };
    Promise.resolve()
      .then(begin)
      .then(
        (output) => finish('SUCCEEDED', output, null),
        (thrown) => {
          if (!scope.signal.aborted) finish('FAILED', null, asStatesError(thrown));
        },
      );
    return execution;
  };

  /** The execution of that machine and name, a new one where there is none. Throws where the input differs. */
  const obtain = (machine: CompiledMachine, name: string, input: unknown) => {
    const id = `${arnPrefix}:execution:${machine.name}:${name}`;
    const known = executions.get(id);
    if (known !== undefined) {
      if (isDeepStrictEqual(known.identity.input, input)) return { execution: known, created: false };
      throw new TurnsweepError(errorNames.contractDiffers, 'an execution of this name has another input', {
        where: id,
        remedy: 'take another name',
      });
    }
    const execution = run(machine, {
      id,
      name,
      input,
      startedAtMs: clock.now(),
      machineId: `${arnPrefix}:stateMachine:${machine.name}`,
      machineName: machine.name,
    });
    executions.set(id, execution);
    return { execution, created: true };
  };

  const nameFault = (name: string): string | null =>
    name === '' || [...name].length > 80 || forbiddenInName.test(name)
      ? `${JSON.stringify(name)} cannot name an execution`
      : null;

  const startNested = (reference: string, givenName: string | null, input: unknown): NestedExecution => {
    const machine = machines.get(machineName(reference));
    if (machine === undefined) {
      throw new StatesError('StepFunctions.StateMachineDoesNotExistException', `no machine ${reference}`);
    }
    const fault = givenName === null ? null : nameFault(givenName);
    if (fault !== null) throw new StatesError('StepFunctions.InvalidNameException', fault);
    if (closed) throw runtimeFault('the runtime is closed');
    const { execution, created } = obtainNested(machine, givenName ?? randomUUID(), input);
    const { id, name, startedAtMs, machineId } = execution.identity;
    // Nobody can ask for a name that nobody gave: a sweep's thousands of children need not stay in memory.
    if (givenName === null) void execution.ended.then(() => executions.delete(id));
    return {
      id,
      name,
      machine: machineId,
      startedAtMs,
      created,
      ended: execution.ended,
      stop: (cause) => stop(execution, cause),
    };
  };

  const obtainNested: typeof obtain = (machine, name, input) => {
    try {
      return obtain(machine, name, input);
    } catch (error) {
      throw new StatesError('StepFunctions.ExecutionAlreadyExistsException', (error as Error).message);
    }
  };

  const services: Services = {
    integrations,
    clock,
    random,
    payloadLimitBytes: options.payloadLimitBytes ?? payloadLimit,
    tokens,
    transitions: 0,
    emit,
    startExecution: startNested,
  };

  const stop = (execution: Execution, cause: string): void =>
    execution.scope.abort({ status: 'ABORTED', error: null, cause } satisfies Ending);

  const find = (executionId: string): Execution => {
    const execution = executions.get(executionId);
    if (execution !== undefined) return execution;
    throw new TurnsweepError(errorNames.objectMissing, 'there is no such execution', { where: executionId });
  };

  return {
    start: async (machineReference, name, input) => {
      const machine = machines.get(machineName(machineReference));
      const fault =
        machine === undefined
          ? `there is no state machine ${JSON.stringify(machineReference)}`
          : nameFault(name);
      if (machine === undefined || fault !== null) throw new TurnsweepError(errorNames.usage, fault!);
      if (closed) throw new TurnsweepError(errorNames.usage, 'the runtime is closed');
      const copied = JSON.parse(JSON.stringify(input ?? null));
      return obtain(machine, name, copied).execution.identity.id;
    },
    describe: async (executionId) => structuredClone(find(executionId).description),
    result: async (executionId) => structuredClone(await find(executionId).ended),
    stop: async (executionId, cause) => stop(find(executionId), cause),
    succeed: async (token, output) => tokens.succeed(token, output),
    fail: async (token, error, cause) => tokens.fail(token, error, cause),
    heartbeat: async (token) => tokens.heartbeat(token),
    close: async () => {
      closed = true;
      const all = [...executions.values()];
      for (const execution of all) stop(execution, 'the runtime was closed');
      await Promise.all(all.map(({ ended }) => ended));
    },
  };
};

/** `name` itself, or the name at the end of an ARN. */
const machineName = (reference: string): string => reference.slice(reference.lastIndexOf(':') + 1);

const compileAll = (definitions: Readonly<Record<string, unknown>>): Map<string, CompiledMachine> => {
  const machines = new Map<string, CompiledMachine>();
  for (const [name, definition] of Object.entries(definitions)) {
    if (!/^[\w-]{1,80}$/.test(name)) {
      throw new TurnsweepError(errorNames.aslInvalid, `${JSON.stringify(name)} cannot name a state machine`);
    }
    machines.set(name, compileMachine(name, definition));
  }
  for (const machine of machines.values()) {
    for (const { site, machine: started } of machine.started) {
      if (machines.has(machineName(started))) continue;
      reject({ ...site, field: `${site.field}.StateMachineArn` }, `there is no state machine ${started}`);
    }
  }
  return machines;
};
