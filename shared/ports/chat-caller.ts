import type { CallOutcome } from '../domain/outcome.ts';

export interface ChatRequest {
  messages: readonly { role: 'system' | 'user'; content: string }[];
  maxTokens: number;
  deadlineMs: number;
  reasoningEffort?: string | undefined;
  signal?: AbortSignal;
}

/** Text-only calls to a model, as the judge needs them. One call is one attempt. */
export interface ChatCaller {
  complete(request: ChatRequest): Promise<CallOutcome>;
  close(): Promise<void>;
}
