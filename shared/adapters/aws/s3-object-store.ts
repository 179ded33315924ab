import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { checkKey, checkPrefix } from '../local/object-keys.ts';
import { asked, httpStatus, serviceFailed } from './service-errors.ts';

export interface S3ObjectStoreOptions {
  client: S3Client;
  bucket: string;
  /** Read at a time by `lines`, and sent at a time by `putLines`; at least 5 MiB. 8 MiB unless given. */
  partBytes?: number;
}

const newline = 10;
const batchCharacters = 256 * 1024;
const conflictAttempts = 12;
const longestConflictMs = 2000;

/**
 * Objects in an S3 bucket. A conditional write that collides with another one (409) is repeated until S3
 * decides it. When an answer to a conditional write is lost, the SDK asks again and S3 says that the key is
 * there: `false` then means that the content may be this caller's own, so read it before concluding more.
 *
 * Missing keys are only told from forbidden ones where the role may list the bucket (s3:ListBucket).
 * Throws `AccessDenied` for unsafe keys and where the role may not, `ObjectChanged` when an object of
 * several parts is replaced while its lines are read, `StorageFailed` for what else S3 answers.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
 */
export const createS3ObjectStore = (options: S3ObjectStoreOptions): ObjectStore => {
  const { client, bucket: Bucket, partBytes = 8 * 1024 * 1024 } = options;

  const get = async (Key: string): Promise<Uint8Array | null> => {
    checkKey(Key);
    try {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      return await Body!.transformToByteArray();
    } catch (error) {
      if (isMissing(error)) return null;
      throw serviceFailed(error, 'read', Key);
    }
  };

  const put = async (Key: string, body: string | Uint8Array): Promise<void> => {
    checkKey(Key);
    await asked('write', Key, client.send(new PutObjectCommand({ Bucket, Key, Body: bytesOf(body) })));
  };

  const putIf = async (
    Key: string,
    body: string | Uint8Array,
    condition: { IfNoneMatch: string } | { IfMatch: string },
  ): Promise<boolean> => {
    checkKey(Key);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.send(new PutObjectCommand({ Bucket, Key, Body: bytesOf(body), ...condition }));
        return true;
      } catch (error) {
        const status = httpStatus(error);
        if (status === 412 || (status === 404 && isMissing(error))) return false;
        if (status !== 409 || attempt === conflictAttempts) throw serviceFailed(error, 'write', Key);
        await sleep(Math.random() * Math.min(longestConflictMs, 20 * 2 ** attempt));
      }
    }
  };

  return {
    async getText(key) {
      const bytes = await get(key);
      return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    },
    getBytes: get,
    put,
    putIfAbsent: (key, body) => putIf(key, body, { IfNoneMatch: '*' }),
    async tag(Key) {
      checkKey(Key);
      try {
        return (await client.send(new HeadObjectCommand({ Bucket, Key }))).ETag!;
      } catch (error) {
        if (isMissing(error)) return null;
        throw serviceFailed(error, 'read', Key);
      }
    },
    putIfMatch: (key, body, tag) => putIf(key, body, { IfMatch: tag }),
    async delete(Key) {
      checkKey(Key);
      await asked('delete', Key, client.send(new DeleteObjectCommand({ Bucket, Key })));
    },
    async *list(Prefix) {
      checkPrefix(Prefix);
      let ContinuationToken: string | undefined;
      do {
        const page: ListObjectsV2CommandOutput = await asked(
          'list',
          Prefix,
          client.send(new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken })),
        );
        for (const { Key } of page.Contents ?? []) yield Key!;
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    lines(key) {
      checkKey(key);
      return splitLines(readParts(client, Bucket, key, partBytes));
    },
    async putLines(Key, lines) {
      checkKey(Key);
      const counted = { lines: 0 };
      // Objects of one part are put at once, others by multipart upload: seen when complete, aborted on error.
      const upload = new Upload({
        client,
        params: { Bucket, Key, Body: Readable.from(joinLines(lines, Key, counted), { objectMode: false }) },
        partSize: partBytes,
        queueSize: 2,
      });
      try {
        await upload.done();
      } catch (error) {
        throw isOfService(error) ? serviceFailed(error, 'write', Key) : error;
      }
      return counted.lines;
    },
  };
};

/** The SDK takes an empty string for a stream without a length. */
const bytesOf = (body: string | Uint8Array): Uint8Array =>
  typeof body === 'string' ? Buffer.from(body) : body;

const isMissing = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'NoSuchKey' || error.name === 'NotFound');

/** An error with request metadata comes from S3; any other one is the caller's own and stays as it is. */
const isOfService = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && '$metadata' in error;

/**
 * Content of an object in parts, each by a request of its own: a reader that takes its time holds no
 * connection open, which S3 would close.
 */
async function* readParts(
  client: S3Client,
  Bucket: string,
  Key: string,
  partBytes: number,
): AsyncGenerator<Uint8Array> {
  let tag: string | undefined;
  let sizeBytes = Number.POSITIVE_INFINITY;
  for (let from = 0; from < sizeBytes; from += partBytes) {
    let part: GetObjectCommandOutput;
    try {
      const Range = `bytes=${from}-${from + partBytes - 1}`;
      part = await client.send(new GetObjectCommand({ Bucket, Key, Range, IfMatch: tag }));
    } catch (error) {
      if (isMissing(error)) {
        throw new TurnsweepError(errorNames.objectMissing, 'there is no such object', { where: Key });
      }
      // Nothing of an empty object lies in any range.
      if (from === 0 && httpStatus(error) === 416) return;
      if (httpStatus(error) !== 412) throw serviceFailed(error, 'read', Key);
      throw new TurnsweepError(errorNames.objectChanged, 'the object was replaced while it was read', {
        where: Key,
        remedy: 'read it again',
      });
    }
    tag = part.ETag;
    sizeBytes = Number(/\/(\d+)$/.exec(part.ContentRange ?? '')?.[1] ?? part.ContentLength);
    yield await asked('read', Key, part.Body!.transformToByteArray());
  }
}

async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let unfinished: Uint8Array[] = [];
  for await (const chunk of chunks) {
    const lastEnd = chunk.lastIndexOf(newline);
    if (lastEnd >= 0) {
      // A newline byte is never part of another character, so that this cut is safe to decode.
      yield* Buffer.concat([...unfinished, chunk.subarray(0, lastEnd)])
        .toString('utf8')
        .split('\n');
      unfinished = [];
    }
    if (lastEnd + 1 < chunk.length) unfinished.push(chunk.subarray(lastEnd + 1));
  }
  if (unfinished.length > 0) yield Buffer.concat(unfinished).toString('utf8');
}

async function* joinLines(
  lines: Iterable<string> | AsyncIterable<string>,
  key: string,
  counted: { lines: number },
): AsyncGenerator<Buffer> {
  let batch: string[] = [];
  let characters = 0;
  for await (const line of lines) {
    counted.lines += 1;
    if (line.includes('\n')) {
      throw new TurnsweepError(errorNames.contractViolated, `line ${counted.lines} has a line end inside`, {
        where: key,
      });
    }
    batch.push(line, '\n');
    characters += line.length + 1;
    if (characters < batchCharacters) continue;
    yield Buffer.from(batch.join(''));
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield Buffer.from(batch.join(''));
}
