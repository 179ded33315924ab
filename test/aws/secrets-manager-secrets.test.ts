import {
  CreateSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { describe, expect, it, vi } from 'vitest';
import { createSecretsManagerSecrets } from '../../shared/adapters/aws/secrets-manager-secrets.ts';
import { createVirtualClock } from '../../shared/adapters/local/virtual-clock.ts';
import { secretsContract } from '../contracts/secrets.contract.ts';
import { useAwsEmulator } from './emulator.ts';

const emulator = useAwsEmulator();

let deployments = 0;
const storedSecrets = async (values: Readonly<Record<string, string>>) => {
  const client = new SecretsManagerClient(emulator().clientOptions);
  deployments += 1;
  const nameOf = (name: string, deployment = deployments) => `turnsweep-${deployment}/${name}`;
  const prefix = deployments;
  for (const [name, SecretString] of Object.entries(values)) {
    await client.send(new CreateSecretCommand({ Name: nameOf(name), SecretString }));
  }
  const clock = createVirtualClock(0);
  const secrets = createSecretsManagerSecrets({ client, nameOf: (name) => nameOf(name, prefix), clock });
  const rotate = (name: string, SecretString: string) =>
    client.send(new PutSecretValueCommand({ SecretId: nameOf(name, prefix), SecretString }));
  const send = vi.spyOn(client, 'send');
  const reads = () => send.mock.calls.filter(([command]) => command instanceof GetSecretValueCommand).length;
  return { secrets, clock, rotate, reads };
};

secretsContract('Secrets Manager', async (values) => (await storedSecrets(values)).secrets);

describe('secrets from Secrets Manager', () => {
  it('asks once for many calls, and again after an hour', async () => {
    const { secrets, clock, rotate, reads } = await storedSecrets({ KEY: 'one' });

    const early = await Promise.all(Array.from({ length: 20 }, () => secrets.get('KEY')));
    await rotate('KEY', 'two');
    await clock.advance(3_599_000);
    const kept = await secrets.get('KEY');
    await clock.advance(2_000);
    const late = await secrets.get('KEY');

    expect([new Set(early), kept, late]).toEqual([new Set(['one']), 'one', 'two']);
    expect(reads()).toBe(2);
  });

  it('reads a rotated key after a 401, once for all that met it', async () => {
    const { secrets, clock, rotate, reads } = await storedSecrets({ KEY: 'old' });
    await secrets.get('KEY');
    await clock.advance(60_000);
    await rotate('KEY', 'new');

    const refreshed = await Promise.all(Array.from({ length: 10 }, () => secrets.refresh('KEY')));

    expect([new Set(refreshed), await secrets.get('KEY')]).toEqual([new Set(['new']), 'new']);
    expect(reads()).toBe(2);
  });

  it('asks again after a failure', async () => {
    const { secrets, rotate } = await storedSecrets({ KEY: 'placeholder' });
    await expect(secrets.get('OTHER')).rejects.toMatchObject({ name: 'UsageWrong' });

    await rotate('KEY', 'value');

    expect(await secrets.get('KEY')).toBe('value');
    await expect(secrets.get('OTHER')).rejects.toMatchObject({
      remedy: expect.stringContaining('put-secret-value'),
    });
  });
});
