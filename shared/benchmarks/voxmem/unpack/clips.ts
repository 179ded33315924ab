import { createHash } from 'node:crypto';
import type { UnpackSink } from '../../benchmark.ts';
import { wavFacts } from './wav.ts';

/** What became of the bytes of a clip: its path inside the release, or why it is none. */
export type KeptClip = { clip: string } | { fault: string };

export interface ClipKeeper {
  /** Writes a clip that was not seen before. */
  keep(bytes: Uint8Array): Promise<KeptClip>;
  /** Distinct clips by path, in ascending order. */
  manifest(): { path: string; sha256: string; bytes: number; seconds: number }[];
  clipCount(): number;
  /** Of distinct clips. */
  clipBytes(): number;
}

export const createClipKeeper = (sink: UnpackSink): ClipKeeper => {
  const facts = new Map<string, { bytes: number; seconds: number }>();
  let total = 0;
  const pathOf = (sha256: string): string => `media/${sha256}.wav`;
  return {
    async keep(bytes) {
      const wav = wavFacts(bytes);
      if ('fault' in wav) return wav;
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      if (!facts.has(sha256)) {
        await sink.putClipIfAbsent(pathOf(sha256), bytes);
        facts.set(sha256, { bytes: bytes.length, seconds: wav.seconds });
        total += bytes.length;
      }
      return { clip: pathOf(sha256) };
    },
    manifest: () =>
      [...facts.keys()].sort().map((sha256) => ({ path: pathOf(sha256), sha256, ...facts.get(sha256)! })),
    clipCount: () => facts.size,
    clipBytes: () => total,
  };
};
