import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AttributeValue,
  type CancellationReason,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ledger } from '../../ports/ledger.ts';
import { asked, serviceErrorName, serviceFailed } from './service-errors.ts';

type Item = Record<string, AttributeValue>;

/** What an account held when a reservation was made on it. */
interface Share {
  amount: number;
  generation: number;
}
type Shares = ReadonlyMap<string, Share>;

const accountKey = (account: string) => ({ pk: { S: `account#${account}` } });
const reservationKey = (id: string) => ({ pk: { S: `reservation#${id}` } });
const leaseKey = (key: string) => ({ pk: { S: `lease#${key}` } });

const number = (value: number): AttributeValue => ({ N: String(value) });
const numberOf = (item: Item | undefined, name: string): number => Number(item?.[name]?.N ?? 0);

/** Room of an account without a limit; far more than anybody spends. */
const unlimitedMicroUsd = 1e18;
/** Reservations of dead calls are of no use after this time; the table's TTL removes them. */
const reservationKeptSeconds = 14 * 86_400;
/** Enough for the account of a run that a hundred workers book on at once. */
const conflictAttempts = 60;
const longestConflictMs = 400;

/**
 * Money and leases in one DynamoDB table with the string key `pk` and TTL on `expiresAt` (seconds since the
 * epoch). Amounts are millionths of a dollar and may have fractions. Needs GetItem, UpdateItem, PutItem,
 * DeleteItem on the table.
 *
 * An account holds `spent`, `committed` (spent and reserved) and `remaining` (limit less committed): a
 * condition cannot add, so what it compares is kept ready. Every booking is one transaction over its accounts
 * and the reservation, repeated while others book at the same moment. A reservation notes each account's
 * `generation`; dropping an account's reservations raises the generation, whereby they count no more.
 * Reserving an id again replaces its amount.
 *
 * Throws `StorageFailed` or `AccessDenied` for what the service answers.
 */
