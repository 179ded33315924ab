import { describe, expect, it, onTestFinished } from 'vitest';
import type { Ledger } from '../../shared/ports/ledger.ts';

export interface LedgerUnderTest {
  ledger: Ledger;
  /** Lets so many seconds go by, on a virtual clock or by waiting. */
  pass(seconds: number): Promise<void>;
  dispose?(): Promise<void>;
}

/** What every Ledger does. `makeLedger` gives an empty one for each test. */
export const ledgerContract = (name: string, makeLedger: () => Promise<LedgerUnderTest>): void => {
  const emptyLedger = async () => {
    const made = await makeLedger();
    if (made.dispose) onTestFinished(made.dispose);
    return made;
  };
  const run = 'run/quick-000000000000';
  const laneA = `${run}/lane/a`;
  const laneB = `${run}/lane/b`;

  describe(`Ledger contract: ${name}`, () => {
    it('knows nothing of a new account', async () => {
      const { ledger } = await emptyLedger();

      const balance = await ledger.balance(run);

      expect(balance).toEqual({ spentMicroUsd: 0, reservedMicroUsd: 0, limitMicroUsd: null });
    });

    it('reserves up to the limit and not a millionth more', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 1000);

      const [within, upTo, over] = [
        await ledger.reserve([run], 'one', 600),
        await ledger.reserve([run], 'two', 400),
        await ledger.reserve([run], 'three', 1),
      ];

      expect([within, upTo, over]).toEqual([true, true, false]);
      expect(await ledger.balance(run)).toEqual({
        spentMicroUsd: 0,
        reservedMicroUsd: 1000,
        limitMicroUsd: 1000,
      });
    });

    it('reserves without end where there is no limit', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, null);

      const reserved = await ledger.reserve([run], 'one', 5_000_000_000_000);

      expect(reserved).toBe(true);
    });

    it('reserves on all accounts or on none', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 1000);
      await ledger.setLimit(laneA, 100);

      const tooMuchForLane = await ledger.reserve([run, laneA], 'one', 101);
      const fine = await ledger.reserve([run, laneB], 'two', 950);
      const tooMuchForRun = await ledger.reserve([laneA, run], 'three', 60);

      expect([tooMuchForLane, fine, tooMuchForRun]).toEqual([false, true, false]);
      const balances = await Promise.all([run, laneA, laneB].map((account) => ledger.balance(account)));
      expect(balances.map((balance) => balance.reservedMicroUsd)).toEqual([950, 0, 950]);
    });

    it('gives money only once to reservations made at once', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 1000);
      await ledger.setLimit(laneA, 700);
      const ids = Array.from({ length: 20 }, (_, at) => `reservation-${at}`);

      const reserved = await Promise.all(ids.map((id) => ledger.reserve([run, laneA], id, 100)));

      expect(reserved.filter(Boolean)).toHaveLength(7);
      expect((await ledger.balance(run)).reservedMicroUsd).toBe(700);
      expect((await ledger.balance(laneA)).reservedMicroUsd).toBe(700);
    });

    it('replaces a reservation by the cost when it is settled', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 1000);
      await ledger.reserve([run, laneA], 'one', 900);
      await ledger.reserve([run, laneA], 'other', 50);

      await ledger.settle([run, laneA], 'one', 120.5);

      for (const account of [run, laneA]) {
        expect(await ledger.balance(account)).toMatchObject({ spentMicroUsd: 120.5, reservedMicroUsd: 50 });
      }
      expect(await ledger.reserve([run], 'next', 829)).toBe(true);
      expect(await ledger.reserve([run], 'too much', 1)).toBe(false);
    });

    it('books a cost over its reservation and over the limit: the money is gone', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 100);
      await ledger.reserve([run], 'one', 100);

      await ledger.settle([run], 'one', 130);

      expect(await ledger.balance(run)).toEqual({
        spentMicroUsd: 130,
        reservedMicroUsd: 0,
        limitMicroUsd: 100,
      });
    });

    it('books the cost alone for a reservation that it does not know', async () => {
      const { ledger } = await emptyLedger();
      await ledger.reserve([run], 'one', 10);

      await ledger.settle([run, laneA], 'unknown', 7);

      expect(await ledger.balance(run)).toMatchObject({ spentMicroUsd: 7, reservedMicroUsd: 10 });
      expect(await ledger.balance(laneA)).toMatchObject({ spentMicroUsd: 7, reservedMicroUsd: 0 });
    });

    it('goes on with a raised limit', async () => {
      const { ledger } = await emptyLedger();
      await ledger.setLimit(run, 10);
      await ledger.settle([run], 'one', 10);
      const before = await ledger.reserve([run], 'two', 5);

      await ledger.setLimit(run, 15);

      expect([before, await ledger.reserve([run], 'two', 5)]).toEqual([false, true]);
      expect((await ledger.balance(run)).spentMicroUsd).toBe(10);
    });

    it('drops the reservations of dead calls and nothing else', async () => {
      const { ledger } = await emptyLedger();
      await ledger.settle([run], 'done', 3);
      for (const id of ['one', 'two']) await ledger.reserve([run, laneA], id, 20);

      await ledger.dropReservations(run);
      await ledger.settle([run], 'one', 5);

      expect(await ledger.balance(run)).toMatchObject({ spentMicroUsd: 8, reservedMicroUsd: 0 });
      expect(await ledger.balance(laneA)).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 40 });
    });

    it('gives a lease to one owner', async () => {
      const { ledger } = await emptyLedger();

      const taken = await Promise.all(
        ['ann', 'bob', 'cid'].map((owner) => ledger.takeLease('job', owner, 60)),
      );

      expect(taken.filter(Boolean)).toHaveLength(1);
      expect(await ledger.leaseOwner('job')).toBe(['ann', 'bob', 'cid'][taken.indexOf(true)]);
      expect(await ledger.leaseOwner('another job')).toBeNull();
    });

    it('lets an owner renew its lease, and others take it once it has run out', async () => {
      const { ledger, pass } = await emptyLedger();
      await ledger.takeLease('job', 'ann', 2);

      await pass(1);
      const renewed = await ledger.takeLease('job', 'ann', 3);
      await pass(2);
      const tooEarly = await ledger.takeLease('job', 'bob', 60);
      await pass(2);
      const ownerAfterwards = await ledger.leaseOwner('job');
      const inTime = await ledger.takeLease('job', 'bob', 60);

      expect([renewed, tooEarly, ownerAfterwards, inTime]).toEqual([true, false, null, true]);
      expect(await ledger.leaseOwner('job')).toBe('bob');
    });

    it('frees a lease when its owner gives it back, not when somebody else does', async () => {
      const { ledger } = await emptyLedger();
      await ledger.takeLease('job', 'ann', 60);

      await ledger.releaseLease('job', 'bob');
      const afterBob = await ledger.leaseOwner('job');
      await ledger.releaseLease('job', 'ann');

      expect([afterBob, await ledger.leaseOwner('job')]).toEqual(['ann', null]);
      expect(await ledger.takeLease('job', 'bob', 60)).toBe(true);
    });
  });
};
