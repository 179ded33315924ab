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

/** Content of clips, by release path. Throws `ObjectMissing` where the content is not there. */
export interface ClipSource {
  base64(clip: { path: string; sha256: string | null }): Promise<string>;
}
