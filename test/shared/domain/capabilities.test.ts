import { describe, expect, it } from 'vitest';
import type { Capabilities, LaneNeeds, WantedSettings } from '../../../shared/domain/capabilities.ts';
import { misfits } from '../../../shared/domain/capabilities.ts';

const takesAll: Capabilities = {
  channels: ['V', 'A'],
  mixesMedia: 'any',
  videoAs: 'file',
  clipsPerRequest: { audio: null, video: null },
  fps: { min: 0.1, max: 10 },
  inlineAtMost: null,
  takesUrls: false,
  takesInlineVideo: true,
  bodyBytesAtMost: null,
  partOrder: 'frozen',
  takesSystemTurn: true,
  settings: ['temperature', 'topP', 'seed', 'reasoningEffort', 'fps', 'thinking'],
  reasoningEfforts: ['none', 'low', 'high'],
  thinking: 'switch',
  streamRequired: false,
  batch: false,
  countsTokensOf: [],
};
const omni: LaneNeeds = {
  channels: ['V', 'A'],
  clipsPerRequest: { audio: 5, video: 5 },
  mixesMedia: true,
  largestClipBytes: 3000,
};
const found = (
  more: Partial<Capabilities>,
  needs: Partial<LaneNeeds> = {},
  settings: WantedSettings = {},
  mux = false,
) => misfits({ ...takesAll, ...more }, { ...omni, ...needs }, settings, mux);

describe('media', () => {
  it('fit where nothing is limited', () => {
    expect(found({})).toEqual([]);
  });

  it.each<[string, Partial<Capabilities>, Partial<LaneNeeds>, string[]]>([
    ['no video', { channels: ['A'] }, {}, ['takes no video']],
    ['no audio', { channels: ['V'] }, {}, ['takes no audio']],
    ['neither', { channels: [] }, {}, ['takes no video', 'takes no audio']],
    ['audio that the lane does not send', { channels: ['V'] }, { channels: ['V'], mixesMedia: false }, []],
    ['one kind a message', { mixesMedia: 'one-kind' }, {}, ['takes video or audio in one message, not both']],
    ['one kind a message, one sent', { mixesMedia: 'one-kind' }, { mixesMedia: false }, []],
    [
      'as many clips as fit',
      { clipsPerRequest: { audio: 5, video: 5 } },
      { clipsPerRequest: { audio: 5, video: 5 } },
      [],
    ],
    [
      'one clip too many of each',
      { clipsPerRequest: { audio: 4, video: 4 } },
      {},
      [
        'takes 4 audio clips in a request, history included; 5 are needed',
        'takes 4 video clips in a request, history included; 5 are needed',
      ],
    ],
    [
      'requests without sound',
      { needsAudio: true },
      { hasSilentRequests: true },
      ['takes no request without audio'],
    ],
    ['sound in every request', { needsAudio: true }, { hasSilentRequests: false }, []],
    ['sound perhaps not in every request', { needsAudio: true }, {}, []],
    ['a silent request where that is no matter', {}, { hasSilentRequests: true }, []],
  ])('%s', (_name, capabilities, needs, expected) => {
    expect(found(capabilities, needs)).toEqual(expected);
  });

  it('of both kinds fit in one message as one file, and then the sounds are no clips of their own', () => {
    const oneKind: Partial<Capabilities> = {
      mixesMedia: 'one-kind',
      clipsPerRequest: { audio: 0, video: 5 },
    };

    expect(found(oneKind, {}, {}, true)).toEqual([]);
    expect(found(oneKind, { clipsPerRequest: { audio: 6, video: 5 } }, {}, true)).toEqual([
      'takes 0 audio clips in a request, history included; 1 are needed',
    ]);
    expect(found(oneKind, { mixesMedia: false }, {}, true)).toEqual([
      'takes 0 audio clips in a request, history included; 5 are needed',
    ]);
  });
});

