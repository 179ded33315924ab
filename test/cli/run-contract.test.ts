import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareRun } from '../../cli/prepare-run.ts';
import { readSweepFile } from '../../cli/read-sweep.ts';
import { sweepFile } from '../support/command-line.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Identity of the run that a sweep of one lane would be. */
const runOf = async (lane: Record<string, unknown>, more: Record<string, unknown> = {}) => {
  const folder = temporaryDirectory();
  const release = releaseOnDisk(path.join(folder, 'release'), { roots: 2 });
  const file = sweepFile(folder, {
    name: 'identity',
    benchmark: { kind: 'return', release: release.directory },
    models: [
      {
        id: 'lane',
        provider: 'openai-compatible',
        model: 'm',
        modalities: ['V', 'A'],
        baseUrl: 'http://127.0.0.1:1/v1',
        maxTokens: 64,
        settings: { temperature: 0 },
        ...lane,
      },
    ],
    ...more,
  });
  return (await prepareRun(await readSweepFile(file), file, { limit: null })).contractHash;
};

// Replies are kept by run: whatever could change one has to make another run of it (return-protocol §4 rule 4).
describe('replies are never those of', () => {
  it.each<[string, Record<string, unknown>]>([
    ['another model', { model: 'n' }],
    ['another provider', { provider: 'vllm' }],
    ['another address', { baseUrl: 'http://127.0.0.1:2/v1' }],
    ['another cap', { maxTokens: 65 }],
    ['another raised cap', { retryMaxTokens: 128 }],
    ['other channels', { modalities: ['V'] }],
    ['another temperature', { settings: { temperature: 0.5 } }],
    ['no temperature', { settings: {} }],
    ['another top p', { settings: { temperature: 0, topP: 0.9 } }],
    ['another seed', { settings: { temperature: 0, seed: 7 } }],
    ['another effort', { settings: { temperature: 0, reasoningEffort: 'low' } }],
    ['another size of video', { settings: { temperature: 0, videoMaxSide: 512 } }],
  ])('%s', async (_name, change) => {
    expect(await runOf(change)).not.toBe(await runOf({}));
  });

  it('another selection of interfaces', async () => {
    expect(await runOf({}, { interfaces: ['mcq'] })).not.toBe(await runOf({}));
  });
});

it.each<[string, Record<string, unknown>]>([
  ['more calls at once', { maxInFlight: 99 }],
  ['more attempts', { attempts: 9 }],
  ['a longer deadline', { deadlineSeconds: 7 }],
  ['another key', { apiKeyEnv: 'OTHER_KEY' }],
  ['a price', { price: { inputPerMTok: 1, outputPerMTok: 2 } }],
  ['a name for people', { displayName: 'The model' }],
])('%s is the same run', async (_name, change) => {
  expect(await runOf(change)).toBe(await runOf({}));
});
