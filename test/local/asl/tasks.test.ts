import { describe, expect, it } from 'vitest';
import { askQueue, createFixture, invoke, machineOf, named, tokenOf } from './fixture.ts';

const never = () => new Promise(() => {});

describe('task tokens', () => {
  const machines = {
    main: machineOf({
      Ask: askQueue({
        HeartbeatSeconds: 30,
        ResultPath: '$.answer',
        Catch: [
          { ErrorEquals: ['Refused'], ResultPath: '$.error', Next: 'Saved' },
          { ErrorEquals: ['States.HeartbeatTimeout'], ResultPath: '$.error', Next: 'Saved' },
          { ErrorEquals: ['States.Timeout'], ResultPath: '$.error', Next: 'Saved' },
        ],
        End: true,
      }),
      Saved: { Type: 'Pass', OutputPath: '$.error', End: true },
    }),
  };
  const ask = async () => {
    const fixture = createFixture({ machines });
    const id = await fixture.runtime.start('main', 'run-1', { view: 7 });
    await fixture.clock.settle();
    return { ...fixture, id, token: tokenOf(fixture.sent[0]) };
  };

  it('sends the message with its token and goes on with the answer', async () => {
    const { runtime, sent, id, token } = await ask();

    const taken = await runtime.succeed(token, { turns: 3 });

    const { status, output } = await runtime.result(id);
    expect(taken).toBe(true);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.queueUrl).toBe('turns');
    expect(JSON.parse(sent[0]!.body)).toEqual({ token, input: { view: 7 } });
    expect(token.length).toBeGreaterThan(20);
    expect({ status, output }).toEqual({ status: 'SUCCEEDED', output: { view: 7, answer: { turns: 3 } } });
  });

  it('raises a failure under its own name', async () => {
    const { runtime, id, token } = await ask();

    await runtime.fail(token, 'Refused', 'policy');

    const { output } = await runtime.result(id);
    expect(output).toEqual({ Error: 'Refused', Cause: 'policy' });
  });

  it('takes one answer only, and none for a token it never gave', async () => {
    const { runtime, id, token } = await ask();
    await runtime.succeed(token, 1);
    await runtime.result(id);

    const late = [
      await runtime.succeed(token, 2),
      await runtime.fail(token, 'Refused', ''),
      await runtime.heartbeat(token),
      await runtime.succeed('unknown', 1),
    ];

    expect(late).toEqual([false, false, false, false]);
  });

  it('fails without a heartbeat, and refuses the answer that comes after', async () => {
    const { runtime, clock, id, token } = await ask();

    await clock.advance(29_999);
    const before = await runtime.describe(id);
    await clock.advance(1);

    expect(before.status).toBe('RUNNING');
    expect((await runtime.result(id)).output).toMatchObject({ Error: 'States.HeartbeatTimeout' });
    expect(await runtime.succeed(token, 1)).toBe(false);
    expect(clock.sleepers()).toBe(0);
  });

  it('lives on heartbeats until its timeout', async () => {
    const { runtime, clock, id, token } = await ask();

    const beats: boolean[] = [];
    for (let elapsedSeconds = 0; elapsedSeconds < 600; elapsedSeconds += 20) {
      beats.push(await runtime.heartbeat(token));
      await clock.advance(20_000);
    }

    expect(beats).toEqual(Array(30).fill(true));
    expect((await runtime.result(id)).output).toMatchObject({ Error: 'States.Timeout' });
    expect(clock.sleepers()).toBe(0);
  });

  it('counts the heartbeat from the last beat', async () => {
    const { runtime, clock, id, token } = await ask();

    await clock.advance(25_000);
    await runtime.heartbeat(token);
    await clock.advance(29_999);
    const before = await runtime.describe(id);
    await clock.advance(1);

    expect(before.status).toBe('RUNNING');
    expect((await runtime.describe(id)).status).toBe('SUCCEEDED');
  });

  it('takes an answer that comes before the message is acknowledged', async () => {
    const acknowledged = Promise.withResolvers<void>();
    const fixture = createFixture({
      machines,
      integrations: {
        sendMessage: async (_queueUrl, body) => {
          await fixture.runtime.succeed(JSON.parse(body).token, 'early');
          await acknowledged.promise;
          return { messageId: 'm' };
        },
      },
    });
    const id = await fixture.runtime.start('main', 'run-1', {});
    await fixture.clock.settle();

    acknowledged.resolve();

    expect((await fixture.runtime.result(id)).output).toEqual({ answer: 'early' });
  });

  it('survives a failure that comes before a failing acknowledgement', async () => {
    const fixture = createFixture({
      machines: { main: machineOf({ Ask: askQueue() }) },
      integrations: {
        sendMessage: async (_queueUrl, body) => {
          await fixture.runtime.fail(JSON.parse(body).token, 'Refused', 'x');
          throw named('QueueGone', 'no such queue');
        },
      },
    });

    const { status, error, cause } = await fixture.run();

    expect({ status, error, cause }).toEqual({
      status: 'FAILED',
      error: 'QueueGone',
      cause: 'no such queue',
    });
  });

  it('gives every attempt a token of its own, with the retry count in the context', async () => {
    const { runtime, clock, sent } = createFixture({
      machines: {
        main: machineOf({
          Ask: askQueue({
            Parameters: {
              QueueUrl: 'turns',
              MessageBody: { 'token.$': '$$.Task.Token', 'attempt.$': '$$.State.RetryCount' },
            },
            TimeoutSecondsPath: '$.seconds',
            TimeoutSeconds: undefined,
            Retry: [{ ErrorEquals: ['States.Timeout'], IntervalSeconds: 1 }],
            End: true,
          }),
        }),
      },
    });
    const id = await runtime.start('main', 'run-1', { seconds: 10 });
    await clock.advance(11_000);

    const [first, second] = sent.map(tokenOf);
    const answered = [await runtime.succeed(first!, 1), await runtime.succeed(second!, 2)];

    expect(sent.map(({ body }) => JSON.parse(body).attempt)).toEqual([0, 1]);
    expect(answered).toEqual([false, true]);
    expect((await runtime.result(id)).output).toBe(2);
  });
});

