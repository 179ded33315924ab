import { describe, expect, it } from 'vitest';
import { type LaneNeeds, misfits, type WantedSettings } from '../../../../shared/domain/capabilities.ts';
import { openAi } from '../../../../shared/providers/openai/provider.ts';

const seeing: LaneNeeds = {
  channels: ['V'],
  clipsPerRequest: { audio: 0, video: 5 },
  mixesMedia: false,
  largestClipBytes: 50_000_000,
};
const hearing: LaneNeeds = { ...seeing, channels: ['A'], clipsPerRequest: { audio: 5, video: 0 } };
const misfitsOf = (model: string, needs: LaneNeeds, settings: WantedSettings = {}) =>
  misfits(openAi.capabilities(model), needs, settings, false);

describe('planning', () => {
  it.each<[string, LaneNeeds, WantedSettings]>([
    ['gpt-5.5', seeing, { reasoningEffort: 'max', fps: 1 }],
    ['gpt-5.4-mini', seeing, { reasoningEffort: 'none' }],
    ['gpt-5', seeing, { reasoningEffort: 'minimal' }],
    ['gpt-5-mini-2025-08-07', seeing, { reasoningEffort: 'high' }],
    ['gpt-5.1', seeing, { reasoningEffort: 'none' }],
    ['o4-mini', seeing, { reasoningEffort: 'low' }],
    ['gpt-4.1-mini', seeing, { temperature: 0, topP: 1, seed: 7 }],
    ['gpt-4o-2024-11-20', seeing, { temperature: 0 }],
    ['gpt-5-chat-latest', seeing, { temperature: 0 }],
    ['gpt-audio', hearing, { temperature: 0, seed: 7 }],
    ['gpt-audio-mini-2026-01-01', hearing, {}],
    ['gpt-4o-mini-audio-preview', hearing, {}],
    ['something-new', hearing, { temperature: 0, reasoningEffort: 'low' }],
  ])('lets %s pass', (model, needs, settings) => {
    expect(misfitsOf(model, needs, settings)).toEqual([]);
  });

  it.each<[string, LaneNeeds, WantedSettings, string[]]>([
    ['gpt-5.5', seeing, { temperature: 0 }, ['has no setting temperature']],
    ['gpt-5.4-mini', seeing, { topP: 0.9, seed: 1 }, ['has no setting topP', 'has no setting seed']],
    ['ft:gpt-5-nano:org::1', seeing, { temperature: 1 }, ['has no setting temperature']],
    ['o3', seeing, { temperature: 0 }, ['has no setting temperature']],
    [
      'gpt-5',
      seeing,
      { reasoningEffort: 'none' },
      ['has the reasoning efforts minimal, low, medium, high, not none'],
    ],
    [
      'gpt-5.1',
      seeing,
      { reasoningEffort: 'minimal' },
      ['has the reasoning efforts none, low, medium, high, not minimal'],
    ],
    ['gpt-4.1', seeing, { reasoningEffort: 'low' }, ['has no setting reasoningEffort']],
    ['gpt-5.5', hearing, {}, ['takes no audio']],
    ['gpt-4.1', seeing, { thinking: true }, ['has no setting thinking']],
    ['gpt-audio', seeing, {}, ['takes no video']],
    ['gpt-audio', { ...hearing, hasSilentRequests: true }, {}, ['takes no request without audio']],
    ['gpt-audio', hearing, { fps: 2 }, ['has no setting fps']],
    [
      'something-new',
      { ...hearing, channels: ['V', 'A'], mixesMedia: true },
      {},
      ['takes video or audio in one message, not both'],
    ],
  ])('refuses %s: %j %j', (model, needs, settings, expected) => {
    expect(misfitsOf(model, needs, settings)).toEqual(expected);
  });
});
