import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse as parseCsv } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { checkSweepRules } from '../../cli/sweep-rules.ts';
import { isGpu, isHosted, readLanes } from '../../infra/config/lanes.ts';
import { type SweepFile, sweepFile } from '../../shared/contracts/sweep-file.ts';
import { misfits } from '../../shared/domain/capabilities.ts';
import { providerOf } from '../../shared/providers/registry.ts';
import { projectRoot, referenceRelease, turnsweep } from '../support/command-line.ts';

type Lane = SweepFile['models'][number];

const folder = path.join(projectRoot, 'examples', 'models');
const leaderboard = path.join(projectRoot, '..', 'shared', 'reference', 'leaderboard.csv');

/** A file of the catalogue with every address at its default and each other variable by its name. */
const catalogue = (file: string): SweepFile => {
  const text = readFileSync(path.join(folder, file), 'utf8');
  return sweepFile.parse(
    parseYaml(text.replace(/\$\{(\w+)(?::-([^}]*))?\}/g, (_, name, usual) => usual ?? name)),
  );
};
const lanesOf = (file: string): Lane[] => catalogue(file).models;
const laneOf = (model: string): Lane => lanesOf('return.yaml').find((lane) => lane.model === model)!;

/** Clips in one request at most: five turns of a long ReTurn conversation, each with a video and its sound. */
const longConversation = 5;

const misfitsOf = (lane: Lane, clips: number): string[] => {
  const provider = providerOf(lane.provider, lane.model);
  const needs = {
    channels: lane.modalities,
    clipsPerRequest: {
      audio: lane.modalities.includes('A') ? clips : 0,
      video: lane.modalities.includes('V') ? clips : 0,
    },
    mixesMedia: lane.modalities.length === 2,
    hasSilentRequests: !lane.modalities.includes('A'),
    givesUrls: false,
    largestClipBytes: 1_000_000,
  };
  return misfits(provider.capabilities(lane.model), needs, lane.settings, provider.clipForms(lane).mux);
};

describe('lanes of the ReTurn paper', () => {
  // Return-protocol §2: six that are shown both channels, four that are shown video, three that are shown sound.
  it.each([
    ['Omni', ['V', 'A'], 6],
    ['LVLM', ['V'], 4],
    ['LALM', ['A'], 3],
  ])('%s is shown %j, in %i configurations', (family, modalities, count) => {
    const lanes = lanesOf('return.yaml').filter((lane) => lane.family === family);

    expect(lanes).toHaveLength(count);
    for (const lane of lanes) expect(lane.modalities, lane.id).toEqual(modalities);
  });

  it('are 13, each taken by its provider with the longest conversation', () => {
    const lanes = lanesOf('return.yaml');

    expect(lanes).toHaveLength(13);
    for (const lane of lanes) expect(misfitsOf(lane, longConversation), lane.id).toEqual([]);
  });

  // The preview release, configs/*.json.
  it.each([
    [
      'qwen3.8-omni-flash',
      1024,
      4096,
      5,
      { temperature: 0, reasoningEffort: 'none', fps: 2, videoMaxSide: 768 },
    ],
    ['qwen3.7-plus', 1024, 2048, 3, { temperature: 0, thinking: false, fps: 2, videoMaxSide: 768 }],
    ['stepaudio-3-chat-preview', 1024, 16_384, 4, { temperature: 0 }],
    [
      'Qwen/Qwen3-Omni-30B-A3B-Instruct',
      128,
      1024,
      5,
      { temperature: 0, seed: 2020, fps: 2, videoMaxSide: 768 },
    ],
    [
      'Qwen/Qwen3-VL-30B-A3B-Instruct',
      256,
      1024,
      5,
      { temperature: 0, seed: 20_260_921, fps: 2, videoMaxSide: 768 },
    ],
    ['nvidia/audio-flamingo-3-hf', 256, 1024, 5, { temperature: 0, seed: 20_260_921 }],
  ])(
    '%s has the caps and settings of the release',
    (model, maxTokens, retryMaxTokens, attempts, settings) => {
      expect(laneOf(model)).toMatchObject({ maxTokens, retryMaxTokens, attempts });
      expect(laneOf(model).settings).toEqual(settings);
    },
  );

  it('name no cap where none is stated', () => {
    const written: Partial<Lane>[] = parseYaml(readFileSync(path.join(folder, 'return.yaml'), 'utf8')).models;

    expect(written.filter((lane) => lane.maxTokens === undefined).map(({ id }) => id)).toEqual([
      'doubao-seed-2.0-lite',
      'mimo-v2.5',
      'minicpm-o-4.5',
      'nemotron-3-nano-omni',
      'minicpm-v-4.5',
      'internvl3.5',
      'mimo-audio',
    ]);
    for (const lane of written)
      expect(lane.retryMaxTokens === undefined, lane.id).toBe(lane.maxTokens === undefined);
  });

  it('validate as they stand, with nothing set but the release and the size of InternVL', async () => {
    const env = {
      RETURN_RELEASE: path.join(projectRoot, 'examples/small-return/release'),
      INTERNVL35_MODEL: 'OpenGVLab/InternVL3_5-8B',
    };

    const { code, stdout, stderr } = await turnsweep(['validate', 'examples/models/return.yaml'], { env });

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('13 lanes');
  });

  it('are told by name which variable is missing', async () => {
    const { code, stderr } = await turnsweep(['validate', 'examples/models/return.yaml'], {
      env: { RETURN_RELEASE: '', INTERNVL35_MODEL: '' },
    });

    expect(code).toBe(1);
    expect(stderr).toContain('RETURN_RELEASE is not set');
    expect(stderr).toContain('INTERNVL35_MODEL is not set');
  });
});

