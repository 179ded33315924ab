import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import type { AwsEmulator } from '../support/aws-emulator.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import {
  deployExample,
  exampleSweep,
  spokenExample,
  spokenLanes,
  startExampleProvider,
} from './deployed-example.ts';

let emulator: AwsEmulator;
const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  stops.push(async () => rmSync(folder, { recursive: true, force: true }));
  emulator = await deployExample(folder, { moreLanes: spokenLanes, atEnd: (stop) => stops.push(stop) });
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

describe('the example sweep on AWS', () => {
  it('gives the files of the embedded run, and joins what is recorded when it is run again', async () => {
    const folder = temporaryFolder();
    const mock = await startExampleProvider();
    const sweep = exampleSweep;
    const onAws = { ...emulator.environment, MOCK_BASE_URL: mock.url, TURNSWEEP_LOOK_SECONDS: '1' };
    const embedded = await turnsweep(['run', sweep, '--out', path.join(folder, 'embedded')], {
      env: { MOCK_BASE_URL: mock.url },
    });
    const asked = mock.stats().requestsByFingerprint;
    mock.reset();

    const ran = await turnsweep(['run', sweep, '--on', 'aws', '--out', path.join(folder, 'aws')], {
      env: onAws,
    });

    expect(embedded).toMatchObject({ code: 0, stderr: '' });
    expect({ code: ran.code, stderr: ran.stderr }, emulator.output().slice(-6000)).toEqual({
      code: 0,
      stderr: '',
    });
    expect(ran.stdout).toContain('192 of 192 views valid');
    expect(resultFiles(path.join(folder, 'aws'))).toEqual(resultFiles(path.join(folder, 'embedded')));
    expect(mock.stats().requestsByFingerprint).toEqual(asked);

    mock.reset();
    const again = await turnsweep(['run', sweep, '--on', 'aws', '--out', path.join(folder, 'again')], {
      env: onAws,
    });
    expect(again.code).toBe(0);
    expect(mock.stats().requests).toBe(0);
    expect(resultFiles(path.join(folder, 'again'))).toEqual(resultFiles(path.join(folder, 'aws')));
  });
});

describe('the spoken example on AWS', () => {
  it('comes from a bucket, and gives the files of the embedded run, wrong answers traced', async () => {
    const folder = temporaryFolder();
    const client = new S3Client(emulator.clientOptions);
    onTestFinished(() => client.destroy());
    await client.send(new CreateBucketCommand({ Bucket: 'data-sets' }));
    const data = 'small-voxmem.parquet';
    const Body = readFileSync(path.join(spokenExample, 'data', data));
    await client.send(new PutObjectCommand({ Bucket: 'data-sets', Key: `voxmem/${data}`, Body }));
    const mock = await startExampleProvider(spokenExample);
    const sweepOf = (release: string, name: string) => {
      const sweep = parse(readFileSync(path.join(spokenExample, 'sweep.yaml'), 'utf8'));
      sweep.benchmark = { ...sweep.benchmark, release, options: { attribution: true } };
      return sweepFile(folder, sweep, name);
    };
    const env = {
      MOCK_BASE_URL: mock.url,
      TURNSWEEP_CACHE: path.join(folder, 'cache'),
      TURNSWEEP_LOOK_SECONDS: '1',
    };
    const onDisk = sweepOf(path.join(spokenExample, 'data'), 'on-disk.yaml');
    const embedded = await turnsweep(['run', onDisk, '--out', path.join(folder, 'embedded')], { env });
    const asked = mock.stats().requestsByFingerprint;
    mock.reset();

    const inBucket = sweepOf('s3://data-sets/voxmem', 'in-bucket.yaml');
    const ran = await turnsweep(['run', inBucket, '--on', 'aws', '--out', path.join(folder, 'aws')], {
      env: { ...emulator.environment, ...env },
    });

    // Three items have no reply: said so in both homes, and the files are whole.
    expect(embedded.code, embedded.stderr).toBe(2);
    expect(ran.code, `${ran.stderr}\n${emulator.output().slice(-6000)}`).toBe(2);
    expect(ran.stdout).toContain('177 of 180 views valid, 3 excluded');
    const files = resultFiles(path.join(folder, 'aws'));
    expect(files).toEqual(resultFiles(path.join(folder, 'embedded')));
    expect(Object.keys(files)).toContain('report/attribution.csv');
    expect(mock.stats().requestsByFingerprint).toEqual(asked);
  });
});
