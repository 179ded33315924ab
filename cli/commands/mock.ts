import type { ProviderName } from '../../mock/dialects/dialect.ts';
import { dialects } from '../../mock/dialects/registry.ts';
import { startMockProvider } from '../../mock/server.ts';
import { exitCodes } from '../exit-codes.ts';
import { print } from '../terminal.ts';

/** Runs the fake provider until it is interrupted; `provider` is the one whose address is printed. */
export const mock = async (options: {
  port?: number;
  scenario?: string;
  provider?: ProviderName;
  timeScale?: number;
}): Promise<number> => {
  const server = await startMockProvider(options);
  const { provider } = options;
  const key = provider ? `; key ${dialects[provider].key}` : '';
  print(`mock provider on ${server.url}${key}; stop with ctrl-c`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await server.close();
  return exitCodes.complete;
};
