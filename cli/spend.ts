import { existsSync } from 'node:fs';
import path from 'node:path';
import { createSqliteLedger } from '../shared/adapters/local/sqlite-ledger.ts';
import { createSystemClock } from '../shared/adapters/local/system-clock.ts';
import { runAccount } from '../shared/naming.ts';
import type { Balance } from '../shared/ports/ledger.ts';

interface Spend {
  spentUsd: number;
  limitUsd: number | null;
}

/** In dollars, for people. */
export const spendOf = ({ spentMicroUsd, limitMicroUsd }: Balance): Spend => ({
  spentUsd: spentMicroUsd / 1e6,
  limitUsd: limitMicroUsd === null ? null : limitMicroUsd / 1e6,
});

/** What the ledger of a run folder says; null where there is none. Only runs with a budget book in it. */
export const summaryOfSpend = async (directory: string, run: string): Promise<Spend | null> => {
  const file = path.join(directory, 'ledger.sqlite');
  if (!existsSync(file)) return null;
  const ledger = createSqliteLedger(file, { clock: createSystemClock() });
  try {
    return spendOf(await ledger.balance(runAccount(run)));
  } finally {
    ledger.close();
  }
};