describe.runIf(existsSync(referenceRelease))('lanes of the ReTurn paper beside the reference data', () => {
  it('have the names and families of the leaderboard', () => {
    const rows: { model: string; family: string }[] = parseCsv(readFileSync(leaderboard), { columns: true });
    const published = new Map(rows.map(({ model, family }) => [model, family]));

    expect(new Map(lanesOf('return.yaml').map((lane) => [lane.displayName, lane.family]))).toEqual(published);
  });

  it('have what each configuration of the release says', () => {
    const configs = readdirSync(path.join(referenceRelease, 'configs')).map((file) =>
      JSON.parse(readFileSync(path.join(referenceRelease, 'configs', file), 'utf8')),
    );

    expect(configs).toHaveLength(6);
    for (const config of configs) {
      const { modalities, maxTokens, retryMaxTokens, attempts, settings } = laneOf(config.model);
      expect({ modalities, maxTokens, retryMaxTokens }, config.model).toEqual({
        modalities: config.modalities,
        maxTokens: config.max_tokens,
        retryMaxTokens: config.retry_tokens,
      });
      expect(attempts, config.model).toBe(config.attempts ?? 5);
      expect(settings, config.model).toMatchObject({
        temperature: config.temperature,
        ...(config.seed === undefined ? {} : { seed: config.seed }),
        ...(config.reasoning_effort === undefined ? {} : { reasoningEffort: config.reasoning_effort }),
        ...(config.modalities.includes('V') ? { fps: config.fps, videoMaxSide: config.video_max_side } : {}),
      });
    }
  });
});

describe('lanes of the VoxMem paper', () => {
  it('are the five with a public API, for sound, each taken by its provider', () => {
    const lanes = lanesOf('voxmem.yaml');

    expect(lanes.map(({ displayName }) => displayName).toSorted()).toEqual([
      'Gemini-2.5-Pro',
      'Gemini-3.1-Pro',
      'Gemini-3.8-Flash',
      'Qwen3.5-Omni-Plus',
      'Qwen3.8-Omni-Flash',
    ]);
    for (const lane of lanes) {
      expect(lane.modalities, lane.id).toEqual(['A']);
      expect(misfitsOf(lane, 250), lane.id).toEqual([]);
    }
  });

  it('break no rule of a sweep file', () => {
    const sweep = catalogue('voxmem.yaml');

    expect(checkSweepRules(sweep)).toEqual([]);
  });
});

describe('deployment of the catalogue', () => {
  const config = readLanes(path.join(folder, 'lanes.json'));
  const sweep = catalogue('return.yaml');
  const laneById = (id: string): Lane => sweep.models.find((lane) => lane.id === id)!;

  it('has every hosted lane with its key, and the judge', () => {
    const hosted = sweep.models.filter((lane) => lane.apiKeyEnv !== undefined);

    expect(config.lanes.filter(isHosted).map(({ id, secret }) => [id, secret])).toEqual(
      hosted.map(({ id, apiKeyEnv }) => [id, apiKeyEnv]),
    );
    expect(config.judge.secret).toBe(sweep.judge!.apiKeyEnv);
  });

  it('has every lane that vLLM serves as a whole, at the address and by the name of the sweep', () => {
    const withoutEntry = ['internvl3.5', 'mimo-audio'];
    const served = sweep.models.filter(
      ({ id, provider }) => provider === 'vllm' && !withoutEntry.includes(id),
    );

    const gpuLanes = config.lanes.filter(isGpu);

    expect(gpuLanes.map(({ id }) => id)).toEqual(served.map(({ id }) => id));
    for (const { id, server } of gpuLanes) {
      const { model, provider, baseUrl } = laneById(id);
      expect({ model: server.model, engine: server.engine }, id).toEqual({ model, engine: provider });
      expect(baseUrl, id).toBe(`http://127.0.0.1:${server.port}/v1`);
    }
  });

  it('starts servers that take the clips of the longest conversation, at 2 fps', () => {
    for (const { id, server } of config.lanes.filter(isGpu)) {
      const { modalities, settings } = laneById(id);
      const argument = (name: string) => JSON.parse(server.arguments[server.arguments.indexOf(name) + 1]!);
      const { num_frames, fps } = argument('--media-io-kwargs').video;

      expect(argument('--limit-mm-per-prompt'), id).toEqual({
        ...(modalities.includes('V') ? { video: longConversation } : {}),
        ...(modalities.includes('A') ? { audio: longConversation } : {}),
      });
      expect(num_frames, id).toBe(-1);
      // Once, by the server or by each call.
      expect(
        [fps, settings.fps].filter((rate) => rate !== undefined),
        id,
      ).toEqual([2]);
    }
  });

  it('gives local lanes ports of their own', () => {
    const addresses = sweep.models.flatMap(({ baseUrl }) =>
      baseUrl!.includes('127.0.0.1') ? [baseUrl!] : [],
    );

    expect(addresses).toHaveLength(9);
    expect(new Set(addresses).size).toBe(9);
  });
});

it('the catalogue tells of every lane and model', () => {
  const readme = readFileSync(path.join(folder, 'README.md'), 'utf8');

  for (const { id, model } of [...lanesOf('return.yaml'), ...lanesOf('voxmem.yaml')]) {
    expect(readme).toContain(`\`${id}\``);
    expect(readme).toContain(`\`${model}\``);
  }
});
