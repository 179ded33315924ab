import { describe, expect, it } from 'vitest';
import { environmentSecrets } from '../../../../shared/adapters/local/environment-secrets.ts';
import { secretsContract } from '../../../contracts/secrets.contract.ts';

secretsContract('environment', async (values) => environmentSecrets(values));

describe('secrets in the environment', () => {
  it('count as not set when empty', async () => {
    const secrets = environmentSecrets({ OMNI_API_KEY: '' });

    await expect(secrets.get('OMNI_API_KEY')).rejects.toThrow(
      'the secret OMNI_API_KEY is not set (OMNI_API_KEY); set OMNI_API_KEY in the environment or in .env',
    );
  });
});
