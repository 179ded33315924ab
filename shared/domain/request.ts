/** A channel that a part travels on: `V` video, `A` audio. Text always travels. */
export type Channel = 'V' | 'A';

/** The channel that a clip travels on. */
export const channelOf = (type: 'audio' | 'video'): Channel => (type === 'video' ? 'V' : 'A');

export interface TextPart {
  type: 'text';
  text: string;
}

/** A clip as the benchmark froze it; `path` is relative to the release and has no `..`. */
export interface ClipPart {
  type: 'audio' | 'video';
  path: string;
}

export type FrozenPart = TextPart | ClipPart;

/**
 * A turn as the benchmark froze it. An assistant turn is bound to the raw reply of another request, or has its text from
 * the benchmark itself. A system turn is at most one, and the first.
 */
export type FrozenMessage =
  | { role: 'system'; text: string }
  | { role: 'user'; content: FrozenPart[] }
  | { role: 'assistant'; replyOf: string }
  | { role: 'assistant'; text: string };

/** One frozen call. Identity is `requestId`, never the content. */
export interface FrozenRequest {
  requestId: string;
  messages: FrozenMessage[];
}

/** A clip whose content is known. `sha256` is null where media were not verified (recorded lanes only). */
export interface ResolvedClip {
  type: 'audio' | 'video';
  path: string;
  sha256: string | null;
}

export type ResolvedPart = TextPart | ResolvedClip;

export type ResolvedMessage =
  | { role: 'system'; text: string }
  | { role: 'user'; content: ResolvedPart[] }
  | { role: 'assistant'; text: string };

/** A request with its native history filled in and the channels of the lane applied. */
export interface ResolvedRequest {
  requestId: string;
  messages: ResolvedMessage[];
}

export interface ClipCounts {
  audio: number;
  video: number;
}

/** Clips that a request sends, history included. */
export const clipCounts = (messages: readonly ResolvedMessage[]): ClipCounts => {
  const counts: ClipCounts = { audio: 0, video: 0 };
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const part of message.content) if (part.type !== 'text') counts[part.type] += 1;
  }
  return counts;
};
