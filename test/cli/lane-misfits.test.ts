import { describe, expect, it } from 'vitest';
import { type ListedClip, laneMisfits, needsOf } from '../../cli/lane-misfits.ts';
import type { LanePlan } from '../../shared/benchmarks/benchmark.ts';
import { sweepFile } from '../../shared/contracts/sweep-file.ts';
import { asTheyAre, benchmarkForms } from '../../shared/domain/media.ts';
import type { FrozenRequest } from '../../shared/domain/request.ts';

/** One session after the other, each of one sound; then the question. */
const request = (requestId: string, sounds: readonly string[]): FrozenRequest => ({
  requestId,
  messages: [
    { role: 'system', text: 'Be brief.' },
    ...sounds.flatMap((path): FrozenRequest['messages'] => [
      { role: 'user', content: [{ type: 'audio', path }] },
      { role: 'assistant', text: 'Noted.' },
    ]),
    { role: 'user', content: [{ type: 'audio', path: 'question.wav' }] },
  ],
});
const named = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index}.wav`);
const always = (clip: ListedClip | null) => () => clip;

/** 5 s of 24 kHz mono 16-bit WAV. As it is sent, in 16 kHz, it has 44 + 160,000 bytes. */
const fiveSeconds: ListedClip = { bytes: 240_044, seconds: 5 };
const wavOfFiveSeconds = 160_044;
// 4/3 of 160,044 bytes: they divide by three.
const encoded = 213_392;

describe('what requests need', () => {
  const forms = benchmarkForms({});

  it('is that of the request with the most, its sounds in the form in which they are sent', () => {
    const requests = [
      request('q_short', named(2)),
      request('q_long', named(99)),
      request('q_other', named(3)),
    ];

    const needs = needsOf({ modalities: ['A'] }, requests, { forms, listed: always(fiveSeconds) });

    expect(needs).toEqual({
      channels: ['A'],
      clipsPerRequest: { audio: 100, video: 0 },
      mostClipsIn: { audio: 'q_long', video: null },
      mixesMedia: false,
      hasSilentRequests: false,
      largestClipBytes: wavOfFiveSeconds,
      inlineBytesAtMost: { amount: 100 * encoded, requestId: 'q_long', clips: 100 },
      audioSecondsAtMost: { amount: 500, requestId: 'q_long', clips: 100 },
    });
  });

  it('is the size of the files where clips go as they are', () => {
    const needs = needsOf({ modalities: ['A'] }, [request('q', named(1))], {
      forms: asTheyAre,
      listed: always({ bytes: 100, seconds: null }),
    });

    // 100 bytes are 34 groups of three: 136 characters.
    expect(needs).toMatchObject({
      largestClipBytes: 100,
      inlineBytesAtMost: { amount: 272, requestId: 'q', clips: 2 },
      audioSecondsAtMost: null,
    });
  });

  it('is unknown where only making a clip tells its size, or nothing is listed', () => {
    const unknown = { largestClipBytes: null, inlineBytesAtMost: null, audioSecondsAtMost: null };
    const requests = [request('q', named(1))];

    const long = always({ bytes: 100, seconds: null });
    expect(needsOf({ modalities: ['A'] }, requests, { forms, listed: long })).toMatchObject(unknown);
    expect(
      needsOf({ modalities: ['A'] }, requests, { forms: asTheyAre, listed: always(null) }),
    ).toMatchObject(unknown);
  });

  it('leaves out sounds that become part of a picture', () => {
    const both: FrozenRequest = {
      requestId: 'q',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video', path: 'a.mp4' },
            { type: 'audio', path: 'a.wav' },
          ],
        },
      ],
    };

    const needs = needsOf({ modalities: ['V', 'A'] }, [both], {
      forms: benchmarkForms({}, { mux: true }),
      listed: always(fiveSeconds),
    });

    expect(needs).toMatchObject({ inlineBytesAtMost: null, largestClipBytes: null, mixesMedia: true });
  });
});

describe('lanes that cannot work', () => {
  const requests = new Map(
    [request('q_8k', named(20)), request('q_64k', named(311))].map((one) => [one.requestId, one]),
  );
  const misfitsOf = (lane: object, givesUrls: boolean | undefined = false) => {
    const sweep = sweepFile.parse({
      name: 's',
      benchmark: { kind: 'return', release: 'r' },
      models: [{ id: 'a', modalities: ['A'], ...lane }],
    });
    const plan = {
      taskIds: [],
      groups: [],
      views: [...requests.keys()].map((id) => ({ requestIds: [id] })),
    } as unknown as LanePlan;
    return laneMisfits(sweep, new Map([['a', plan]]), { frozenRequest: (_, id) => requests.get(id)! }, null, {
      mediaFacts: always(fiveSeconds),
      givesUrls,
    });
  };

  it('are told with the request that is too large', () => {
    // 312 · 213,392 bytes.
    expect(misfitsOf({ provider: 'gemini', model: 'gemini-3.8-flash' })).toEqual([
      'models[0]: lane "a" cannot work: provider "gemini" with model "gemini-3.8-flash" takes 20.0 MB in a request; request q_64k has 312 clips, 66.6 MB encoded',
    ]);
    expect(misfitsOf({ provider: 'bedrock', model: 'us.amazon.nova-2-omni-v1:0' })).toEqual([
      'models[0]: lane "a" cannot work: provider "bedrock" with model "us.amazon.nova-2-omni-v1:0" takes 25.0 MB in a request; request q_64k has 312 clips, 66.6 MB encoded',
    ]);
  });

  it('are told with the request of too many clips, where nobody gives addresses', () => {
    const lane = { provider: 'dashscope', model: 'qwen3.8-omni-flash', baseUrl: 'https://dash.example/v1' };
    const place = 'models[0]: lane "a" cannot work: provider "dashscope" with model "qwen3.8-omni-flash"';

    expect(misfitsOf(lane)).toEqual([
      `${place} takes 250 audio clips in a request, history included; 312 are needed (request q_64k)`,
      `${place} takes 6.3 MB in a request; request q_64k has 312 clips, 66.6 MB encoded`,
    ]);
    expect(misfitsOf(lane, true)).toEqual([]);
  });

  it('are none whose server has no known limit, or that call nobody', () => {
    expect(misfitsOf({ provider: 'vllm', model: 'm', baseUrl: 'http://127.0.0.1/v1' })).toEqual([]);
    expect(misfitsOf({ provider: 'fixed-reply', model: 'm', reply: 'No.' })).toEqual([]);
  });
});
