import { describe, expect, it } from 'vitest';
import { askQueue, createFixture, invoke, machineOf, named, tokenOf } from './fixture.ts';

const waiting = machineOf({ Rest: { Type: 'Wait', Seconds: 100, End: true } });
const passing = machineOf({ Only: { Type: 'Pass', End: true } });

describe('start', () => {
  it('returns the first execution for the same name and input, whatever the order of the keys', async () => {
    let calls = 0;
    const { runtime } = createFixture({
      machines: { main: machineOf({ Work: invoke('work') }) },
      functions: { work: () => (calls += 1) },
    });

    const first = await runtime.start('main', 'run-1', { a: 1, b: 2 });
    await runtime.result(first);
    const second = await runtime.start('main', 'run-1', { b: 2, a: 1 });

    expect(second).toBe(first);
    expect(calls).toBe(1);
  });

  it('refuses the same name with another input', async () => {
    const { runtime } = createFixture({ machines: { main: passing } });
    await runtime.start('main', 'run-1', { a: 1 });

    await expect(runtime.start('main', 'run-1', { a: 2 })).rejects.toMatchObject({ name: 'ContractDiffers' });
  });

  it('takes the same name for another machine', async () => {
    const { runtime } = createFixture({ machines: { main: passing, other: passing } });

    const ids = [await runtime.start('main', 'run-1', {}), await runtime.start('other', 'run-1', {})];

    expect(new Set(ids).size).toBe(2);
  });

  it.each(['', 'a b', 'a:b', 'a/b', 'x'.repeat(81)])('refuses %j as a name', async (name) => {
    const { runtime } = createFixture({ machines: { main: passing } });

    await expect(runtime.start('main', name, {})).rejects.toMatchObject({ name: 'UsageWrong' });
  });

  it('refuses a machine that is not there', async () => {
    const { runtime } = createFixture({ machines: { main: passing } });

    await expect(runtime.start('gone', 'run-1', {})).rejects.toThrow('there is no state machine "gone"');
  });

  it('is not touched by a caller that changes its input afterwards', async () => {
    const { runtime } = createFixture({ machines: { main: passing } });
    const input = { list: [1] };
    const id = await runtime.start('main', 'run-1', input);

    input.list.push(2);

    const { output } = await runtime.result(id);
    expect(output).toEqual({ list: [1] });
    (output as { list: number[] }).list.push(3);
    expect((await runtime.describe(id)).output).toEqual({ list: [1] });
  });

  it('knows no execution that was never started', async () => {
    const { runtime } = createFixture({ machines: { main: passing } });

    await expect(runtime.describe('gone')).rejects.toMatchObject({ name: 'ObjectMissing' });
  });
});

describe('stop', () => {
  const busy = machineOf({
    All: {
      Type: 'Parallel',
      Branches: [
        machineOf({ Call: invoke('stuck') }),
        machineOf({ Ask: askQueue() }),
        machineOf({ Rest: { Type: 'Wait', Seconds: 1000, End: true } }),
        machineOf({ Again: invoke('broken', { Retry: [{ ErrorEquals: ['States.ALL'] }], End: true }) }),
        machineOf({
          Items: {
            Type: 'Map',
            ItemsPath: '$.items',
            ItemProcessor: machineOf({ Each: invoke('stuck') }),
            End: true,
          },
        }),
      ],
      Catch: [{ ErrorEquals: ['States.ALL'], Next: 'Saved' }],
      End: true,
    },
    Saved: { Type: 'Succeed' },
  });

  it('ends everything of the execution and leaves nothing behind', async () => {
    const signals: AbortSignal[] = [];
    const { runtime, clock, sent, events } = createFixture({
      machines: { main: busy },
      functions: {
        stuck: (_payload, signal) => {
          signals.push(signal);
          return new Promise(() => {});
        },
        broken: () => {
          throw named('Busy');
        },
      },
    });
    const id = await runtime.start('main', 'run-1', { items: [1, 2] });
    await clock.settle();

    await runtime.stop(id, 'the user asked');
    await clock.settle();

    expect(await runtime.describe(id)).toEqual({
      name: 'run-1',
      status: 'ABORTED',
      output: null,
      error: null,
      cause: 'the user asked',
    });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(await runtime.succeed(tokenOf(sent[0]), 1)).toBe(false);
    expect(clock.sleepers()).toBe(0);
    expect(events.some(({ type }) => type === 'StateCaught')).toBe(false);
    expect(events.at(-1)).toMatchObject({ type: 'ExecutionAborted', cause: 'the user asked' });
  });

  it('leaves an ended execution as it is', async () => {
    const { runtime } = createFixture({ machines: { main: passing } });
    const id = await runtime.start('main', 'run-1', 5);
    await runtime.result(id);

    await runtime.stop(id, 'late');

    expect(await runtime.describe(id)).toMatchObject({ status: 'SUCCEEDED', output: 5, cause: null });
  });

  it('reaches a loop that never waits', async () => {
    const loop = machineOf({
      Raise: { Type: 'Pass', Parameters: { 'n.$': 'States.MathAdd($.n, 1)' }, Next: 'Raise' },
    });
    const { runtime, clock } = createFixture({ machines: { main: loop } });
    const id = await runtime.start('main', 'run-1', { n: 0 });
    await clock.settle();

    await runtime.stop(id, 'enough');

    expect((await runtime.describe(id)).status).toBe('ABORTED');
  });

  it('ends a branch’s siblings when the branch fails', async () => {
    const signals: AbortSignal[] = [];
    const { run, clock } = createFixture({
      machines: {
        main: machineOf({
          Both: {
            Type: 'Parallel',
            Branches: [
              machineOf({ Call: invoke('stuck') }),
              machineOf({ Bad: { Type: 'Fail', Error: 'Bad' } }),
            ],
            End: true,
          },
        }),
      },
      functions: {
        stuck: (_payload, signal) => {
          signals.push(signal);
          return new Promise(() => {});
        },
      },
    });

    const { error } = await run();

    expect(error).toBe('Bad');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(clock.sleepers()).toBe(0);
  });
});

