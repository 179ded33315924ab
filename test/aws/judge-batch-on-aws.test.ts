import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { startBatchServer } from '../support/batch-server.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, example, exampleSweep, startExampleProvider } from './deployed-example.ts';

it('a judge that works in batches comes to the same on AWS as on one machine', async () => {
  const folder = temporaryFolder();
  const mock = await startExampleProvider();
  const server = await startBatchServer({
    walk: ['in_progress'],
    fate: (id, batch) => (batch % 2 === 1 && id.endsWith('000000') ? 'missing' : 'reply'),
  });
  const emulator = await deployExample(folder);
  cpSync(path.join(example, 'release'), path.join(folder, 'release'), { recursive: true });
  const content = parseYaml(readFileSync(exampleSweep, 'utf8'));
  const file = sweepFile(folder, {
    ...content,
    judge: {
      provider: 'openai',
      model: 'gpt-5.4-mini',
      baseUrl: server.url,
      price: { inputPerMTok: 1, outputPerMTok: 2 },
      batch: true,
      batchPoll: { baseSeconds: 1, maxSeconds: 1 },
    },
  });
  const env = { MOCK_BASE_URL: mock.url };

  const here = await turnsweep(['run', file, '--out', path.join(folder, 'here')], { env });
  const onAws = await turnsweep(['run', file, '--on', 'aws', '--out', path.join(folder, 'aws')], {
    env: { ...env, ...emulator.environment, TURNSWEEP_LOOK_SECONDS: '1' },
  });

  expect(here).toMatchObject({ code: 0, stderr: '' });
  expect({ code: onAws.code, stderr: onAws.stderr }, emulator.output().slice(-6000)).toEqual({
    code: 0,
    stderr: '',
  });
  expect(resultFiles(path.join(folder, 'aws'))).toEqual(resultFiles(path.join(folder, 'here')));
  const sizes = server.batches.map(({ lines }) => lines.length);
  const chunks = sizes[0]!;
  // Each home: a batch of all, and one of the chunk that it has left out.
  expect(sizes).toEqual([chunks, 1, chunks, 1]);
  expect(server.calls).toEqual([]);
});
