import {
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  S3Client,
} from '@aws-sdk/client-s3';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ByteSource, FileSet, ListedFile } from '../../ports/byte-source.ts';
import { asked, httpStatus, serviceFailed } from './service-errors.ts';

export interface S3Place {
  client: S3Client;
  bucket: string;
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'NoSuchKey' || error.name === 'NotFound');

const head = async ({ client, bucket }: S3Place, Key: string): Promise<HeadObjectCommandOutput | null> => {
  try {
    return await client.send(new HeadObjectCommand({ Bucket: bucket, Key }));
  } catch (error) {
    if (isMissing(error)) return null;
    throw serviceFailed(error, 'read', `s3://${bucket}/${Key}`);
  }
};

/**
 * An object in S3, read by ranged requests that all name the version found at first: a replaced object is told, never
 * mixed. Throws `ObjectMissing` where there is no such object.
 */
export const openS3ByteSource = async (place: S3Place, key: string): Promise<ByteSource> => {
  const { client, bucket: Bucket } = place;
  const name = `s3://${Bucket}/${key}`;
  const found = await head(place, key);
  if (found === null) {
    throw new TurnsweepError(errorNames.objectMissing, 'there is no such object', { where: name });
  }
  const { ETag: IfMatch, ContentLength: byteLength = 0 } = found;
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    if (end > byteLength) {
      throw new TurnsweepError(errorNames.storageFailed, `the object ends before byte ${end}`, {
        where: name,
      });
    }
    if (start === end) return new Uint8Array();
    const Range = `bytes=${start}-${end - 1}`;
    try {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: key, Range, IfMatch }));
      return await Body!.transformToByteArray();
    } catch (error) {
      if (httpStatus(error) !== 412 && !isMissing(error)) throw serviceFailed(error, 'read', name);
      throw new TurnsweepError(errorNames.objectChanged, 'the object was replaced while it was read', {
        where: name,
        remedy: 'run again',
      });
    }
  };
  return {
    name,
    byteLength,
    windowBytes: 8 * 1024 * 1024,
    read,
    async readInto(target, start) {
      target.set(await read(start, start + target.length));
    },
    close: async () => {},
  };
};

/** Objects under a prefix as files of one folder; `prefix` is empty or ends with a slash. */
export const openS3Prefix = (place: S3Place, prefix: string): FileSet => {
  const { client, bucket: Bucket } = place;
  const keyOf = (name: string): string => {
    if (name !== '' && !name.split('/').some((part) => part === '' || part === '.' || part === '..')) {
      return prefix + name;
    }
    throw new TurnsweepError(errorNames.benchmarkInvalid, 'a path must stay inside its folder', {
      where: JSON.stringify(name),
      remedy: 'give its path below the prefix',
    });
  };
  return {
    async list() {
      const files: ListedFile[] = [];
      let ContinuationToken: string | undefined;
      do {
        const page: ListObjectsV2CommandOutput = await asked(
          'list',
          `s3://${Bucket}/${prefix}`,
          client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix, ContinuationToken })),
        );
        for (const { Key, Size = 0, ETag = '' } of page.Contents ?? []) {
          const name = Key!.slice(prefix.length);
          const isHidden = name
            .split('/')
            .slice(0, -1)
            .some((part) => part.startsWith('.'));
          if (name !== '' && !name.endsWith('/') && !isHidden)
            files.push({ name, bytes: Size, version: ETag });
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
      return files.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    },
    async find(name) {
      const found = await head(place, keyOf(name));
      return found === null ? null : { name, bytes: found.ContentLength ?? 0, version: found.ETag ?? '' };
    },
    open: async (name) => openS3ByteSource(place, keyOf(name)),
  };
};

/** Region and credentials are those of the environment. */
export const connectS3 = (bucket: string): S3Place => ({
  // An endpoint of one's own (an emulator, a private link) has no names for single buckets.
  client: new S3Client({ forcePathStyle: process.env.AWS_ENDPOINT_URL !== undefined }),
  bucket,
});
