import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Measured, measureNode } from '../measure.ts';
import type { Work } from './tools.ts';

/** Replies as wanted, other replies, and calls without a reply. */
export interface PromptfooStats {
  successes: number;
  failures: number;
  errors: number;
}

/** The work through promptfoo, which is told how many calls may be in flight; its own waits and retries apply. */
export const runPromptfoo = async (
  installed: string,
  { url, questions, answer, concurrency, folder }: Work,
): Promise<{ measured: Measured; stats: PromptfooStats }> => {
  const config = path.join(folder, 'promptfoo.json');
  const output = path.join(folder, 'promptfoo-output.json');
  writeFileSync(
    config,
    JSON.stringify({
      prompts: ['{{question}}'],
      providers: [{ id: 'openai:chat:m', config: { apiBaseUrl: url, apiKey: 'none', max_tokens: 64 } }],
      defaultTest: { assert: [{ type: 'equals', value: answer }] },
      tests: questions.map((question) => ({ vars: { question } })),
    }),
  );
  const measured = await measureNode(
    [
      path.join(installed, 'node_modules/promptfoo/dist/src/entrypoint.js'),
      'eval',
      ...['-c', config, '-o', output, '-j', String(concurrency)],
      ...['--no-cache', '--no-write', '--no-table', '--no-progress-bar'],
    ],
    {
      cwd: folder,
      env: {
        PROMPTFOO_CONFIG_DIR: path.join(folder, 'promptfoo'),
        PROMPTFOO_DISABLE_TELEMETRY: '1',
        PROMPTFOO_DISABLE_UPDATE: '1',
      },
    },
  );
  const { results } = JSON.parse(readFileSync(output, 'utf8')) as {
    results: { stats: PromptfooStats };
  };
  return { measured, stats: results.stats };
};
