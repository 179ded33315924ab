import { describe, expect, it, onTestFinished } from 'vitest';
import { createSqliteLedger } from '../../../shared/adapters/local/sqlite-ledger.ts';
import { createVirtualClock } from '../../../shared/adapters/local/virtual-clock.ts';
import { type CallOutcome, type Usage, unknownUsage } from '../../../shared/domain/outcome.ts';
import { callWithinBudget, openAccounts } from '../../../shared/stages/budget.ts';

const price = { inputPerMTok: 2, outputPerMTok: 10 };
const facts = { httpStatus: 200, responseId: null, servedModel: null, finishReason: null };
const ok = (usage: Partial<Usage> = {}): CallOutcome => ({
  status: 'ok',
  text: 'yes',
  ...facts,
  usage: { ...unknownUsage, ...usage },
});

const budgetOf = async (limitMicroUsd: number | null) => {
  const ledger = createSqliteLedger(':memory:', { clock: createVirtualClock() });
  onTestFinished(() => ledger.close());
  await ledger.setLimit('run', limitMicroUsd);
  const within = (call: () => Promise<CallOutcome>) =>
    // At most 100 · 2 + 80 · 10 = 1,000 millionths.
    callWithinBudget({ ledger, accounts: ['run'], price, promptTokensAtMost: 100, maxTokens: 80, call });
  return { ledger, within };
};

describe('a call within a budget', () => {
  it('is booked at what it cost', async () => {
    const { ledger, within } = await budgetOf(1000);

    await within(async () => ok({ inputTokens: 50, outputTokens: 7 }));

    expect(await ledger.balance('run')).toMatchObject({ spentMicroUsd: 170, reservedMicroUsd: 0 });
  });

  it.each<[string, CallOutcome, number]>([
    ['a reply without token counts at the most it can have cost', ok(), 1000],
    [
      'a lost connection likewise',
      {
        status: 'retry',
        kind: 'connection_reset',
        message: '',
        retryAfterSeconds: null,
        ...facts,
        httpStatus: null,
        usage: unknownUsage,
      },
      1000,
    ],
    [
      'a refused connection at nothing',
      {
        status: 'retry',
        kind: 'connect_failed',
        message: '',
        retryAfterSeconds: null,
        ...facts,
        httpStatus: null,
        usage: unknownUsage,
      },
      0,
    ],
    [
      'an HTTP error at nothing',
      {
        status: 'retry',
        kind: 'http_500',
        message: '',
        retryAfterSeconds: null,
        ...facts,
        httpStatus: 500,
        usage: unknownUsage,
      },
      0,
    ],
  ])('books %s', async (_, outcome, spentMicroUsd) => {
    const { ledger, within } = await budgetOf(5000);

    await within(async () => outcome);

    expect(await ledger.balance('run')).toMatchObject({ spentMicroUsd, reservedMicroUsd: 0 });
  });

  it('is not made while others hold the money, nor once it is spent', async () => {
    const { ledger, within } = await budgetOf(1500);
    const reply = Promise.withResolvers<CallOutcome>();
    const first = within(() => reply.promise);
    let made = 0;
    const another = () =>
      within(async () => {
        made += 1;
        return ok({ inputTokens: 0, outputTokens: 0 });
      });

    const meanwhile = await another();
    reply.resolve(ok({ inputTokens: 255, outputTokens: 0 }));
    await first;
    const afterwards = await another();

    expect([meanwhile, afterwards, made]).toEqual(['held', 'spent', 0]);
    expect((await ledger.balance('run')).spentMicroUsd).toBe(510);
  });

  it('gives its reservation back when it throws', async () => {
    const { ledger, within } = await budgetOf(1000);

    await expect(within(() => Promise.reject(new Error('a clip is missing')))).rejects.toThrow(
      'a clip is missing',
    );

    expect(await ledger.balance('run')).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
  });
});

describe('the accounts of a run', () => {
  it('get their limits at each start and lose what a dead start had reserved, never what was spent', async () => {
    const ledger = createSqliteLedger(':memory:', { clock: createVirtualClock() });
    onTestFinished(() => ledger.close());
    const accounts = ['run/r', 'run/r/lane/a'];
    const lanes = [{ id: 'a', budgetMicroUsd: 300 }] as Parameters<typeof openAccounts>[1]['lanes'];
    await openAccounts(ledger, { run: 'r', budgetMicroUsd: 500, lanes });
    await ledger.settle(accounts, 'made', 120);
    await ledger.reserve(accounts, 'in flight at the kill', 150);

    await openAccounts(ledger, { run: 'r', budgetMicroUsd: 900, lanes });

    const balance = { spentMicroUsd: 120, reservedMicroUsd: 0 };
    expect(await ledger.balance('run/r')).toEqual({ ...balance, limitMicroUsd: 900 });
    expect(await ledger.balance('run/r/lane/a')).toEqual({ ...balance, limitMicroUsd: 300 });
  });
});
