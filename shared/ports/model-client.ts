import type { ClipForm } from '../domain/media.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import type { ClipCounts, ResolvedRequest } from '../domain/request.ts';

export interface CallLimits {
  maxTokens: number;
  /** Whole-call deadline in milliseconds, body included. */
  deadlineMs: number;
  signal?: AbortSignal;
}

/** One model behind one endpoint. One call is one attempt: no retries inside. */
export interface ModelClient {
  call(request: ResolvedRequest, limits: CallLimits): Promise<CallOutcome & { consumed: ClipCounts }>;
  close(): Promise<void>;
}

/** A clip's content, or where the provider can fetch it. */
export type LoadedClip =
  | { type: 'inline'; mime: string; base64: string }
  | { type: 'url'; mime: string; url: string };

export interface WantedClip {
  /** Null: as the benchmark has it. */
  form: ClipForm | null;
  /** A larger file comes as a URL; null: whatever its size, it comes inline. */
  inlineBytesAtMost: number | null;
}

/**
 * Content of clips. One file, or for frames all of them in order. Throws `ObjectMissing` where the content is not
 * there, and `UsageWrong` where it is too large to be sent inline and nobody can fetch it from us.
 */
export interface ClipSource {
  /** True where providers can fetch clips from us; left out: they cannot. */
  givesUrls?: boolean;
  /** Bytes of a clip's files in a form before encoding, without loading them; null where only reading tells. */
  bytesOf?(clip: Parameters<ClipSource['load']>[0], form: ClipForm | null): Promise<number | null>;
  load(
    clip: { type: 'audio' | 'video'; path: string; sha256: string | null },
    wanted: WantedClip,
  ): Promise<LoadedClip[]>;
}
