import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSqliteLedger } from '../../../shared/adapters/local/sqlite-ledger.ts';
import { createVirtualClock } from '../../../shared/adapters/local/virtual-clock.ts';
import type { CallOutcome } from '../../../shared/domain/outcome.ts';
import { unknownUsage } from '../../../shared/domain/outcome.ts';
import { createLaneLimiter } from '../../../shared/domain/rate-limit.ts';
import type { CallGate, GateWish, Permit } from '../../../shared/ports/call-gate.ts';
import {
  callWithPermit,
  createAdaptiveGate,
  createSharedHoldGate,
  enterGate,
  timesTurnedAway,
} from '../../../shared/stages/call-gate.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const facts = {
  httpStatus: 200,
  responseId: null,
  servedModel: null,
  finishReason: 'stop',
  usage: unknownUsage,
};
const served: CallOutcome = { ...facts, status: 'ok', text: 'yes' };
const turnedAway = (retryAfterSeconds: number | null): CallOutcome => ({
  ...facts,
  httpStatus: 429,
  status: 'retry',
  kind: 'http_429',
  message: 'slow down',
  retryAfterSeconds,
});
const serverFault: CallOutcome = {
  ...facts,
  httpStatus: 503,
  status: 'retry',
  kind: 'http_503',
  message: 'busy',
  retryAfterSeconds: 30,
};
const wish: GateWish = { tokensAtMost: 100, timesTurnedAway: 0 };

const adaptiveGate = (options: { maxInFlight: number; longestWaitSeconds?: number }) => {
  const clock = createVirtualClock();
  const backoff = { baseSeconds: 1, maxSeconds: 60 };
  const gate = createAdaptiveGate({
    limiter: createLaneLimiter({ maxInFlight: options.maxInFlight, startAt: options.maxInFlight, backoff }),
    longestWaitSeconds: options.longestWaitSeconds ?? 30,
    clock,
  });
  onTestFinished(() => gate.close());
  return { clock, gate };
};
const permitOf = async (gate: CallGate, asked = wish): Promise<Permit> => {
  const entered = await gate.enter(asked);
  if ('waitSeconds' in entered) throw new Error('sent away');
  return entered;
};
/** Names of those who have entered or were sent away, in the order in which they came through. */
const watch = (gate: CallGate) => {
  const entered: string[] = [];
  return {
    entered,
    enter: (name: string, asked = wish) =>
      gate.enter(asked).then((result) => {
        entered.push('waitSeconds' in result ? `${name} comes back after ${result.waitSeconds}` : name);
        return result;
      }),
  };
};

describe('the gate of a lane in one process', () => {
  it('lets calls in up to the limit, and who waits first is next', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 2 });
    const { entered, enter } = watch(gate);
    const [first] = [await permitOf(gate), await permitOf(gate)];
    void enter('a');
    void enter('b');
    await clock.advance(0);
    const whileFull = [...entered];

    await first.leave(served);
    await clock.advance(0);

    expect(whileFull).toEqual([]);
    expect(entered).toEqual(['a']);
    expect(first.hasWaited).toBe(false);
  });

  it('lets nobody in before a Retry-After is over, and wakes those who wait then', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 4 });
    const { entered, enter } = watch(gate);
    const permit = await permitOf(gate);
    await permit.leave(turnedAway(20));
    const heldConcurrency = gate.concurrency.allowed();
    let grown = 0;
    gate.concurrency.onGrowth(() => {
      grown += 1;
    });
    void enter('a');

    await clock.advance(19_999);
    const before = [...entered];
    await clock.advance(1);

    expect([before, entered]).toEqual([[], ['a']]);
    expect(heldConcurrency).toBe(0);
    expect(grown).toBe(1);
    expect(gate.concurrency.allowed()).toBeGreaterThan(0);
  });

  it('sends away at once who would wait too long, and later who has waited too long', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 1, longestWaitSeconds: 30 });
    const { entered, enter } = watch(gate);
    const holder = await permitOf(gate);
    void enter('patient');
    await clock.advance(30_000);
    const afterWaiting = [...entered];

    await holder.leave(turnedAway(90));
    void enter('late');
    await clock.advance(0);

    expect(afterWaiting).toEqual(['patient comes back after 1']);
    expect(entered.slice(1)).toEqual(['late comes back after 90']);
  });

  it('lets others pass a request that was turned away twice and may not try an unproven slot', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 2 });
    const { entered, enter } = watch(gate);
    await permitOf(gate);
    void enter('careful', { ...wish, timesTurnedAway: 2 });
    void enter('first time');
    await clock.advance(0);

    expect(entered).toEqual(['first time']);
  });

  it('takes no notice of a server error, whatever wait that asks for', async () => {
    const { gate } = adaptiveGate({ maxInFlight: 4 });

    await (await permitOf(gate)).leave(serverFault);

    expect(gate.state()).toMatchObject({ limit: 4, episodes: 0, heldUntilMs: null });
  });

  it('is not held by a quota of a day: that stops the lane, and what waits must learn it', async () => {
    const { gate } = adaptiveGate({ maxInFlight: 4 });

    await (await permitOf(gate)).leave(turnedAway(86_400));

    expect(gate.state().heldUntilMs).toBeNull();
  });

  it('sends everyone away once it is closed', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 1 });
    const { entered, enter } = watch(gate);
    await permitOf(gate);
    void enter('waiting');

    gate.close();
    void enter('late');
    await clock.advance(0);

    expect(entered).toEqual(['waiting comes back after 1', 'late comes back after 1']);
    expect(clock.sleepers()).toBe(0);
  });
});

