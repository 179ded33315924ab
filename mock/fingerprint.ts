import { createHash } from 'node:crypto';
import { errorNames, TurnsweepError } from '../shared/errors.ts';

/** What a fingerprint needs of a message; a `ResolvedMessage` is one. */
export type FingerprintMessage =
  | { role: 'user'; content: string | readonly FingerprintPart[] }
  | { role: 'assistant' }
  | { role: 'system'; text: string };

export type FingerprintPart =
  | { type: 'text'; text: string }
  | { type: 'audio' | 'video' | 'image' | 'frames'; sha256: string | null };

/**
 * What the user turns of a request show, as SHA-256 in hex: of the compact JSON array of user turns, each an array of
 * its parts in order, each part `["text", text]`, `["audio", sha256 of the bytes]` or the like for other media.
 * Replies of the model and system messages are left out, so that a script can name a request without knowing them; with
 * `withSystem` a system message is an array of its own with the part `["system", text]`, for scripts that tell prompts
 * apart. Throws `UsageWrong` for a clip whose hash is not known.
 */
export const requestFingerprint = (
  messages: readonly FingerprintMessage[],
  { withSystem = false }: { withSystem?: boolean } = {},
): string => {
  const turns = messages.flatMap((message) => {
    if (message.role === 'system' && withSystem) return [[['system', message.text]]];
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

/** Texts of the system messages, joined by newlines; null without one. */
export const systemTextOf = (messages: readonly FingerprintMessage[]): string | null => {
  const texts = messages.flatMap((message) => (message.role === 'system' ? [message.text] : []));
  return texts.length === 0 ? null : texts.join('\n');
};