describe('sizes', () => {
  // 3000 bytes are 1000 groups of three, so 4000 characters of base64; 3001 begin another group.
  it.each<[string, Partial<Capabilities>, Partial<LaneNeeds>, string[]]>([
    ['a clip of exactly the limit', { inlineAtMost: 4000 }, {}, []],
    [
      'a clip above it',
      { inlineAtMost: 4000 },
      { largestClipBytes: 3001 },
      ['takes 4000 bytes of an encoded clip in a request; the largest clip has 4004'],
    ],
    ['a clip above it that can be fetched', { inlineAtMost: 10, takesUrls: true }, {}, []],
    [
      'a clip above it where the store has no addresses',
      { inlineAtMost: 10, takesUrls: true },
      { givesUrls: false },
      ['takes 10 bytes of an encoded clip in a request; the largest clip has 4000'],
    ],
    [
      'a clip above the body',
      { inlineAtMost: 8000, bodyBytesAtMost: 3999 },
      {},
      ['takes 3999 bytes of an encoded clip in a request; the largest clip has 4000'],
    ],
    ['clips of unknown size', { inlineAtMost: 10 }, { largestClipBytes: null }, []],
    ['a video that goes as frames', { inlineAtMost: 10, videoAs: 'pictures' }, {}, []],
    [
      'sound where video would go as frames',
      { inlineAtMost: 10, videoAs: 'pictures' },
      { channels: ['A'], mixesMedia: false },
      ['takes 10 bytes of an encoded clip in a request; the largest clip has 4000'],
    ],
    ['video by address', { takesInlineVideo: false, takesUrls: true }, { givesUrls: true }, []],
    [
      'video by address where the store has none',
      { takesInlineVideo: false, takesUrls: true },
      { givesUrls: false },
      ['takes video by its address only'],
    ],
    [
      'sound alone where video goes by address',
      { takesInlineVideo: false, takesUrls: true },
      { givesUrls: false, channels: ['A'], mixesMedia: false },
      [],
    ],
  ])('%s', (_name, capabilities, needs, expected) => {
    expect(found(capabilities, needs)).toEqual(expected);
  });
});

describe('many clips in a request', () => {
  const peak = (amount: number, clips = 312) => ({ amount, requestId: 'q_00006_64k', clips });

  it.each<[string, Partial<Capabilities>, Partial<LaneNeeds>, string[]]>([
    ['together exactly the body', { bodyBytesAtMost: 20_000_000 }, { inlineBytesAtMost: peak(2e7) }, []],
    [
      'together more than the body',
      { bodyBytesAtMost: 20_000_000 },
      { inlineBytesAtMost: peak(41_260_000) },
      ['takes 20.0 MB in a request; request q_00006_64k has 312 clips, 41.3 MB encoded'],
    ],
    [
      'together more than a small body',
      { bodyBytesAtMost: 5000 },
      { inlineBytesAtMost: peak(5004, 2) },
      ['takes 5000 bytes in a request; request q_00006_64k has 2 clips, 5004 bytes encoded'],
    ],
    [
      'one of which is more than the body, told once',
      { bodyBytesAtMost: 3999 },
      { inlineBytesAtMost: peak(8000) },
      ['takes 3999 bytes of an encoded clip in a request; the largest clip has 4000'],
    ],
    [
      'which can be fetched',
      { bodyBytesAtMost: 20_000_000, takesUrls: true },
      { inlineBytesAtMost: peak(41_260_000) },
      [],
    ],
    ['of unknown size', { bodyBytesAtMost: 10 }, { inlineBytesAtMost: null, largestClipBytes: null }, []],
    ['where no body is too large', {}, { inlineBytesAtMost: peak(9e9) }, []],
    ['of exactly the sound taken', { audioSecondsAtMost: 34_200 }, { audioSecondsAtMost: peak(34_200) }, []],
    [
      'of more sound than is taken',
      { audioSecondsAtMost: 34_200 },
      { audioSecondsAtMost: peak(34_200.2) },
      ['takes 34200 s of sound in a request; request q_00006_64k has 34201 s in 312 clips'],
    ],
    [
      'more than there may be, named',
      { clipsPerRequest: { audio: 4, video: null } },
      { mostClipsIn: { audio: 'q_1', video: 'q_2' } },
      ['takes 4 audio clips in a request, history included; 5 are needed (request q_1)'],
    ],
    [
      'more than there may be inline, where all may be fetched',
      {
        clipsPerRequest: { audio: 4, video: 4 },
        clipsByAddress: { audio: 5, video: null },
        takesUrls: true,
      },
      { givesUrls: true },
      [],
    ],
    [
      'more than there may be inline, where nobody gives addresses',
      {
        clipsPerRequest: { audio: 4, video: null },
        clipsByAddress: { audio: 5, video: null },
        takesUrls: true,
      },
      { givesUrls: false },
      ['takes 4 audio clips in a request, history included; 5 are needed'],
    ],
  ])('%s', (_name, capabilities, needs, expected) => {
    expect(found(capabilities, needs)).toEqual(expected);
  });
});

