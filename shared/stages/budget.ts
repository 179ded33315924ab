import { randomUUID } from 'node:crypto';
import type { RunSettings } from '../contracts/run.ts';
import {
  type BilledCall,
  callCostMicroUsd,
  mayBeCharged,
  type Price,
  reservationMicroUsd,
} from '../domain/cost.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import { laneAccount, runAccount } from '../naming.ts';
import type { Ledger } from '../ports/ledger.ts';

/**
 * Sets what a run and its lanes may spend, before anything is asked. A run has one start at work at a time:
 * what is reserved now belongs to calls of an earlier one and is dropped.
 */
export const openAccounts = async (
  ledger: Pick<Ledger, 'setLimit' | 'dropReservations'>,
  settings: Pick<RunSettings, 'run' | 'budgetMicroUsd' | 'lanes'>,
): Promise<void> => {
  const limits: [string, number | null][] = [
    [runAccount(settings.run), settings.budgetMicroUsd],
    ...settings.lanes.map((lane): [string, number | null] => [
      laneAccount(settings.run, lane.id),
      lane.budgetMicroUsd,
    ]),
  ];
  for (const [account, limit] of limits) {
    await ledger.setLimit(account, limit);
    await ledger.dropReservations(account);
  }
};

export interface BudgetedCall<Called extends CallOutcome> {
  ledger: Pick<Ledger, 'reserve' | 'settle' | 'balance'>;
  /** Accounts of which any may have a limit; empty where there is no budget. */
  accounts: readonly string[];
  price: Price | null;
  promptTokensAtMost: number;
  maxTokens: number;
  /** What its bill depends on besides tokens. */
  billed?: BilledCall;
  call: () => Promise<Called>;
}

/** How long to leave a call whose money other calls in flight hold. */
export const secondsUntilMoneyIsFree = 2;

/**
 * Makes a call with the most it can cost reserved before and its cost booked after; a call that may have
 * been charged without telling its tokens is booked at the reserved amount. `spent`: the budget has no room
 * for the call; `held`: it has, once calls in flight turn out cheaper than reserved. No call was made then.
 */
export const callWithinBudget = async <Called extends CallOutcome>({
  ledger,
  accounts,
  price,
  billed,
  call,
  ...most
}: BudgetedCall<Called>): Promise<Called | 'spent' | 'held'> => {
  if (accounts.length === 0) return call();
  const reserved =
    price === null ? 0 : reservationMicroUsd(most.promptTokensAtMost, most.maxTokens, price, billed);
  const reservation = randomUUID();
  if (!(await ledger.reserve(accounts, reservation, reserved))) {
    const balances = await Promise.all(accounts.map((account) => ledger.balance(account)));
    const hasRoom = balances.every(
      ({ spentMicroUsd, limitMicroUsd }) =>
        limitMicroUsd === null || spentMicroUsd + reserved <= limitMicroUsd,
    );
    return hasRoom ? 'held' : 'spent';
  }
  let booked = 0;
  try {
    const called = await call();
    const kind = 'kind' in called ? called.kind : null;
    booked =
      callCostMicroUsd(called.usage, price, billed) ??
      (mayBeCharged({ httpStatus: called.httpStatus, kind }) ? reserved : 0);
    return called;
  } finally {
    await ledger.settle(accounts, reservation, booked);
  }
};
