import { DatabaseSync } from 'node:sqlite';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ledger } from '../../ports/ledger.ts';

export interface SqliteLedger extends Ledger {
  close(): void;
}

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA busy_timeout = 10000;
  CREATE TABLE IF NOT EXISTS accounts (
    account TEXT PRIMARY KEY,
    spent REAL NOT NULL DEFAULT 0,
    reserved REAL NOT NULL DEFAULT 0,
    spendLimit REAL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS reservations (
    account TEXT NOT NULL,
    reservation TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (account, reservation)
  ) STRICT, WITHOUT ROWID;
  CREATE TEMP TABLE leases (
    lease TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    expiresMs REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

interface AccountRow {
  spent: number;
  reserved: number;
  spendLimit: number | null;
}

// Result codes of SQLite, https://sqlite.org/rescode.html
const remedies: Readonly<Record<number, string>> = {
  5: 'close the other program that uses it and run again',
  8: 'choose a folder that you may write to',
  10: 'free disk space if the disk is full, else check the disk, then run again',
  11: 'the file is damaged: remove it, only the figures of spend are lost',
  13: 'free disk space and run again',
  14: 'check permissions of its folder',
  26: 'it is not a ledger: remove or rename it',
};

/**
 * Money in an SQLite file (`:memory:` for none). Amounts are millionths of a dollar and may have fractions. Safe
 * among processes. Bookings survive the death of the process; a power cut may lose the last ones but never
 * damages the file. Reserving an id again replaces its amount.
 *
 * Leases are of this process and end with it, in a table that SQLite keeps aside: there are four writes for each
 * message, and the messages that they are about are in the memory of this process too.
 *
 * Throws `StorageFailed` if the file cannot be used.
 */
export const createSqliteLedger = (path: string, { clock }: { clock: Pick<Clock, 'now'> }): SqliteLedger => {
  const guarded = <Result>(operation: () => Result): Result => {
    try {
      return operation();
    } catch (error) {
      throw ledgerFailed(error, path);
    }
  };
  const database = guarded(() => {
    const opened = new DatabaseSync(path);
    opened.exec(schema);
    return opened;
  });
  const prepare = (sql: string) => database.prepare(sql);

  const begin = prepare('BEGIN IMMEDIATE');
  const commit = prepare('COMMIT');
  const rollback = prepare('ROLLBACK');
  const openAccount = prepare('INSERT INTO accounts (account) VALUES (?) ON CONFLICT DO NOTHING');
  const readAccount = prepare('SELECT spent, reserved, spendLimit FROM accounts WHERE account = ?');
  const setLimit = prepare(
    'INSERT INTO accounts (account, spendLimit) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET spendLimit = ?2',
  );
  const book = prepare('UPDATE accounts SET spent = spent + ?2, reserved = reserved + ?3 WHERE account = ?1');
  const readReservation = prepare('SELECT amount FROM reservations WHERE account = ? AND reservation = ?');
  const writeReservation = prepare('INSERT OR REPLACE INTO reservations VALUES (?, ?, ?)');
  const dropReservation = prepare('DELETE FROM reservations WHERE account = ? AND reservation = ?');
  const dropReservations = prepare('DELETE FROM reservations WHERE account = ?');
  const clearReserved = prepare('UPDATE accounts SET reserved = 0 WHERE account = ?');
  const takeLease = prepare(
    `INSERT INTO leases VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET owner = ?2, expiresMs = ?3
     WHERE owner = ?2 OR expiresMs <= ?4`,
  );
  const readLease = prepare('SELECT owner FROM leases WHERE lease = ? AND expiresMs > ?');
  const releaseLease = prepare('DELETE FROM leases WHERE lease = ? AND owner = ?');

  /** All of `change` or, if it throws, nothing. */
  const together = <Result>(change: () => Result): Result =>
    guarded(() => {
      begin.run();
      try {
        const result = change();
        commit.run();
        return result;
      } catch (error) {
        if (database.isTransaction) rollback.run();
        throw error;
      }
    });

  const accountRow = (account: string): AccountRow =>
    (readAccount.get(account) as unknown as AccountRow | undefined) ?? {
      spent: 0,
      reserved: 0,
      spendLimit: null,
    };
  const heldBy = (account: string, reservation: string): number =>
    (readReservation.get(account, reservation) as { amount: number } | undefined)?.amount ?? 0;

  return {
    async setLimit(account, limitMicroUsd) {
      guarded(() => setLimit.run(account, limitMicroUsd));
    },
    async reserve(accounts, reservationId, microUsd) {
      return together(() => {
        const increases = accounts.map((account) => ({
          account,
          by: microUsd - heldBy(account, reservationId),
        }));
        const fits = increases.every(({ account, by }) => {
          const { spent, reserved, spendLimit } = accountRow(account);
          return spendLimit === null || spent + reserved + by <= spendLimit;
        });
        if (!fits) return false;
        for (const { account, by } of increases) {
          openAccount.run(account);
          book.run(account, 0, by);
          writeReservation.run(account, reservationId, microUsd);
        }
        return true;
      });
    },
    async settle(accounts, reservationId, microUsd) {
      together(() => {
        for (const account of accounts) {
          openAccount.run(account);
          book.run(account, microUsd, -heldBy(account, reservationId));
          dropReservation.run(account, reservationId);
        }
      });
    },
    async balance(account) {
      const { spent, reserved, spendLimit } = guarded(() => accountRow(account));
      return { spentMicroUsd: spent, reservedMicroUsd: reserved, limitMicroUsd: spendLimit };
    },
    async dropReservations(account) {
      together(() => {
        dropReservations.run(account);
        clearReserved.run(account);
      });
    },
    async takeLease(key, owner, seconds) {
      const nowMs = clock.now();
      return guarded(() => takeLease.run(key, owner, nowMs + seconds * 1000, nowMs).changes === 1);
    },
    async leaseOwner(key) {
      const row = guarded(() => readLease.get(key, clock.now())) as { owner: string } | undefined;
      return row?.owner ?? null;
    },
    async releaseLease(key, owner) {
      guarded(() => releaseLease.run(key, owner));
    },
    close: () => database.close(),
  };
};

const ledgerFailed = (error: unknown, path: string): TurnsweepError => {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
  const what = error instanceof Error ? error.message : String(error);
  return new TurnsweepError(errorNames.storageFailed, `the ledger cannot be used: ${what}`, {
    where: path,
    remedy: remedies[code] ?? 'mend the cause and run again',
    cause: error,
  });
};
