import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { serviceErrorName, serviceFailed } from './service-errors.ts';

export interface SecretsManagerSecrets extends Secrets {
  /** Reads the value anew, as after a 401: it may have been rotated. Calls at the same time share one request. */
  refresh(name: string): Promise<string>;
}

const keptSeconds = 3600;
/** Many calls at once may meet the same 401: what is as fresh as this is not read again for each. */
const freshSeconds = 5;

/**
 * Provider keys from Secrets Manager, as plain secret strings, kept in memory for an hour.
 *
 * Throws `UsageWrong` naming the secret where it is not there, has no value yet or an empty one,
 * `AccessDenied` where the role may not read it.
 */
export const createSecretsManagerSecrets = (options: {
  client: SecretsManagerClient;
  /** Id (name or ARN) of the stored secret for a name of ours. */
  nameOf: (name: string) => string;
  clock: Pick<Clock, 'monotonic'>;
}): SecretsManagerSecrets => {
  const { client, nameOf, clock } = options;
  const kept = new Map<string, { value: Promise<string>; readAtMs: number }>();

  const read = async (name: string): Promise<string> => {
    const SecretId = nameOf(name);
    try {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }));
      if (SecretString) return SecretString;
    } catch (error) {
      if (serviceErrorName(error) !== 'ResourceNotFoundException')
        throw serviceFailed(error, 'read', SecretId);
    }
    throw new TurnsweepError(errorNames.usage, `the secret ${name} is not set`, {
      where: SecretId,
      remedy: `set it: aws secretsmanager put-secret-value --secret-id ${SecretId} --secret-string file://key.txt`,
    });
  };

  const get = (name: string, youngerThanSeconds: number): Promise<string> => {
    const found = kept.get(name);
    if (found !== undefined && clock.monotonic() - found.readAtMs < youngerThanSeconds * 1000)
      return found.value;
    const entry = { value: read(name), readAtMs: clock.monotonic() };
    kept.set(name, entry);
    entry.value.catch(() => {
      if (kept.get(name) === entry) kept.delete(name);
    });
    return entry.value;
  };

  return {
    get: (name) => get(name, keptSeconds),
    refresh: (name) => get(name, freshSeconds),
  };
};
