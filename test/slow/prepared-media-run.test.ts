import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FailureRecord, RequestRecord, ViewRow } from '../../shared/contracts/records.ts';
import { sha256 } from '../../shared/naming.ts';
import {
  type CommandResult,
  projectRoot,
  sweepFile,
  temporaryFolder,
  turnsweep,
} from '../support/command-line.ts';
import { streamsOf } from '../support/media-files.ts';
import { documentsIn } from '../support/packed-records.ts';

interface Body {
  model: string;
  messages: { role: string; content: string | Record<string, { url?: string; data?: string }>[] }[];
}

/** A server of the OpenAI-like dialect that says how many tokens of each medium it saw. */
const startServer = async (tokens: Record<string, number>) => {
  const bodies: Body[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString('utf8')));
      const usage = {
        prompt_tokens: 900,
        completion_tokens: 1,
        total_tokens: 901,
        prompt_tokens_details: tokens,
      };
      const choice = { index: 0, finish_reason: 'stop', delta: { role: 'assistant', content: 'A' } };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(
        [{ choices: [choice] }, { choices: [], usage }]
          .map((event) => JSON.stringify({ id: 'x', model: 'm', ...event }))
          .concat('[DONE]')
          .map((data) => `data: ${data}\n\n`)
          .join(''),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return { bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
};
const allCounted = { audio_tokens: 40, video_tokens: 600, text_tokens: 260 };

/** The example's first tasks on one lane; `damage` changes clips and keeps their digests right. */
const exampleRun = async (
  lane: Record<string, unknown>,
  options: { tokens?: Record<string, number>; damage?: Readonly<Record<string, string>> } = {},
) => {
  const folder = temporaryFolder();
  const release = path.join(folder, 'release');
  cpSync(path.join(projectRoot, 'examples', 'small-return', 'release'), release, { recursive: true });
  const list = path.join(release, 'data', 'media_sha256.txt');
  for (const [name, content] of Object.entries(options.damage ?? {})) {
    const file = path.join(release, 'data', 'media', name);
    const before = sha256(readFileSync(file));
    writeFileSync(file, content);
    writeFileSync(list, readFileSync(list, 'utf8').replace(before, sha256(content)));
  }
  const server = await startServer(options.tokens ?? allCounted);
  const sweep = sweepFile(folder, {
    name: 'prepared',
    benchmark: { kind: 'return', release, manifest: 'data/example_manifest.json' },
    interfaces: ['mcq'],
    models: [
      {
        id: 'lane',
        family: 'Omni',
        modalities: ['V', 'A'],
        baseUrl: server.url,
        maxTokens: 64,
        backoff: { baseSeconds: 0, maxSeconds: 0 },
        ...lane,
      },
    ],
  });
  const out = path.join(folder, 'out');
  const documents = <Document>(name: string) => documentsIn<Document>(path.join(out, 'lanes', 'lane', name));
  return {
    out,
    bodies: server.bodies,
    run: (args: readonly string[] = [], env: Record<string, string> = {}) =>
      turnsweep(['run', sweep, '--out', out, '--limit', '2', ...args], { env }),
    records: () => documents<RequestRecord>('requests'),
    failures: () => documents<FailureRecord>('failures'),
    views: (): ViewRow[] =>
      readFileSync(path.join(out, 'lanes', 'lane', 'views.jsonl'), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    derived: () =>
      readdirSync(path.join(out, 'derived'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => path.join(entry.parentPath, entry.name))
        .toSorted(),
  };
};
const dataOf = (uri: string): Buffer => Buffer.from(uri.slice(uri.indexOf(',') + 1), 'base64');
/** A sent file, put where other programs can look into it. */
const onDisk = (content: Buffer, name: string): string => {
  const file = path.join(temporaryFolder(), name);
  writeFileSync(file, content);
  return file;
};
const partsOf = ({ messages }: Body) =>
  messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
/** Everything was answered; without a judge, wrong answers wait for their review. */
const expectAnswered = ({ code, stderr }: CommandResult, failures: readonly FailureRecord[]) => {
  expect({ code, stderr, failures }).toEqual({ code: 2, stderr: '', failures: [] });
};
const noFfmpeg = { TURNSWEEP_FFMPEG: path.join(projectRoot, 'no-such-folder', 'ffmpeg') };

describe('a lane whose provider takes one medium a message', () => {
  const muxing = {
    provider: 'dashscope',
    model: 'qwen3-omni-flash',
    settings: { fps: 2, videoMaxSide: 240 },
  };

  it('sends video and sound as one file, made once, and counts both', async () => {
    const { run, bodies, records, failures, derived } = await exampleRun(muxing);

    const first = await run();
    const madeAt = derived().map((file) => [file, statSync(file).mtimeMs]);
    const calls = bodies.length;
    const second = await run();

    expectAnswered(first, failures());
    expectAnswered(second, failures());
    expect(calls).toBeGreaterThan(4);
    expect(bodies).toHaveLength(calls);
    expect(derived().map((file) => [file, statSync(file).mtimeMs])).toEqual(madeAt);

    const media = partsOf(bodies[0]!).filter((part) => !('text' in part));
    expect(media).toHaveLength(1);
    const streams = streamsOf(onDisk(dataOf(media[0]!.video_url!.url!), 'sent.mp4'));
    expect(streams).toMatchObject([
      { codec_name: 'h264', avg_frame_rate: '2/1' },
      { codec_name: 'aac', sample_rate: '16000', channels: 1 },
    ]);
    expect(Math.max(streams[0]!.width!, streams[0]!.height!)).toBe(240);
    for (const { offered, consumed } of records()) {
      expect(offered.audio).toBeGreaterThan(0);
      expect(consumed).toEqual(offered);
    }
  });

  it('needs no ffmpeg for clips that another run has made', async () => {
    const shared = temporaryFolder();
    const first = await exampleRun(muxing);
    expectAnswered(await first.run(['--media', shared]), first.failures());
    const second = await exampleRun(muxing);

    expectAnswered(await second.run(['--media', shared], noFfmpeg), second.failures());
    expect(second.records()).toHaveLength(first.records().length);
  });
});

describe('a lane whose provider takes both media', () => {
  const lane = { provider: 'dashscope', model: 'qwen3.8-omni-flash' };

  it('sends clips unchanged that are as they should be', async () => {
    const { run, bodies, failures, derived } = await exampleRun(lane);

    expectAnswered(await run(), failures());
    expect(derived().every((file) => path.basename(file) === 'made.json')).toBe(true);
    const sent = new Set(
      bodies
        .flatMap(partsOf)
        .flatMap((part) => part.video_url?.url ?? part.input_audio?.data ?? [])
        .map((uri) => sha256(dataOf(uri))),
    );
    const digests = readFileSync(
      path.join(projectRoot, 'examples', 'small-return', 'release', 'data', 'media_sha256.txt'),
      'utf8',
    );
    expect(sent.size).toBeGreaterThan(2);
    for (const hash of sent) expect(digests).toContain(hash);
  });

  it('excludes what needs a clip that cannot be used, before any call, with the reason', async () => {
    const { run, bodies, failures, views, records } = await exampleRun(lane, {
      damage: { 'clip-01.mp4': 'This is no video.' },
    });

    const { code } = await run();

    expect(code).toBe(2);
    const unusable = failures().filter(({ kind }) => kind === 'media_unusable');
    expect(unusable.length).toBeGreaterThan(0);
    for (const { message, attempts } of unusable) {
      expect(message).toMatch(
        /^a clip cannot be sent as video: ffprobe cannot read it: .* \(data\/media\/clip-01\.mp4\)$/,
      );
      expect(attempts).toEqual([]);
    }
    expect(bodies).toHaveLength(records().length);
    const excluded = views().filter(({ outcome }) => outcome === 'excluded');
    expect(excluded.length).toBeGreaterThan(0);
    expect(excluded.every(({ reason }) => reason === 'media_unusable' || reason === 'blocked')).toBe(true);
  });

  it('excludes replies to prompts whose sound was dropped', async () => {
    const { run, failures, records } = await exampleRun(lane, {
      tokens: { audio_tokens: 0, video_tokens: 600 },
    });

    const { code } = await run();

    expect(code).toBe(2);
    expect(records()).toEqual([]);
    expect(new Set(failures().map(({ kind }) => kind))).toEqual(new Set(['media_dropped', 'blocked']));
  });
});

describe('a machine without ffmpeg', () => {
  it('says so in one line before any call, where clips have to be looked into', async () => {
    const { run, bodies } = await exampleRun({ provider: 'dashscope', model: 'qwen3.8-omni-flash' });

    const { code, stderr } = await run([], noFfmpeg);

    expect(code).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toMatch(
      /ff\w+ is missing \(.*\); install ffmpeg .*TURNSWEEP_FFMPEG/,
    );
    expect(bodies).toEqual([]);
  });

  it('is good enough where clips go out as they are', async () => {
    const { run, records, failures } = await exampleRun({ provider: 'openai-compatible', model: 'm' });

    expectAnswered(await run([], noFfmpeg), failures());
    expect(records().length).toBeGreaterThan(4);
  });
});