describe('time limits of a task', () => {
  it('aborts the call, frees its timers and reports States.Timeout', async () => {
    const signals: AbortSignal[] = [];
    const { runtime, clock } = createFixture({
      machines: { main: machineOf({ Work: invoke('stuck') }) },
      functions: {
        stuck: (_payload, signal) => {
          signals.push(signal);
          return never();
        },
      },
    });
    const id = await runtime.start('main', 'run-1', {});

    await clock.advance(59_999);
    const before = signals[0]?.aborted;
    await clock.advance(1);

    expect(before).toBe(false);
    expect(signals[0]?.aborted).toBe(true);
    expect(await runtime.describe(id)).toMatchObject({ status: 'FAILED', error: 'States.Timeout' });
    expect(clock.sleepers()).toBe(0);
  });

  it('leaves no timer, and no aborted signal, behind a call that ended in time', async () => {
    const signals: AbortSignal[] = [];
    const { run, clock } = createFixture({
      machines: { main: machineOf({ Work: invoke('quick') }) },
      functions: { quick: (_payload, signal) => signals.push(signal) },
    });

    const { status } = await run();

    expect(status).toBe('SUCCEEDED');
    expect(clock.sleepers()).toBe(0);
    expect(signals[0]?.aborted).toBe(false);
  });

  it('ends the whole execution at the machine’s own limit', async () => {
    const { runtime, clock, events } = createFixture({
      machines: {
        main: machineOf({ Rest: { Type: 'Wait', Seconds: 100, End: true } }, { TimeoutSeconds: 10 }),
      },
    });
    const id = await runtime.start('main', 'run-1', {});

    await clock.advance(10_000);

    expect(await runtime.describe(id)).toMatchObject({ status: 'TIMED_OUT', error: 'States.Timeout' });
    expect(events.map(({ type }) => type)).toEqual(['ExecutionStarted', 'StateEntered', 'ExecutionTimedOut']);
    expect(clock.sleepers()).toBe(0);
  });

  it('waits for Seconds and until a Timestamp, to the millisecond', async () => {
    const { runtime, clock } = createFixture({
      machines: {
        main: machineOf({
          First: { Type: 'Wait', SecondsPath: '$.seconds', Next: 'Second' },
          Second: { Type: 'Wait', Timestamp: '2030-01-01T00:01:00.500Z', End: true },
        }),
      },
    });
    const id = await runtime.start('main', 'run-1', { seconds: 20 });

    await clock.advance(60_499);
    const before = await runtime.describe(id);
    await clock.advance(1);

    expect(before.status).toBe('RUNNING');
    expect((await runtime.describe(id)).status).toBe('SUCCEEDED');
  });

  it('waits for longer than a 32-bit timer holds', async () => {
    const fortyDaysMs = 40 * 24 * 3600 * 1000;
    const { runtime, clock } = createFixture({
      machines: { main: machineOf({ Rest: { Type: 'Wait', Seconds: fortyDaysMs / 1000, End: true } }) },
    });
    const id = await runtime.start('main', 'run-1', {});

    await clock.advance(fortyDaysMs - 1);
    const before = await runtime.describe(id);
    await clock.advance(1);

    expect(before.status).toBe('RUNNING');
    expect((await runtime.describe(id)).status).toBe('SUCCEEDED');
  });
});

