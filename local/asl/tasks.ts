import { isObject } from './definition.ts';
import type { Frame, Services } from './interpreter.ts';
import { checkSize, copyAcross } from './payload.ts';
import type { StateContext, TaskState } from './program.ts';
import { resources } from './resources.ts';
import { withDeadlines } from './scope.ts';
import { runtimeFault, StatesError } from './states-error.ts';

interface Call {
  readonly services: Services;
  readonly state: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

const fault = (call: Call, name: string, must: string): never => {
  throw runtimeFault(`state ${JSON.stringify(call.state)}, field Parameters.${name}: must be ${must}`);
};

const text = (call: Call, name: string): string => {
  const value = call.parameters[name];
  return typeof value === 'string' ? value : fault(call, name, 'a string');
};

const optionalText = (call: Call, name: string): string | null =>
  call.parameters[name] === undefined ? null : text(call, name);

/** What a function throws, as Lambda reports it: the error's name, and a cause without the stack. */
const functionError = (thrown: unknown): StatesError => {
  if (thrown instanceof StatesError) return thrown;
  const [errorType, errorMessage] =
    thrown instanceof Error ? [thrown.name, thrown.message] : [typeof thrown, String(thrown)];
  return new StatesError(errorType, JSON.stringify({ errorType, errorMessage }));
};

/** What another service throws: its error's name where it has one of its own. */
export const serviceError = (thrown: unknown, fallback: string): StatesError => {
  if (thrown instanceof StatesError) return thrown;
  if (!(thrown instanceof Error)) return new StatesError(fallback, String(thrown));
  return new StatesError(thrown.name === 'Error' ? fallback : thrown.name, thrown.message);
};

const invokeFunction = async (call: Call): Promise<unknown> => {
  const { integrations, payloadLimitBytes } = call.services;
  const name = text(call, 'FunctionName');
  const payload = copyAcross(call.parameters.Payload, payloadLimitBytes, `the payload for ${name}`);
  try {
    const result = await integrations.invokeFunction(name, payload, call.signal);
    const copied = copyAcross(result, payloadLimitBytes, `the result of ${name}`);
    return { ExecutedVersion: '$LATEST', Payload: copied, StatusCode: 200 };
  } catch (thrown) {
    throw functionError(thrown);
  }
};

const sendMessage = async (call: Call): Promise<unknown> => {
  const { MessageBody: body, DelaySeconds: delaySeconds } = call.parameters;
  if (delaySeconds !== undefined && typeof delaySeconds !== 'number') {
    return fault(call, 'DelaySeconds', 'a number');
  }
  const messageGroupId = optionalText(call, 'MessageGroupId') ?? undefined;
  try {
    const { messageId } = await call.services.integrations.sendMessage(
      text(call, 'QueueUrl'),
      typeof body === 'string' ? body : JSON.stringify(body),
      { delaySeconds, messageGroupId },
    );
    return { MessageId: messageId };
  } catch (thrown) {
    throw serviceError(thrown, 'States.TaskFailed');
  }
};

const submitJob = async (call: Call): Promise<unknown> => {
  const { integrations, payloadLimitBytes } = call.services;
  const parameters = copyAcross(call.parameters, payloadLimitBytes, 'the job parameters');
  try {
    const result = await integrations.submitJob(parameters, call.signal);
    return copyAcross(result, payloadLimitBytes, 'the job result');
  } catch (thrown) {
    throw serviceError(thrown, 'States.TaskFailed');
  }
};

const start = (call: Call) => {
  const input = call.parameters.Input ?? {};
  return call.services.startExecution(text(call, 'StateMachineArn'), optionalText(call, 'Name'), input);
};

const isoTime = (ms: number): string => new Date(ms).toISOString();

const startExecution = async (call: Call): Promise<unknown> => {
  const nested = start(call);
  return { ExecutionArn: nested.id, StartDate: isoTime(nested.startedAtMs) };
};

const runExecution = async (call: Call): Promise<unknown> => {
  const nested = start(call);
  const onAbort = () => {
    if (nested.created) nested.stop('the task that waited for this execution ended');
  };
  call.signal.addEventListener('abort', onAbort, { once: true });
  try {
    const { status, output, error, cause } = await nested.ended;
    const facts = {
      ExecutionArn: nested.id,
      Input: call.parameters.Input ?? {},
      Name: nested.name,
      StartDate: isoTime(nested.startedAtMs),
      StateMachineArn: nested.machine,
      Status: status,
      StopDate: isoTime(call.services.clock.now()),
    };
    if (status === 'SUCCEEDED') return { ...facts, Output: output };
    throw new StatesError(
      'States.TaskFailed',
      JSON.stringify({ ...facts, Input: JSON.stringify(facts.Input), Error: error, Cause: cause }),
    );
  } finally {
    call.signal.removeEventListener('abort', onAbort);
  }
};

const calls: Readonly<Record<string, (call: Call) => Promise<unknown>>> = {
  'arn:aws:states:::batch:submitJob.sync': submitJob,
  'arn:aws:states:::lambda:invoke': invokeFunction,
  'arn:aws:states:::sqs:sendMessage': sendMessage,
  'arn:aws:states:::sqs:sendMessage.waitForTaskToken': sendMessage,
  'arn:aws:states:::states:startExecution': startExecution,
  'arn:aws:states:::states:startExecution.sync:2': runExecution,
};

/** One attempt of a Task: its parameters, the call under its deadlines, the raw result. */
export const runTask = async (
  services: Services,
  state: TaskState,
  input: unknown,
  context: StateContext,
  frame: Frame,
): Promise<unknown> => {
  const open = resources[state.resource]!.token ? services.tokens.open() : null;
  try {
    context.taskToken = open?.token ?? null;
    const parameters = state.parameters(input, context);
    context.taskToken = null;
    const { payloadLimitBytes } = services;
    checkSize(parameters, payloadLimitBytes, `the input of state ${JSON.stringify(state.name)}`);
    if (!isObject(parameters))
      throw runtimeFault(`state ${JSON.stringify(state.name)}: Parameters is no object`);
    const heartbeatSeconds = state.heartbeatSeconds?.(input, context) ?? null;
    const deadlines = {
      timeoutMs: state.timeoutSeconds(input, context) * 1000,
      heartbeat:
        open === null || heartbeatSeconds === null
          ? null
          : { withinMs: heartbeatSeconds * 1000, lastBeatMs: open.lastBeatMs },
    };
    return await withDeadlines(services.clock, frame.scope, deadlines, async (signal) => {
      const result = await calls[state.resource]!({ services, state: state.name, parameters, signal });
      return open === null
        ? result
        : copyAcross(
            await open.answer,
            payloadLimitBytes,
            `the answer to state ${JSON.stringify(state.name)}`,
          );
    });
  } finally {
    open?.close();
  }
};
