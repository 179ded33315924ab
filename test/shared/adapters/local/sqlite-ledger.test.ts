import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSqliteLedger } from '../../../../shared/adapters/local/sqlite-ledger.ts';
import { createVirtualClock } from '../../../../shared/adapters/local/virtual-clock.ts';
import { ledgerContract } from '../../../contracts/ledger.contract.ts';
import { sourceUrl, startScript } from '../../../support/child-script.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

const ledgerAt = (file: string) => {
  const clock = createVirtualClock(1_700_000_000_000);
  return { clock, ledger: createSqliteLedger(file, { clock }) };
};
const newFile = () => path.join(temporaryDirectory(), 'ledger.sqlite');

for (const [name, file] of [
  ['SQLite file', newFile],
  ['SQLite in memory', () => ':memory:'],
] as const) {
  ledgerContract(name, async () => {
    const { clock, ledger } = ledgerAt(file());
    return {
      ledger,
      pass: (seconds) => clock.advance(seconds * 1000),
      dispose: async () => ledger.close(),
    };
  });
}

const openLedger = (file: string) => {
  const opened = ledgerAt(file);
  onTestFinished(() => opened.ledger.close());
  return opened;
};

describe('the ledger in a file', () => {
  it('keeps money and limits, but no leases, when it is opened again', async () => {
    const file = newFile();
    const { ledger: first } = ledgerAt(file);
    await first.setLimit('run/a', 1000);
    await first.settle(['run/a'], 'done', 12.25);
    await first.reserve(['run/a'], 'in flight', 300);
    await first.takeLease('job', 'ann', 60);
    first.close();

    const { ledger } = openLedger(file);

    expect(await ledger.balance('run/a')).toEqual({
      spentMicroUsd: 12.25,
      reservedMicroUsd: 300,
      limitMicroUsd: 1000,
    });
    expect([await ledger.leaseOwner('job'), await ledger.takeLease('job', 'bob', 60)]).toEqual([null, true]);
  });

  it('does not book a reservation twice under one id', async () => {
    const { ledger } = openLedger(':memory:');
    await ledger.setLimit('run/a', 100);
    await ledger.reserve(['run/a'], 'call', 80);

    const again = await ledger.reserve(['run/a'], 'call', 90);

    expect(again).toBe(true);
    expect((await ledger.balance('run/a')).reservedMicroUsd).toBe(90);
  });

  it('holds a limit among processes', async () => {
    const file = newFile();
    const { ledger } = openLedger(file);
    await ledger.setLimit('run/a', 1000);
    const script = (name: string) => `
      import { createSqliteLedger } from '${sourceUrl('shared/adapters/local/sqlite-ledger.ts')}';
      const ledger = createSqliteLedger(${JSON.stringify(file)}, { clock: { now: Date.now } });
      let reserved = 0;
      for (let at = 0; at < 200; at += 1) {
        if (await ledger.reserve(['run/a', 'run/a/lane/${name}'], '${name}' + at, 7)) reserved += 1;
      }
      console.log('reserved ' + reserved);
    `;

    const children = ['x', 'y'].map((name) => startScript(script(name)));
    const ends = await Promise.all(children.map((child) => child.ended));

    expect(ends).toEqual([0, 0]);
    const reserved = children.map((child) => Number(/reserved (\d+)/.exec(child.output())![1]));
    // 142 times 7 is 994: one more would pass the limit.
    expect(reserved[0]! + reserved[1]!).toBe(142);
    expect((await ledger.balance('run/a')).reservedMicroUsd).toBe(994);
    expect((await ledger.balance('run/a/lane/x')).reservedMicroUsd).toBe(reserved[0]! * 7);
  });

  it('has booked on all accounts or on none when its process is killed', async () => {
    const file = newFile();
    const child = startScript(`
      import { createSqliteLedger } from '${sourceUrl('shared/adapters/local/sqlite-ledger.ts')}';
      const ledger = createSqliteLedger(${JSON.stringify(file)}, { clock: { now: Date.now } });
      for (let at = 0; ; at += 1) {
        await ledger.reserve(['run/a', 'run/a/lane/x'], 'call ' + at, 5);
        if (at === 200) console.log('under way');
        await ledger.settle(['run/a', 'run/a/lane/x'], 'call ' + at, 3);
      }
    `);
    await child.says('under way');

    child.process.kill('SIGKILL');
    await child.ended;

    const { ledger } = openLedger(file);
    const [run, lane] = [await ledger.balance('run/a'), await ledger.balance('run/a/lane/x')];
    expect(lane).toEqual(run);
    expect(run.spentMicroUsd).toBeGreaterThanOrEqual(600);
    expect(run.spentMicroUsd % 3).toBe(0);
    expect([0, 5]).toContain(run.reservedMicroUsd);
  });

  it('says what to do about a file that is no ledger, and about a folder that is not there', () => {
    const file = newFile();
    writeFileSync(file, 'this is a text, and a long one, and certainly no database at all'.repeat(50));

    expect(() => ledgerAt(file)).toThrow(
      expect.objectContaining({ name: 'StorageFailed', remedy: 'it is not a ledger: remove or rename it' }),
    );
    expect(() => ledgerAt(path.join(file, 'x.sqlite'))).toThrow(
      expect.objectContaining({ name: 'StorageFailed', remedy: 'check permissions of its folder' }),
    );
  });
});
