import { describe, expect, it } from 'vitest';
import { createSystemClock } from '../../../../shared/adapters/local/system-clock.ts';
import { createVirtualClock } from '../../../../shared/adapters/local/virtual-clock.ts';

describe('the virtual clock', () => {
  it('stands still until it is told to go on', async () => {
    const clock = createVirtualClock(1_700_000_000_000);
    let isAwake = false;
    clock.sleep(1000).then(() => {
      isAwake = true;
    });

    await clock.advance(999);
    const before = [isAwake, clock.now(), clock.monotonic()];
    await clock.advance(1);

    expect(before).toEqual([false, 1_700_000_000_999, 999]);
    expect([isAwake, clock.now(), clock.monotonic()]).toEqual([true, 1_700_000_001_000, 1000]);
  });

  it('wakes sleepers in the order of their times, equal ones in the order in which they lay down', async () => {
    const clock = createVirtualClock();
    const woken: string[] = [];
    for (const [name, ms] of [
      ['c', 30],
      ['a', 10],
      ['b', 20],
      ['a too', 10],
    ] as const) {
      clock.sleep(ms).then(() => woken.push(`${name} at ${clock.monotonic()}`));
    }

    await clock.advance(100);

    expect(woken).toEqual(['a at 10', 'a too at 10', 'b at 20', 'c at 30']);
    expect(clock.monotonic()).toBe(100);
  });

  it('lets what a sleeper does next happen before the next wakes', async () => {
    const clock = createVirtualClock();
    const log: string[] = [];
    const walk = async (name: string, steps: number[]) => {
      for (const ms of steps) {
        await clock.sleep(ms);
        for (let tick = 0; tick < 10; tick += 1) await Promise.resolve();
        await new Promise((resolve) => setImmediate(resolve));
        log.push(`${name}${clock.monotonic()}`);
      }
    };
    walk('x', [5, 5, 5]);
    walk('y', [7, 7]);

    await clock.advance(15);

    expect(log).toEqual(['x5', 'y7', 'x10', 'y14', 'x15']);
  });

  it('rejects a sleep with the reason of its signal and forgets the sleeper', async () => {
    const clock = createVirtualClock();
    const [reason, stop] = [new Error('enough'), new AbortController()];
    const sleeping = clock.sleep(1000, stop.signal);

    stop.abort(reason);

    await expect(sleeping).rejects.toBe(reason);
    await expect(clock.sleep(1, stop.signal)).rejects.toBe(reason);
    expect(clock.sleepers()).toBe(0);
  });

  it('runs until nobody sleeps, or to a limit', async () => {
    const clock = createVirtualClock();
    const beat = async (times: number) => {
      for (let at = 0; at < times; at += 1) await clock.sleep(10);
    };

    beat(3);
    const passed = await clock.runUntilIdle();
    beat(1000);
    const passedToLimit = await clock.runUntilIdle(95);

    expect([passed, passedToLimit, clock.monotonic()]).toEqual([30, 95, 125]);
  });

  it('runs until some work is done, and hands on its failure', async () => {
    const clock = createVirtualClock();
    const work = async (fails: boolean) => {
      await clock.sleep(60_000);
      if (fails) throw new Error('broke');
      return 'done';
    };

    const result = await clock.runUntilSettled(work(false));
    const failing = clock.runUntilSettled(work(true));

    await expect(failing).rejects.toThrow('broke');
    expect([result, clock.monotonic()]).toEqual(['done', 120_000]);
  });

  it('keeps many sleepers in order', async () => {
    const clock = createVirtualClock();
    const woken: number[] = [];
    // 7919 is prime: the times are all of 1…2000, shuffled.
    const times = Array.from({ length: 2000 }, (_, at) => ((at * 7919) % 2000) + 1);
    const stops = times.map((ms) => {
      const stop = new AbortController();
      clock.sleep(ms, stop.signal).then(
        () => woken.push(ms),
        () => {},
      );
      return { ms, stop };
    });
    for (const { ms, stop } of stops) if (ms % 3 === 0) stop.abort();

    await clock.advance(2000);

    expect(woken).toEqual(Array.from({ length: 2000 }, (_, at) => at + 1).filter((ms) => ms % 3 !== 0));
  });
});

describe('the system clock', () => {
  it('sleeps, and its monotonic time goes on meanwhile', async () => {
    const clock = createSystemClock();
    const [began, beganNow] = [clock.monotonic(), clock.now()];

    await clock.sleep(0.5);
    await clock.sleep(0);
    await clock.sleep(-1);

    expect(clock.monotonic()).toBeGreaterThan(began);
    expect(beganNow).toBeGreaterThan(Date.UTC(2024, 0));
  });

  it('rejects a sleep with the reason of its signal, also one too long for a timer', async () => {
    const clock = createSystemClock();
    const [reason, stop] = [new Error('enough'), new AbortController()];
    const sleeps = [clock.sleep(60_000, stop.signal), clock.sleep(1e12, stop.signal)];

    setImmediate(() => stop.abort(reason));

    for (const sleep of sleeps) await expect(sleep).rejects.toBe(reason);
    await expect(clock.sleep(0, stop.signal)).rejects.toBe(reason);
  });
});
