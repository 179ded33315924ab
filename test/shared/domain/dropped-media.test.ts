import { describe, expect, it } from 'vitest';
import { droppedMedium } from '../../../shared/domain/dropped-media.ts';
import { type Usage, unknownUsage } from '../../../shared/domain/outcome.ts';

const counted = (counts: Partial<Usage>): Usage => ({ ...unknownUsage, inputTokens: 900, ...counts });
const both = { audio: 1, video: 2 };
const file = { countsTokensOf: ['audio', 'video'], videoAs: 'file' } as const;
const pictures = { countsTokensOf: ['audio', 'image'], videoAs: 'pictures' } as const;

describe('a medium that was sent', () => {
  it('has arrived where its tokens are counted', () => {
    expect(droppedMedium(both, counted({ audioInputTokens: 50, videoInputTokens: 800 }), file)).toBeNull();
    expect(
      droppedMedium(both, counted({ audioInputTokens: 50, imageInputTokens: 800 }), pictures),
    ).toBeNull();
  });

  it.each([
    ['audio', { audioInputTokens: 0, videoInputTokens: 800 }],
    ['audio', { videoInputTokens: 800 }],
    ['video', { audioInputTokens: 50, videoInputTokens: 0 }],
    ['video', { audioInputTokens: 50 }],
  ] as const)('was dropped where none of its tokens are: %s', (medium, counts) => {
    expect(droppedMedium(both, counted(counts), file)).toBe(medium);
  });

  it('was dropped where pictures are counted and there are none', () => {
    expect(droppedMedium({ audio: 0, video: 1 }, counted({ textInputTokens: 900 }), pictures)).toBe('video');
  });

  it('cannot be told of where the provider does not count it, or counted nothing at all', () => {
    const none = { countsTokensOf: [], videoAs: 'file' } as const;
    expect(droppedMedium(both, counted({}), none)).toBeNull();
    expect(droppedMedium(both, unknownUsage, file)).toBeNull();
  });

  it('cannot be told of where the tokens came without any split', () => {
    expect(droppedMedium(both, counted({ outputTokens: 2 }), file)).toBeNull();
    // A split that has nothing but what came from the cache is one.
    expect(droppedMedium(both, counted({ cachedInputTokens: 0 }), file)).toBe('audio');
  });

  it('is not missed where it was not sent', () => {
    expect(droppedMedium({ audio: 0, video: 0 }, counted({}), file)).toBeNull();
    expect(droppedMedium({ audio: 0, video: 1 }, counted({ videoInputTokens: 7 }), file)).toBeNull();
  });
});
