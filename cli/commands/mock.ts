import { loadScenario, parseScenario } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import { exitCodes } from '../exit-codes.ts';
import { print } from '../terminal.ts';

/** Answers everything with the same word, at once: enough to try a sweep's plumbing. */
const plainScenario = { models: { '*': { reply: { text: 'ok' } } } };

export const mock = async (options: { port?: number; scenario?: string }): Promise<number> => {
  const scenario =
    options.scenario === undefined ? parseScenario(plainScenario) : loadScenario(options.scenario);
  const server = await startMockProvider({ port: options.port ?? 0, scenario });
  print(
    `mock provider on ${server.url} (models: ${Object.keys(scenario.models).join(', ')}); stop with ctrl-c`,
  );
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await server.close();
  return exitCodes.complete;
};