describe('retries', () => {
  /** Milliseconds at which each attempt of a task that always fails began. */
  const attemptTimes = async (retrier: object, draws: number[] = []) => {
    const times: number[] = [];
    const { runtime, clock } = createFixture({
      machines: {
        main: machineOf({
          Work: invoke('busy', { Retry: [{ ErrorEquals: ['Busy'], ...retrier }], End: true }),
        }),
      },
      functions: {
        busy: () => {
          times.push(clock.monotonic());
          throw named('Busy');
        },
      },
      draws,
    });
    await runtime.start('main', 'run-1', {});
    await clock.advance(3600_000);
    expect(clock.sleepers()).toBe(0);
    return times;
  };

  it('backs off from 1 s, doubling, three times, when nothing is said', async () => {
    expect(await attemptTimes({})).toEqual([0, 1000, 3000, 7000]);
  });

  it('grows by its rate', async () => {
    const times = await attemptTimes({ IntervalSeconds: 2, BackoffRate: 1.5, MaxAttempts: 3 });

    expect(times).toEqual([0, 2000, 5000, 9500]);
  });

  it('stays under its cap', async () => {
    const times = await attemptTimes({
      IntervalSeconds: 10,
      BackoffRate: 3,
      MaxAttempts: 4,
      MaxDelaySeconds: 40,
    });

    expect(times).toEqual([0, 10_000, 40_000, 80_000, 120_000]);
  });

  it('draws each delay between nothing and the capped one with full jitter', async () => {
    const retrier = {
      IntervalSeconds: 8,
      BackoffRate: 2,
      MaxAttempts: 3,
      MaxDelaySeconds: 20,
      JitterStrategy: 'FULL',
    };

    const times = await attemptTimes(retrier, [0.5, 0.25, 0.75]);

    expect(times).toEqual([0, 4000, 8000, 23_000]);
  });

  it('counts the attempts of each retrier on its own', async () => {
    const thrown = ['A', 'B', 'A', 'B', 'A'];
    const { runtime, clock, events } = createFixture({
      machines: {
        main: machineOf({
          Work: invoke('mixed', {
            Retry: [
              { ErrorEquals: ['A'], MaxAttempts: 2, IntervalSeconds: 1, BackoffRate: 1 },
              { ErrorEquals: ['B'], MaxAttempts: 2, IntervalSeconds: 5, BackoffRate: 1 },
            ],
            End: true,
          }),
        }),
      },
      functions: {
        mixed: () => {
          throw named(thrown.shift() ?? 'Unexpected');
        },
      },
    });
    const id = await runtime.start('main', 'run-1', {});

    await clock.advance(60_000);

    const retried = events.filter(({ type }) => type === 'StateRetried');
    expect(retried.map(({ error }) => error)).toEqual(['A', 'B', 'A', 'B']);
    expect((await runtime.describe(id)).error).toBe('A');
  });
});

