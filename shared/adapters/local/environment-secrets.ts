import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Secrets } from '../../ports/secrets.ts';

/** Secrets from environment variables. An empty value counts as not set. */
export const environmentSecrets = (
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Secrets => ({
  async get(name) {
    const value = environment[name];
    if (value) return value;
    throw new TurnsweepError(errorNames.usage, `the secret ${name} is not set`, {
      where: name,
      remedy: `set ${name} in the environment or in .env`,
    });
  },
});
