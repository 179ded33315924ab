import { type AslEvent, type AslIntegrations, createAslRuntime } from '../../../local/asl/runtime.ts';
import { createVirtualClock } from './virtual-clock.ts';

export interface SentMessage {
  queueUrl: string;
  body: string;
  options: { delaySeconds?: number; messageGroupId?: string };
}

export type Functions = Record<string, (payload: never, signal: AbortSignal) => unknown>;

/** An error as a stage throws it: its name is what Retry and Catch see. */
export const named = (name: string, message = 'broken'): Error => Object.assign(new Error(message), { name });

interface Setup {
  machines: Record<string, unknown>;
  functions?: Functions;
  files?: Record<string, string[]>;
  integrations?: Partial<AslIntegrations>;
  draws?: number[];
  payloadLimitBytes?: number;
}

/** A runtime on a virtual clock whose integrations record what reaches them. */
export const createFixture = (setup: Setup) => {
  const clock = createVirtualClock();
  const sent: SentMessage[] = [];
  const events: AslEvent[] = [];
  const files: Record<string, string[]> = { ...setup.files };
  const draws = [...(setup.draws ?? [])];
  const integrations: AslIntegrations = {
    invokeFunction: async (name, payload, signal) => {
      const called = setup.functions?.[name];
      if (called === undefined) throw named('NoSuchFunction', name);
      return called(payload as never, signal);
    },
    sendMessage: async (queueUrl, body, options) => {
      sent.push({ queueUrl, body, options });
      return { messageId: `message-${sent.length}` };
    },
    submitJob: async () => ({}),
    readLines: async function* (bucket, key) {
      const lines = files[`${bucket}/${key}`];
      if (lines === undefined) throw named('ObjectMissing', `no ${bucket}/${key}`);
      yield* lines;
    },
    writeLines: async (bucket, key, lines) => {
      const written: string[] = [];
      for await (const line of lines) written.push(line);
      files[`${bucket}/${key}`] = written;
    },
    ...setup.integrations,
  };
  const runtime = createAslRuntime({
    machines: setup.machines,
    integrations,
    clock,
    random: { next: () => draws.shift() ?? 0 },
    payloadLimitBytes: setup.payloadLimitBytes,
    onEvent: (event) => events.push(event),
  });
  return {
    runtime,
    clock,
    sent,
    events,
    files,
    run: async (input: unknown = {}, machine = 'main', name = 'run-1') =>
      await runtime.result(await runtime.start(machine, name, input)),
  };
};

/** A machine of the given states, beginning with the first. */
export const machineOf = (states: Record<string, object>, rest: object = {}) => ({
  StartAt: Object.keys(states)[0],
  States: states,
  ...rest,
});

export const invoke = (functionName: string, rest: object = { End: true }) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::lambda:invoke',
  Parameters: { FunctionName: functionName, 'Payload.$': '$' },
  TimeoutSeconds: 60,
  ...rest,
});

export const askQueue = (rest: object = { End: true }) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::sqs:sendMessage.waitForTaskToken',
  Parameters: { QueueUrl: 'turns', MessageBody: { 'token.$': '$$.Task.Token', 'input.$': '$' } },
  TimeoutSeconds: 600,
  ...rest,
});

export const tokenOf = (message: SentMessage | undefined): string => JSON.parse(message?.body ?? '{}').token;