describe('integrations', () => {
  it('reports a thrown error as Lambda does, without its stack', async () => {
    const { run } = createFixture({
      machines: { main: machineOf({ Work: invoke('broken') }) },
      functions: {
        broken: () => {
          throw named('BudgetSpent', 'lane a has 0 left');
        },
      },
    });

    const { error, cause } = await run();

    expect(error).toBe('BudgetSpent');
    expect(JSON.parse(cause ?? '')).toEqual({ errorType: 'BudgetSpent', errorMessage: 'lane a has 0 left' });
  });

  it('keeps the state data out of a function’s reach', async () => {
    const kept: { list: number[] }[] = [];
    const { run } = createFixture({
      machines: {
        main: machineOf({
          First: invoke('spoil', { ResultPath: '$.first', Next: 'Second' }),
          Second: invoke('spoil', { ResultPath: '$.second', OutputPath: '$', End: true }),
        }),
      },
      functions: {
        spoil: (payload: { list: number[] }) => {
          for (const earlier of kept) earlier.list.push(99);
          payload.list.push(1);
          kept.push(payload);
          return payload;
        },
      },
    });

    const { output } = await run({ list: [0] });

    expect(output).toMatchObject({
      list: [0],
      first: { Payload: { list: [0, 1] } },
      second: { Payload: { list: [0, 1] } },
    });
  });

  it('carries results as JSON would: dates as text, undefined as nothing', async () => {
    const { run } = createFixture({
      machines: {
        main: machineOf({
          Work: invoke('odd', { OutputPath: '$.Payload', Next: 'More' }),
          More: invoke('none', { OutputPath: '$.Payload', ResultPath: '$', End: true }),
        }),
      },
      functions: {
        odd: () => ({ at: new Date(0), gone: undefined }),
        none: (payload: unknown) => [payload, undefined],
      },
    });

    expect((await run()).output).toEqual([{ at: '1970-01-01T00:00:00.000Z' }, null]);
  });

  it('sends a message without waiting', async () => {
    const { run, sent } = createFixture({
      machines: {
        main: machineOf({
          Tell: {
            Type: 'Task',
            Resource: 'arn:aws:states:::sqs:sendMessage',
            Parameters: {
              'QueueUrl.$': '$.queue',
              MessageBody: 'plain',
              DelaySeconds: 5,
              'MessageGroupId.$': '$.group',
            },
            TimeoutSeconds: 10,
            End: true,
          },
        }),
      },
    });

    const { output } = await run({ queue: 'q', group: 'g' });

    expect(output).toEqual({ MessageId: 'message-1' });
    expect(sent).toEqual([
      { queueUrl: 'q', body: 'plain', options: { delaySeconds: 5, messageGroupId: 'g' } },
    ]);
  });

  it('runs a batch job and fails with States.TaskFailed where it has no better name', async () => {
    const submitted: unknown[] = [];
    const { run } = createFixture({
      machines: {
        main: machineOf({
          Job: {
            Type: 'Task',
            Resource: 'arn:aws:states:::batch:submitJob.sync',
            Parameters: { 'JobName.$': '$.name', JobQueue: 'gpu', JobDefinition: 'worker' },
            TimeoutSeconds: 10,
            End: true,
          },
        }),
      },
      integrations: {
        submitJob: async (parameters) => {
          submitted.push(parameters);
          if (submitted.length === 2) throw new Error('exit code 3');
          return { Status: 'SUCCEEDED' };
        },
      },
    });

    const outcomes = [await run({ name: 'a' }, 'main', 'one'), await run({ name: 'b' }, 'main', 'two')];

    expect(submitted[0]).toEqual({ JobName: 'a', JobQueue: 'gpu', JobDefinition: 'worker' });
    expect(outcomes[0]?.output).toEqual({ Status: 'SUCCEEDED' });
    expect(outcomes[1]).toMatchObject({ error: 'States.TaskFailed', cause: 'exit code 3' });
  });
});

