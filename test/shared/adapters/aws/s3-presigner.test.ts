import { S3Client } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { createS3Presigner } from '../../../../shared/adapters/aws/s3-presigner.ts';

const presigner = () =>
  createS3Presigner({
    client: new S3Client({
      region: 'eu-central-1',
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a secret', sessionToken: 'a session' },
    }),
    bucket: 'run-data',
  });

it('an address names one object, ends after an hour and has no secret in it', async () => {
  const url = new URL(await presigner()(`derived/${'a'.repeat(64)}/wav-16khz-mono-r1/000001-b.wav`));

  expect(url.host).toBe('run-data.s3.eu-central-1.amazonaws.com');
  expect(url.pathname).toBe(`/derived/${'a'.repeat(64)}/wav-16khz-mono-r1/000001-b.wav`);
  expect(url.searchParams.get('X-Amz-Expires')).toBe('3600');
  expect(url.searchParams.get('X-Amz-Signature')).toMatch(/^[0-9a-f]{64}$/);
  expect(url.href).not.toContain('a%20secret');
});

it('keys that could leave the bucket are refused', async () => {
  await expect(presigner()('../other')).rejects.toMatchObject({ name: 'AccessDenied' });
});
