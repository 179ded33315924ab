import { createHash } from 'node:crypto';
import { errorNames, TurnsweepError } from '../shared/errors.ts';

/** What a fingerprint needs of a message; a `ResolvedMessage` is one. */
export type FingerprintMessage =
  | { role: 'user'; content: string | readonly FingerprintPart[] }
  | { role: 'assistant' | 'system' };

export type FingerprintPart =
  | { type: 'text'; text: string }
  | { type: 'audio' | 'video' | 'image' | 'frames'; sha256: string | null };

/**
 * What the user turns of a request show, as SHA-256 in hex: of the compact JSON array of user turns, each an array of
 * its parts in order, each part `["text", text]`, `["audio", sha256 of the bytes]` or the like for other media.
 * Replies of the model and system messages are left out, so that a script can name a request without knowing them.
 * Throws `UsageWrong` for a clip whose hash is not known.
 */
export const requestFingerprint = (messages: readonly FingerprintMessage[]): string => {
  const turns = messages.flatMap((message) => {
    if (message.role !== 'user') return [];
    if (typeof message.content === 'string') return [[['text', message.content]]];
    const parts = message.content.map((part) => {
      if (part.type === 'text') return ['text', part.text];
      if (part.sha256 === null)
        throw new TurnsweepError(errorNames.usage, 'clip of a fingerprint has no hash');
      return [part.type, part.sha256];
    });
    return [parts];
  });
  return createHash('sha256').update(JSON.stringify(turns)).digest('hex');
};
