import type { Usage } from '../../domain/outcome.ts';
import type { LoadedClip } from '../../ports/model-client.ts';
import type { LaneSettings } from '../provider.ts';
import type { OutcomeRule } from './errors.ts';

/** JSON text, alternating with base64 that needs no escaping and is copied as it is. */
export type JsonPiece = string | { base64: string };

/** What one call asks for beside its messages. */
export interface CallShape {
  maxTokens: number;
  /** Goes before the settings' own. */
  reasoningEffort?: string;
  /** `response_format` as it goes on the wire. */
  responseFormat?: unknown;
}

/** A clip as the profile writes it: one file, or the frames of a video in order. */
export interface ClipOnTheWire {
  medium: 'audio' | 'video';
  files: readonly LoadedClip[];
  /** Sampling rate in frames a second; null where nobody asked for one. */
  fps: number | null;
}

/**
 * What one provider's `chat/completions` does in its own way. One wire dialect covers many servers, but not one
 * serializer: how audio is encoded, where the frame rate sits and what an error means differ.
 */
export interface ChatProfile {
  /** Members of the body beside `model`, `messages` and those of a stream; `undefined` members are left out. */
  body(model: string, settings: LaneSettings, call: CallShape): Record<string, unknown>;
  /** Members of `stream_options` beside `include_usage`. */
  streamOptions?: Readonly<Record<string, unknown>>;
  /** The JSON of a clip's content parts: one object, or several with commas between. */
  clip(clip: ClipOnTheWire): JsonPiece[];
  /** `text-first`: the text parts of a message go before its clips. */
  partOrder: 'frozen' | 'text-first';
  /** Go before the rules that all share. */
  rules: readonly OutcomeRule[];
  /** Token counts of a reply. What the provider did not say is null, never 0. */
  readUsage(usage: unknown): Usage;
  /** Above this the clip must come as a URL, in bytes before encoding; null: no limit is known. */
  inlineBytesAtMost: number | null;
}

/** `data:` URL of a loaded clip, or its address. */
export const clipUrl = (clip: LoadedClip): JsonPiece[] =>
  clip.type === 'url'
    ? [JSON.stringify(clip.url).slice(1, -1)]
    : [`data:${clip.mime};base64,`, { base64: clip.base64 }];

/** Bare base64 of a loaded clip. Only for profiles whose inline limit is null: they are never given a URL. */
export const bareBase64 = (clip: LoadedClip): JsonPiece => {
  if (clip.type === 'inline') return { base64: clip.base64 };
  throw new Error('a clip came as a URL where only its content can be sent');
};