describe('a call through a gate', () => {
  it('gives its permit back where it throws', async () => {
    const { gate } = adaptiveGate({ maxInFlight: 1 });
    const permit = await permitOf(gate);

    await expect(
      callWithPermit(
        permit,
        () => Promise.reject<CallOutcome>(new Error('broken off')),
        async () => {},
      ),
    ).rejects.toThrow('broken off');

    expect(gate.state()).toMatchObject({ inFlight: 0, limit: 1 });
  });

  it('keeps its permit until the lane is marked as stopped', async () => {
    const { gate } = adaptiveGate({ maxInFlight: 1 });
    const permit = await permitOf(gate);
    const wrongKey: CallOutcome = {
      status: 'stop_lane',
      kind: 'http_401',
      message: 'wrong key',
      httpStatus: 401,
      responseId: null,
      servedModel: null,
      finishReason: null,
      usage: unknownUsage,
    };
    const marks: [string, number][] = [];

    await callWithPermit(
      permit,
      async () => wrongKey,
      async ({ message }) => {
        marks.push([message, gate.state().inFlight]);
      },
    );

    expect(marks).toEqual([['wrong key', 1]]);
    expect(gate.state().inFlight).toBe(0);
  });

  it('is not made where the lane was stopped while it waited', async () => {
    const { clock, gate } = adaptiveGate({ maxInFlight: 1 });
    const holder = await permitOf(gate);
    const entering = enterGate(gate, wish, async () => true);
    await holder.leave(served);
    await clock.advance(0);

    expect(await entering).toBe('stopped');
    expect(gate.state().inFlight).toBe(0);
  });

  it('counts how often its request was turned away for its rate alone', () => {
    const kinds = ['http_429', 'http_503', null, 'timeout', 'http_429'];

    expect(timesTurnedAway(kinds.map((kind) => ({ kind })))).toBe(2);
  });
});

describe('the gate of a lane whose workers share a ledger alone', () => {
  const workers = () => {
    const clock = createVirtualClock(1_900_000_000_000);
    const file = path.join(temporaryDirectory(), 'ledger.sqlite');
    const ledger = createSqliteLedger(file, { clock });
    onTestFinished(() => ledger.close());
    const gateOf = (lane: string) => createSharedHoldGate({ ledger, clock, name: `run/r/lane/${lane}` });
    return { clock, one: gateOf('a'), other: gateOf('a'), ofAnotherLane: gateOf('b') };
  };

  it('holds all of them while the provider asks one to wait', async () => {
    const { clock, one, other, ofAnotherLane } = workers();
    await (await permitOf(one)).leave(turnedAway(20));

    await clock.advance(5_500);
    const held = await other.enter(wish);
    const free = await ofAnotherLane.enter(wish);
    await clock.advance(14_500);

    expect(held).toEqual({ waitSeconds: 15 });
    expect(free).not.toHaveProperty('waitSeconds');
    expect(await other.enter(wish)).not.toHaveProperty('waitSeconds');
  });

  it('keeps the longer of two waits, whichever comes first', async () => {
    const { one, other } = workers();
    const [short, long, shorter] = [await permitOf(one), await permitOf(other), await permitOf(other)];

    await short.leave(turnedAway(10));
    await long.leave(turnedAway(60));
    await shorter.leave(turnedAway(5));

    expect(await one.enter(wish)).toEqual({ waitSeconds: 60 });
  });

  it('without a word of the provider holds nobody at the first refusal, and all at a second of the same request', async () => {
    const { one, other } = workers();
    const [first, again] = [await permitOf(one), await permitOf(one, { ...wish, timesTurnedAway: 1 })];

    await first.leave(turnedAway(null));
    const afterFirst = await other.enter(wish);
    await again.leave(turnedAway(null));

    expect(afterFirst).not.toHaveProperty('waitSeconds');
    expect(await other.enter(wish)).toEqual({ waitSeconds: 2 });
  });

  it('holds nobody for a server error or a quota of a day', async () => {
    const { one, other } = workers();

    await (await permitOf(one)).leave(serverFault);
    await (await permitOf(one)).leave(turnedAway(86_400));

    expect(await other.enter(wish)).not.toHaveProperty('waitSeconds');
  });
});
