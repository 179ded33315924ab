import { describe, expect, it } from 'vitest';
import { asTheyAre, type ClipForms, recipeId, sentParts } from '../../../shared/domain/media.ts';
import type { ResolvedPart } from '../../../shared/domain/request.ts';

const hash = 'a'.repeat(64);
const text: ResolvedPart = { type: 'text', text: 'What is it?' };
const clip = (type: 'audio' | 'video', sha256: string | null = hash): ResolvedPart => ({
  type,
  path: type === 'video' ? 'clip.mp4' : 'clip.wav',
  sha256,
});
const muxed: ClipForms = {
  video: { kind: 'video', maxSide: 512, fps: 2 },
  audio: { kind: 'wav' },
  mux: true,
};

describe('the parts of a message', () => {
  it('go out as they are where nothing else is asked for', () => {
    const sent = sentParts([clip('video'), text, clip('audio')], asTheyAre);

    expect(sent).toEqual([
      { type: 'video', clip: clip('video'), form: null },
      text,
      { type: 'audio', clip: clip('audio'), form: null },
    ]);
  });

  it('of video and sound become one file with the sound in it', () => {
    const sent = sentParts([clip('audio', 'b'.repeat(64)), text, clip('video')], muxed);

    const sound = { path: 'clip.wav', sha256: 'b'.repeat(64) };
    expect(sent).toEqual([
      text,
      {
        type: 'video',
        clip: clip('video'),
        form: { kind: 'video-with-sound', maxSide: 512, fps: 2, sound },
      },
    ]);
  });

  it('of one medium keep its own form where both would be one file', () => {
    expect(sentParts([clip('video')], muxed)).toMatchObject([{ form: { kind: 'video' } }]);
    expect(sentParts([clip('audio')], muxed)).toMatchObject([{ form: { kind: 'wav' } }]);
  });

  it('of two videos and a sound are refused', () => {
    expect(() => sentParts([clip('video'), clip('video'), clip('audio')], muxed)).toThrow(
      /one video and one sound/,
    );
  });
});

describe('the name of what is made', () => {
  it('tells forms and ways of making apart', () => {
    const forms = [
      { kind: 'wav' },
      { kind: 'video', maxSide: 768, fps: null },
      { kind: 'video', maxSide: 768, fps: 2 },
      { kind: 'video', maxSide: 512, fps: 2 },
      { kind: 'frames', maxSide: 512, fps: 2 },
      { kind: 'video-with-sound', maxSide: 512, fps: 2, sound: { path: 'x', sha256: hash } },
    ] as const;

    const names = forms.map(recipeId);

    expect(new Set(names).size).toBe(forms.length);
    expect(names[1]).toBe('video-768px-r1');
  });
});
