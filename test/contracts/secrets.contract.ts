import { describe, expect, it } from 'vitest';
import type { Secrets } from '../../shared/ports/secrets.ts';

/** What every Secrets does. `makeSecrets` gives one that holds exactly these values. */
export const secretsContract = (
  name: string,
  makeSecrets: (values: Readonly<Record<string, string>>) => Promise<Secrets>,
): void => {
  describe(`Secrets contract: ${name}`, () => {
    it('gives the value of a secret as it is', async () => {
      const secrets = await makeSecrets({ OMNI_API_KEY: ' sk-1=2 ' });

      expect(await secrets.get('OMNI_API_KEY')).toBe(' sk-1=2 ');
    });

    it('names a secret that is not set, and tells no other', async () => {
      const secrets = await makeSecrets({ OMNI_API_KEY: 'sk-hidden' });

      const error = await secrets.get('JUDGE_API_KEY').catch((thrown: unknown) => thrown);

      expect(error).toMatchObject({ name: 'UsageWrong', message: expect.stringContaining('JUDGE_API_KEY') });
      expect(JSON.stringify(error) + String(error)).not.toContain('sk-hidden');
    });
  });
};
