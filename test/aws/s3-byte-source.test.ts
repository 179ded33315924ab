import { cpSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openS3Prefix } from '../../shared/adapters/aws/s3-byte-source.ts';
import { byteSourceContract } from '../contracts/byte-source.contract.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { releaseContents, unpackedRelease } from '../support/unpacked-voxmem.ts';
import { fixtureRows, writeJsonl, writeParquet } from '../support/voxmem-data-set.ts';
import { useAwsEmulator } from './emulator.ts';

const emulator = useAwsEmulator();

let buckets = 0;
const newBucket = async () => {
  const client = new S3Client(emulator().clientOptions);
  onTestFinished(() => client.destroy());
  buckets += 1;
  const bucket = `data-set-${buckets}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const put = async (Key: string, Body: Uint8Array) => {
    await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body }));
  };
  return { client, bucket, put };
};

byteSourceContract('S3', async () => {
  const { client, bucket, put } = await newBucket();
  await put('beside/not-ours.parquet', Buffer.from('x'));
  return {
    files: openS3Prefix({ client, bucket }, 'data/'),
    write: (name, content) => put(`data/${name}`, content),
  };
});

describe('a data set in S3', () => {
  it.each(['parquet', 'jsonl'] as const)('is unpacked to what its copy on disk is: %s', async (form) => {
    const { bucket, put } = await newBucket();
    for (const [name, value] of Object.entries(emulator().environment)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const folder = temporaryDirectory();
    const set = path.join(folder, 'set');
    mkdirSync(set);
    if (form === 'jsonl') writeJsonl(set, fixtureRows());
    else
      writeParquet(path.join(set, '8k', 'rows.parquet'), fixtureRows(), { rowGroupSize: 4, pageSize: 300 });
    const copy = path.join(folder, 'copy');
    cpSync(set, copy, { recursive: true });
    for (const [name, content] of Object.entries(releaseContents(set))) {
      await put(`voxmem/${name}`, Buffer.from(content, 'latin1'));
    }
    const source = `s3://${bucket}/voxmem`;
    const cacheDirectory = path.join(folder, 'cache');

    const fromS3 = await unpackedRelease({ source, cacheDirectory });
    const again = await unpackedRelease({ source, cacheDirectory });
    const fromDisk = await unpackedRelease({ source: copy, cacheDirectory });

    expect(again).toBe(fromS3);
    expect(fromDisk).not.toBe(fromS3);
    expect(releaseContents(fromS3)).toEqual(releaseContents(fromDisk));
    expect(Object.keys(releaseContents(fromS3))).toContain('data/items.jsonl');
  });
});