export const createDynamodbLedger = (options: {
  client: DynamoDBClient;
  table: string;
  clock: Pick<Clock, 'now'>;
}): Ledger => {
  const { client, table: TableName, clock } = options;
  /** As last seen; a booking with an old one fails and learns the new one. */
  const generations = new Map<string, number>();
  const generationOf = (account: string) => generations.get(account) ?? 0;

  const read = async (Key: Item): Promise<Item | undefined> =>
    (
      await asked(
        'read',
        TableName,
        client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true })),
      )
    ).Item;

  /** Adds to an account's figures if its generation is the one we know and, for reservations, if there is room. */
  const booking = (
    account: string,
    spent: number,
    committed: number,
    needsRoom: boolean,
  ): TransactWriteItem => ({
    Update: {
      TableName,
      Key: accountKey(account),
      UpdateExpression:
        'SET spent = if_not_exists(spent, :zero) + :spent, committed = if_not_exists(committed, :zero) + :committed, ' +
        'remaining = if_not_exists(remaining, :unlimited) - :committed, ' +
        'generation = if_not_exists(generation, :generation)',
      ConditionExpression:
        '(attribute_not_exists(generation) OR generation = :generation)' +
        (needsRoom ? ' AND (attribute_not_exists(remaining) OR remaining >= :committed)' : ''),
      ExpressionAttributeValues: {
        ':zero': number(0),
        ':unlimited': number(unlimitedMicroUsd),
        ':generation': number(generationOf(account)),
        ':spent': number(spent),
        ':committed': number(committed),
      },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  });

  /** Replaces what is reserved under an id; no shares: nothing. */
  const reservation = (id: string, before: Shares, after: Shares): TransactWriteItem => {
    const condition = {
      ConditionExpression: before.size === 0 ? 'attribute_not_exists(pk)' : 'shares = :before',
      ...(before.size > 0 && { ExpressionAttributeValues: { ':before': sharesValue(before) } }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    } as const;
    const Key = reservationKey(id);
    if (after.size === 0) return { Delete: { TableName, Key, ...condition } };
    const expiresAt = number(Math.ceil(clock.now() / 1000) + reservationKeptSeconds);
    return { Put: { TableName, Item: { ...Key, shares: sharesValue(after), expiresAt }, ...condition } };
  };

  /** Null when the transaction went through, otherwise why each of its items did not. */
  const tryTogether = async (items: TransactWriteItem[]): Promise<CancellationReason[] | null> => {
    try {
      await client.send(new TransactWriteItemsCommand({ TransactItems: items }));
      return null;
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) throw serviceFailed(error, 'book on', TableName);
      const reasons = error.CancellationReasons ?? [];
      const bad = reasons.find(({ Code }) => !expectedReasons.has(Code ?? 'None'));
      if (bad !== undefined) throw serviceFailed(error, `book on (${bad.Code}: ${bad.Message})`, TableName);
      return reasons;
    }
  };

  const book = async (
    accounts: readonly string[],
    id: string,
    known: Shares,
    change: (account: string, held: number) => { spent: number; committed: number },
    after: (before: Shares) => Shares,
    needsRoom: boolean,
  ): Promise<boolean> => {
    let before = known;
    for (let attempt = 1; attempt <= conflictAttempts; attempt += 1) {
      const bookings = accounts.map((account) => {
        const share = before.get(account);
        const held = share?.generation === generationOf(account) ? share.amount : 0;
        const { spent, committed } = change(account, held);
        return booking(account, spent, committed, needsRoom);
      });
      const next = after(before);
      // Deleting what is not there is needless, and so is a condition on it: its cost is booked alone.
      const items =
        before.size === 0 && next.size === 0 ? bookings : [...bookings, reservation(id, before, next)];
      const reasons = await tryTogether(items);
      if (reasons === null) return true;

      let isStale = false;
      const ofReservation = reasons[accounts.length];
      if (ofReservation?.Code === conditionFailed) {
        before = sharesOf(ofReservation.Item);
        isStale = true;
      }
      for (const [at, account] of accounts.entries()) {
        if (reasons[at]?.Code !== conditionFailed) continue;
        const generation = numberOf(reasons[at].Item, 'generation');
        if (generation !== generationOf(account)) isStale = true;
        generations.set(account, generation);
      }
      if (isStale) continue;
      if (reasons.some(({ Code }) => Code === conditionFailed)) return false;
      await sleep(Math.random() * Math.min(longestConflictMs, 5 * 2 ** attempt));
    }
    throw new TurnsweepError(errorNames.storageFailed, 'too many workers book on the same account at once', {
      where: accounts.join(', '),
      remedy: 'lower the lanes’ concurrency or run again',
    });
  };

  return {
    async setLimit(account, limitMicroUsd) {
      const request = new UpdateItemCommand({
        TableName,
        Key: accountKey(account),
        UpdateExpression:
          'SET remaining = :limit - if_not_exists(committed, :zero)' +
          (limitMicroUsd === null ? ' REMOVE #limit' : ', #limit = :limit'),
        ExpressionAttributeNames: { '#limit': 'limit' },
        ExpressionAttributeValues: {
          ':limit': number(limitMicroUsd ?? unlimitedMicroUsd),
          ':zero': number(0),
        },
      });
      await asked('set a limit in', TableName, client.send(request));
    },
    reserve(accounts, reservationId, microUsd) {
      const shares = () =>
        new Map(
          accounts.map((account) => [account, { amount: microUsd, generation: generationOf(account) }]),
        );
      return book(
        accounts,
        reservationId,
        new Map(),
        (_, held) => ({ spent: 0, committed: microUsd - held }),
        (before) => new Map([...before, ...shares()]),
        true,
      );
    },
    async settle(accounts, reservationId, microUsd) {
      await book(
        accounts,
        reservationId,
        sharesOf(await read(reservationKey(reservationId))),
        (_, held) => ({ spent: microUsd, committed: microUsd - held }),
        (before) => new Map([...before].filter(([account]) => !accounts.includes(account))),
        false,
      );
    },
    async balance(account) {
      const item = await read(accountKey(account));
      const spent = numberOf(item, 'spent');
      return {
        spentMicroUsd: spent,
        reservedMicroUsd: difference(numberOf(item, 'committed'), spent),
        limitMicroUsd: item?.limit === undefined ? null : numberOf(item, 'limit'),
      };
    },
    async dropReservations(account) {
      for (;;) {
        const item = await read(accountKey(account));
        if (item?.committed === undefined) return;
        const [spent, committed] = [numberOf(item, 'spent'), numberOf(item, 'committed')];
        const generation = numberOf(item, 'generation') + 1;
        try {
          await client.send(
            new UpdateItemCommand({
              TableName,
              Key: accountKey(account),
              UpdateExpression:
                'SET committed = spent, remaining = remaining + :reserved, generation = :generation',
              ConditionExpression: 'spent = :spent AND committed = :committed',
              ExpressionAttributeValues: {
                ':spent': number(spent),
                ':committed': number(committed),
                ':reserved': number(difference(committed, spent)),
                ':generation': number(generation),
              },
            }),
          );
          generations.set(account, generation);
          return;
        } catch (error) {
          // Somebody booked in between.
          if (serviceErrorName(error) !== conditionFailedException) {
            throw serviceFailed(error, 'drop reservations in', TableName);
          }
        }
      }
    },
    async takeLease(key, owner, seconds) {
      const nowMs = clock.now();
      const untilMs = nowMs + seconds * 1000;
      return ifCondition(
        'take a lease in',
        client.send(
          new UpdateItemCommand({
            TableName,
            Key: leaseKey(key),
            UpdateExpression: 'SET #owner = :owner, untilMs = :untilMs, expiresAt = :expiresAt',
            ConditionExpression: 'attribute_not_exists(pk) OR #owner = :owner OR untilMs <= :nowMs',
            ExpressionAttributeNames: { '#owner': 'owner' },
            ExpressionAttributeValues: {
              ':owner': { S: owner },
              ':untilMs': number(untilMs),
              ':nowMs': number(nowMs),
              ':expiresAt': number(Math.ceil(untilMs / 1000)),
            },
          }),
        ),
      );
    },
    async leaseOwner(key) {
      const item = await read(leaseKey(key));
      // TTL may take days to remove what has expired.
      return item !== undefined && numberOf(item, 'untilMs') > clock.now() ? item.owner!.S! : null;
    },
    async releaseLease(key, owner) {
      await ifCondition(
        'release a lease in',
        client.send(
          new DeleteItemCommand({
            TableName,
            Key: leaseKey(key),
            ConditionExpression: '#owner = :owner',
            ExpressionAttributeNames: { '#owner': 'owner' },
            ExpressionAttributeValues: { ':owner': { S: owner } },
          }),
        ),
      );
    },
  };

  /** False where the request's condition did not hold. */
  async function ifCondition(doing: string, request: Promise<unknown>): Promise<boolean> {
    try {
      await request;
      return true;
    } catch (error) {
      if (serviceErrorName(error) === conditionFailedException) return false;
      throw serviceFailed(error, doing, TableName);
    }
  }
};

const conditionFailed = 'ConditionalCheckFailed';
const conditionFailedException = 'ConditionalCheckFailedException';
/** Why a transaction may be cancelled although nothing is wrong. */
const expectedReasons: ReadonlySet<string> = new Set([
  'None',
  conditionFailed,
  'TransactionConflict',
  'ThrottlingError',
  'ProvisionedThroughputExceeded',
]);

/** The table counts in decimals, JavaScript in binary fractions: no money finer than this is real. */
const difference = (a: number, b: number): number => Math.round((a - b) * 1e6) / 1e6;

const sharesValue = (shares: Shares): AttributeValue => ({
  M: Object.fromEntries(
    [...shares].map(([account, { amount, generation }]) => [
      account,
      { L: [number(amount), number(generation)] },
    ]),
  ),
});

const sharesOf = (item: Item | undefined): Shares =>
  new Map(
    Object.entries(item?.shares?.M ?? {}).map(([account, { L }]) => [
      account,
      { amount: Number(L![0]!.N), generation: Number(L![1]!.N) },
    ]),
  );