describe('close', () => {
  it('aborts what runs and starts nothing more', async () => {
    const { runtime, clock } = createFixture({ machines: { main: waiting } });
    const id = await runtime.start('main', 'run-1', {});
    await clock.settle();

    await runtime.close();

    expect(await runtime.describe(id)).toMatchObject({ status: 'ABORTED', cause: 'the runtime was closed' });
    await expect(runtime.start('main', 'run-2', {})).rejects.toMatchObject({ name: 'UsageWrong' });
    expect(clock.sleepers()).toBe(0);
  });
});

describe('the payload limit', () => {
  const grow = (fields: object) => machineOf({ Grow: { Type: 'Pass', End: true, ...fields } });
  it('lets 262,144 bytes through and not one more, counted in UTF-8', async () => {
    const { run } = createFixture({ machines: { main: grow({ Parameters: { 'a.$': '$' } }) } });

    // {"a":"…"} around 131,068 two-byte letters: 8 + 262,136 = 262,144 bytes; one letter more is too much (2 bytes over).
    const fits = await run('é'.repeat(131_068), 'main', 'fits');
    const over = await run('é'.repeat(131_069), 'main', 'over');

    expect(fits.status).toBe('SUCCEEDED');
    expect(over).toMatchObject({ status: 'FAILED', error: 'States.DataLimitExceeded' });
  });

  const big = (catching: string) =>
    machineOf({
      Work: invoke('big', {
        Catch: [{ ErrorEquals: [catching], ResultPath: null, Next: 'Saved' }],
        End: true,
      }),
      Saved: { Type: 'Succeed' },
    });
  const functions = { big: () => 'x'.repeat(262_144) };

  it.each([
    ['States.ALL', 'FAILED'],
    ['States.TaskFailed', 'FAILED'],
    ['States.DataLimitExceeded', 'SUCCEEDED'],
  ])('Catch of %s: %s', async (catching, status) => {
    const { run } = createFixture({ machines: { main: big(catching) }, functions });

    expect((await run()).status).toBe(status);
  });

  it('holds for answers to a token and for the input of a task', async () => {
    const { runtime, clock, sent, run } = createFixture({
      machines: { main: machineOf({ Ask: askQueue() }), small: machineOf({ Work: invoke('echo') }) },
      functions: { echo: (payload: unknown) => payload },
      payloadLimitBytes: 1000,
    });
    const id = await runtime.start('main', 'run-1', {});
    await clock.settle();

    await runtime.succeed(tokenOf(sent[0]), 'x'.repeat(1000));

    expect((await runtime.result(id)).error).toBe('States.DataLimitExceeded');
    const task = await run('y'.repeat(990), 'small', 'run-2');
    expect(task.error).toBe('States.DataLimitExceeded');
  });
});

describe('events', () => {
  it('tell the course of an execution', async () => {
    const { run, events } = createFixture({
      machines: {
        main: machineOf({
          Work: invoke('broken', { Catch: [{ ErrorEquals: ['Busy'], Next: 'Saved' }], End: true }),
          Saved: { Type: 'Succeed' },
        }),
      },
      functions: {
        broken: () => {
          throw named('Busy');
        },
      },
    });

    await run();

    expect(events.map(({ type, state, error }) => [type, state, error])).toEqual([
      ['ExecutionStarted', null, null],
      ['StateEntered', 'Work', null],
      ['StateCaught', 'Work', 'Busy'],
      ['StateExited', 'Work', null],
      ['StateEntered', 'Saved', null],
      ['StateExited', 'Saved', null],
      ['ExecutionSucceeded', null, null],
    ]);
  });
});
