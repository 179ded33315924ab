import path from 'node:path';
import { expect, it } from 'vitest';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';

/** What `validate` says of a lane of a release whose messages have a video and its sound. */
const validated = async (lane: object) => {
  const folder = temporaryFolder();
  releaseOnDisk(path.join(folder, 'release'), {});
  const file = sweepFile(folder, {
    name: 'quick',
    benchmark: { kind: 'return', release: 'release' },
    interfaces: ['mcq'],
    models: [{ id: 'lane-a', modalities: ['V', 'A'], maxTokens: 64, apiKeyEnv: 'KEY', ...lane }],
  });
  const { code, stderr } = await turnsweep(['validate', file], { env: { KEY: 'k' } });
  return { code, faults: stderr.split('\n').filter((line) => line.includes('lane "lane-a" cannot work')) };
};

const says = (provider: string, model: string, fault: string) =>
  expect.stringContaining(
    `models[0]: lane "lane-a" cannot work: provider "${provider}" with model "${model}" ${fault}`,
  );

it.each([
  ['dashscope', 'qwen3-vl-plus', {}, ['takes no audio']],
  ['ark', 'doubao-seed-2-0-pro-260215', {}, ['takes no audio']],
  ['openai', 'gpt-audio-mini', { settings: { fps: 2 } }, ['takes no video', 'has no setting fps']],
  [
    'openai',
    'gpt-5.4-mini',
    { modalities: ['V'], settings: { temperature: 0 } },
    ['has no setting temperature'],
  ],
  ['stepfun', 'stepaudio-2.5-chat', {}, ['takes no video']],
  ['dashscope', 'qwen3.8-omni-flash', { settings: { stream: false } }, ['works with streams only']],
  ['dashscope', 'qwen3.8-omni-flash', { settings: { fps: 50 } }, ['takes fps from 0.1 to 10, not 50']],
] as const)('%s %s with %j is refused before any call', async (provider, model, more, faults) => {
  const found = await validated({ provider, model, baseUrl: 'http://127.0.0.1:9/v1', ...more });

  expect(found.code).toBe(1);
  expect(found.faults).toEqual(faults.map((fault) => says(provider, model, fault)));
});

it.each([
  ['dashscope', 'qwen3.8-omni-flash'],
  ['dashscope', 'qwen3-omni-flash'],
  ['gemini', 'gemini-3.6-flash'],
  ['vllm', 'Qwen/Qwen3-Omni-30B-A3B-Instruct'],
])('%s %s takes the benchmark as it is', async (provider, model) => {
  expect(await validated({ provider, model, baseUrl: 'http://127.0.0.1:9/v1' })).toEqual({
    code: 0,
    faults: [],
  });
});