describe('nested executions', () => {
  const parent = (resource: string, parameters: object) =>
    machineOf({
      Nest: {
        Type: 'Task',
        Resource: `arn:aws:states:::states:${resource}`,
        Parameters: { StateMachineArn: 'arn:aws:states:eu-central-1:1:stateMachine:child', ...parameters },
        TimeoutSeconds: 100,
        End: true,
      },
    });
  const child = machineOf({ Work: invoke('work', { OutputPath: '$.Payload', End: true }) });

  it('waits for the child and parses its output', async () => {
    const { run, runtime } = createFixture({
      machines: { main: parent('startExecution.sync:2', { 'Input.$': '$', Name: 'inner' }), child },
      functions: { work: ({ n }: { n: number }) => ({ twice: 2 * n }) },
    });

    const { output } = await run({ n: 4 });

    expect(output).toMatchObject({
      Name: 'inner',
      Status: 'SUCCEEDED',
      Input: { n: 4 },
      Output: { twice: 8 },
    });
    const { ExecutionArn } = output as { ExecutionArn: string };
    expect(await runtime.describe(ExecutionArn)).toMatchObject({ name: 'inner', output: { twice: 8 } });
  });

  it('raises States.TaskFailed with the child’s error in its cause', async () => {
    const { run } = createFixture({
      machines: { main: parent('startExecution.sync:2', {}), child },
      functions: {
        work: () => {
          throw named('LaneStopped');
        },
      },
    });

    const { error, cause } = await run();

    expect(error).toBe('States.TaskFailed');
    expect(JSON.parse(cause ?? '')).toMatchObject({ Status: 'FAILED', Error: 'LaneStopped' });
  });

  it('does not wait without .sync', async () => {
    const { run, runtime } = createFixture({
      machines: { main: parent('startExecution', { Name: 'inner' }), child },
      functions: { work: never },
    });

    const { output } = await run();

    const { ExecutionArn } = output as { ExecutionArn: string };
    expect((await runtime.describe(ExecutionArn)).status).toBe('RUNNING');
  });

  it('makes a name where none is given, so that two may run', async () => {
    const names: string[] = [];
    const both = machineOf({
      Two: {
        Type: 'Parallel',
        Branches: ['A', 'B'].map((name) =>
          machineOf({ [name]: parent('startExecution.sync:2', { Input: { same: 1 } }).States.Nest! }),
        ),
        End: true,
      },
    });
    const { run } = createFixture({
      machines: {
        main: both,
        child: machineOf({
          Look: invoke('work', {
            Parameters: { FunctionName: 'work', 'Payload.$': '$$.Execution.Name' },
            End: true,
          }),
        }),
      },
      functions: { work: (name: string) => names.push(name) },
    });

    await run();

    expect(new Set(names).size).toBe(2);
  });

  it('joins a child of the same name and input, and refuses another input', async () => {
    let calls = 0;
    const { run } = createFixture({
      machines: { main: parent('startExecution.sync:2', { Name: 'inner', 'Input.$': '$' }), child },
      functions: { work: () => (calls += 1) },
    });

    const outcomes = [
      await run({ n: 1 }, 'main', 'one'),
      await run({ n: 1 }, 'main', 'two'),
      await run({ n: 2 }, 'main', 'three'),
    ];

    expect(outcomes.map(({ output }) => (output as { Output?: number } | null)?.Output)).toEqual([
      1,
      1,
      undefined,
    ]);
    expect(outcomes[2]?.error).toBe('StepFunctions.ExecutionAlreadyExistsException');
  });

  it('stops the child when the task that waits for it times out', async () => {
    const signals: AbortSignal[] = [];
    const { runtime, clock, events } = createFixture({
      machines: {
        main: parent('startExecution.sync:2', { Name: 'inner' }),
        child: machineOf({ Work: invoke('work', { TimeoutSeconds: 1000, End: true }) }),
      },
      functions: {
        work: (_payload, signal) => {
          signals.push(signal);
          return never();
        },
      },
    });
    const id = await runtime.start('main', 'run-1', {});

    await clock.advance(100_000);

    expect((await runtime.describe(id)).error).toBe('States.Timeout');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(events.filter(({ type }) => type === 'ExecutionAborted').map(({ machine }) => machine)).toEqual([
      'child',
    ]);
    expect(clock.sleepers()).toBe(0);
  });
});
