import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateTableCommand,
  DynamoDBClient,
  ScanCommand,
  TransactionCanceledException,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createDynamodbLedger } from '../../shared/adapters/aws/dynamodb-ledger.ts';
import { createSystemClock } from '../../shared/adapters/local/system-clock.ts';
import { ledgerContract } from '../contracts/ledger.contract.ts';
import { useAwsEmulator } from './emulator.ts';

const emulator = useAwsEmulator();
const clock = createSystemClock();

let tables = 0;
const newTable = async () => {
  const client = new DynamoDBClient(emulator().clientOptions);
  tables += 1;
  const table = `ledger-${tables}`;
  await client.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    }),
  );
  return { client, table, ledger: createDynamodbLedger({ client, table, clock }) };
};

ledgerContract('DynamoDB', async () => {
  const { client, ledger } = await newTable();
  return {
    ledger,
    pass: (seconds) => sleep(seconds * 1000),
    dispose: async () => client.destroy(),
  };
});

const run = 'run/a-000000000000';
const lane = `${run}/lane/x`;

describe('the ledger in DynamoDB', () => {
  it('does not book a reservation twice under one id', async () => {
    const { ledger } = await newTable();
    await ledger.setLimit(run, 100);
    await ledger.reserve([run], 'call', 80);

    const again = await ledger.reserve([run], 'call', 90);
    const tooMuch = await ledger.reserve([run], 'call', 101);

    expect([again, tooMuch]).toEqual([true, false]);
    expect((await ledger.balance(run)).reservedMicroUsd).toBe(90);
  });

  it('shares limits, reservations and drops among workers', async () => {
    const { client, table, ledger: first } = await newTable();
    const second = createDynamodbLedger({ client, table, clock });
    await first.setLimit(run, 1000);
    await first.reserve([run, lane], 'of the first', 600);
    await second.reserve([run, lane], 'of the second', 300);

    await second.dropReservations(run);
    const fits = await first.reserve([run], 'next', 1000);
    await first.settle([run, lane], 'of the second', 250);

    expect(fits).toBe(true);
    expect(await first.balance(run)).toEqual({
      spentMicroUsd: 250,
      reservedMicroUsd: 1000,
      limitMicroUsd: 1000,
    });
    expect(await second.balance(lane)).toEqual({
      spentMicroUsd: 250,
      reservedMicroUsd: 600,
      limitMicroUsd: null,
    });
  });

  it('takes a limit away and sets one under what is spent', async () => {
    const { ledger } = await newTable();
    await ledger.setLimit(run, 10);
    await ledger.settle([run], 'one', 10);

    await ledger.setLimit(run, null);
    const unlimited = await ledger.reserve([run], 'two', 1_000_000_000);
    await ledger.setLimit(run, 5);
    const limited = await ledger.reserve([run], 'three', 1);

    expect([unlimited, limited]).toEqual([true, false]);
  });

  it('books again what collided with another booking', async () => {
    const { client, ledger } = await newTable();
    await ledger.setLimit(run, 100);
    const send = client.send.bind(client) as (command: unknown) => Promise<unknown>;
    let collisions = 2;
    const spy = vi.spyOn(client, 'send').mockImplementation(async (command: unknown) => {
      if (!(command instanceof TransactWriteItemsCommand) || collisions === 0) return send(command);
      collisions -= 1;
      throw new TransactionCanceledException({
        message: 'cancelled',
        $metadata: {},
        CancellationReasons: [{ Code: 'TransactionConflict' }, { Code: 'None' }],
      });
    });
    onTestFinished(() => spy.mockRestore());

    const reserved = await ledger.reserve([run], 'one', 60);

    expect([reserved, collisions]).toEqual([true, 0]);
    expect((await ledger.balance(run)).reservedMicroUsd).toBe(60);
  });

  it('adds up fractions exactly, whatever the order', async () => {
    const { ledger } = await newTable();

    for (let call = 0; call < 30; call += 1) {
      await ledger.reserve([run], `call ${call}`, 0.7);
      await ledger.settle([run], `call ${call}`, 0.1);
    }

    expect(await ledger.balance(run)).toMatchObject({ spentMicroUsd: 3, reservedMicroUsd: 0 });
  });

  it('leaves nothing behind but accounts, and an end date on what will be of no use', async () => {
    const { client, table, ledger } = await newTable();
    await ledger.reserve([run], 'settled', 5);
    await ledger.settle([run], 'settled', 4);
    await ledger.reserve([run], 'lost', 5);
    await ledger.takeLease('job', 'ann', 60);

    const { Items } = await client.send(new ScanCommand({ TableName: table }));

    const days = (item: { expiresAt?: { N?: string } }) =>
      item.expiresAt && Math.floor((Number(item.expiresAt.N) - Date.now() / 1000) / 86_400);
    expect(Items!.map((item) => [item.pk!.S, days(item as never)]).sort()).toEqual([
      [`account#${run}`, undefined],
      ['lease#job', 0],
      ['reservation#lost', 14],
    ]);
  });

  it('names the remedy where the table is not there', async () => {
    const { client } = await newTable();
    const ledger = createDynamodbLedger({ client, table: 'no-such-table', clock });

    await expect(ledger.reserve([run], 'one', 1)).rejects.toMatchObject({
      name: 'StorageFailed',
      remedy: 'deploy the stacks first',
    });
  });
});
