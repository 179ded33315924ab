import {
  CreateBucketCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { describe, expect, it, vi } from 'vitest';
import { createS3ObjectStore } from '../../shared/adapters/aws/s3-object-store.ts';
import { objectStoreContract } from '../contracts/object-store.contract.ts';
import { collect } from '../support/collect.ts';
import { useAwsEmulator } from './emulator.ts';

const emulator = useAwsEmulator();

let buckets = 0;
const newBucket = async () => {
  const client = new S3Client(emulator().clientOptions);
  buckets += 1;
  const bucket = `store-${buckets}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return { client, bucket };
};

objectStoreContract('S3', async () => {
  const { client, bucket } = await newBucket();
  return { store: createS3ObjectStore({ client, bucket }), dispose: async () => client.destroy() };
});

/** The next answers of S3 to writes, before it is asked itself. */
const answerWrites = (client: S3Client, statuses: number[]) => {
  const send = client.send.bind(client) as (command: unknown) => Promise<unknown>;
  return vi.spyOn(client, 'send').mockImplementation(async (command: unknown) => {
    const status = command instanceof PutObjectCommand ? statuses.shift() : undefined;
    if (status === undefined) return send(command);
    const error = new Error('ConditionalRequestConflict');
    throw Object.assign(error, { name: error.message, $metadata: { httpStatusCode: status } });
  });
};

describe('the object store on S3', () => {
  it('repeats a conditional write that collides with another one', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket });
    answerWrites(client, [409, 409]);

    const written = await store.putIfAbsent('k', 'text');

    expect(written).toBe(true);
    expect(await store.getText('k')).toBe('text');
  });

  it('gives up with a reason when S3 never decides a conditional write', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket });
    vi.spyOn(Math, 'random').mockReturnValue(0);
    answerWrites(client, Array(100).fill(409));

    const writing = store.putIfAbsent('k', 'text');

    await expect(writing).rejects.toMatchObject({
      name: 'StorageFailed',
      message: expect.stringContaining('ConditionalRequestConflict'),
    });
    vi.restoreAllMocks();
    expect(await store.getText('k')).toBeNull();
  });

  it('reads and writes an object of several parts', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket, partBytes: 5 * 1024 * 1024 });
    const lines = Array.from({ length: 60 }, (_, at) => `${at}:${'é漢'.repeat(60_000 + at)}`);

    const count = await store.putLines('parts.txt', lines);
    const read = await collect(store.lines('parts.txt'));

    expect(count).toBe(60);
    // Five bytes for each pair of characters, so more than three parts of 5 MiB.
    expect((await store.getBytes('parts.txt'))!.length).toBeGreaterThan(60 * 60_000 * 5);
    expect(read.map((line) => line.length)).toEqual(lines.map((line) => line.length));
    expect(read.every((line, at) => line === lines[at])).toBe(true);
    expect(await store.tag('parts.txt')).toMatch(/-4"$/);
  });

  it('leaves no part behind when the source fails after the first part', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket, partBytes: 5 * 1024 * 1024 });
    function* failing() {
      for (let at = 0; at < 12; at += 1) yield 'x'.repeat(1024 * 1024);
      throw new Error('the source broke');
    }

    const writing = store.putLines('half.txt', failing());

    await expect(writing).rejects.toThrow('the source broke');
    const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    expect([Uploads ?? [], await store.tag('half.txt')]).toEqual([[], null]);
  });

  it('says so when an object is replaced between two of its parts', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket, partBytes: 5 * 1024 * 1024 });
    const lines = (letter: string) => Array.from({ length: 8 }, () => letter.repeat(1024 * 1024));
    await store.putLines('k', lines('a'));
    const reading = store.lines('k')[Symbol.asyncIterator]();
    const first = await reading.next();

    await store.putLines('k', lines('b'));

    expect(first.value).toBe('a'.repeat(1024 * 1024));
    const rest = async () => {
      for (;;) if ((await reading.next()).done) return;
    };
    await expect(rest()).rejects.toMatchObject({ name: 'ObjectChanged' });
  });

  it('refuses a line with a line end inside and writes nothing', async () => {
    const { client, bucket } = await newBucket();
    const store = createS3ObjectStore({ client, bucket });

    const writing = store.putLines('k', ['fine', 'two\nlines']);

    await expect(writing).rejects.toMatchObject({ name: 'ContractViolated' });
    expect(await store.tag('k')).toBeNull();
  });

  it.each(['../up', 'a//b', '/a', 'a/', '.hidden', 'a\\b'])(
    'refuses the unsafe key %j, as a folder does',
    async (key) => {
      const { client, bucket } = await newBucket();
      const store = createS3ObjectStore({ client, bucket });

      await expect(store.put(key, 'x')).rejects.toMatchObject({ name: 'AccessDenied' });
      await expect(store.getText(key)).rejects.toMatchObject({ name: 'AccessDenied' });
    },
  );

  it('names the remedy where the bucket is not there', async () => {
    const client = new S3Client(emulator().clientOptions);
    const store = createS3ObjectStore({ client, bucket: 'no-such-bucket' });

    await expect(store.put('k', 'x')).rejects.toMatchObject({
      name: 'StorageFailed',
      where: 'k',
      remedy: 'deploy the stacks first',
    });
  });

  it('stores bytes that other programs read as they are', async () => {
    const { client, bucket } = await newBucket();
    await createS3ObjectStore({ client, bucket }).putLines('rows.jsonl', ['{"a":"ü"}', '{}']);

    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: 'rows.jsonl' }));

    expect(await Body!.transformToString()).toBe('{"a":"ü"}\n{}\n');
  });
});