describe('a system turn', () => {
  it.each<[boolean, WantedSettings['systemPrompt'], string[]]>([
    [true, 'native', []],
    [true, 'folded', []],
    [false, 'folded', []],
    [false, undefined, []],
    [false, 'native', ['takes no system turn; set systemPrompt to folded, or leave it out']],
  ])('taken: %s, wanted: %s', (takesSystemTurn, systemPrompt, expected) => {
    expect(found({ takesSystemTurn }, {}, { systemPrompt })).toEqual(expected);
  });
});

describe('settings', () => {
  it.each<[string, Partial<Capabilities>, WantedSettings, string[]]>([
    [
      'all that there are',
      {},
      { temperature: 0, topP: 1, seed: 0, reasoningEffort: 'low', fps: 2, thinking: true, stream: true },
      [],
    ],
    [
      'none of them, zeros and no included',
      { settings: [] },
      { temperature: 0, topP: 1, seed: 0, fps: 2, thinking: false },
      [
        'has no setting temperature',
        'has no setting topP',
        'has no setting seed',
        'has no setting fps',
        'has no setting thinking',
      ],
    ],
    ['one that is left open', { settings: [] }, { temperature: undefined }, []],
    ['no stream', {}, { stream: false }, []],
    [
      'no stream where only streams work',
      { streamRequired: true },
      { stream: false },
      ['works with streams only'],
    ],
    ['a stream where only streams work', { streamRequired: true }, { stream: true }, []],
    ['the lowest rate', {}, { fps: 0.1 }, []],
    ['the highest rate', {}, { fps: 10 }, []],
    ['a rate below', {}, { fps: 0.05 }, ['takes fps from 0.1 to 10, not 0.05']],
    ['a rate above', {}, { fps: 10.5 }, ['takes fps from 0.1 to 10, not 10.5']],
    ['any rate where no bounds are known', { fps: null }, { fps: 99 }, []],
    [
      'an effort that the model lacks',
      {},
      { reasoningEffort: 'max' },
      ['has the reasoning efforts none, low, high, not max'],
    ],
    ['any effort where none is known', { reasoningEfforts: null }, { reasoningEffort: 'max' }, []],
    [
      'thinking off with an effort',
      {},
      { thinking: false, reasoningEffort: 'high' },
      ['cannot have thinking false with effort high'],
    ],
    [
      'thinking on without effort',
      {},
      { thinking: true, reasoningEffort: 'none' },
      ['cannot have thinking true with effort none'],
    ],
    ['thinking off without effort', {}, { thinking: false, reasoningEffort: 'none' }, []],
  ])('%s', (_name, capabilities, settings, expected) => {
    expect(found(capabilities, {}, settings)).toEqual(expected);
  });

  it('that we carry out ourselves fit everywhere', () => {
    const laneSettings = { videoMaxSide: 512, stream: true };

    expect(found({ settings: [] }, {}, laneSettings)).toEqual([]);
  });
});
