/** Token counts of one call; null where the provider did not say. */
export interface Usage {
  inputTokens: number | null;
  outputTokens: number | null;
  cachedInputTokens: number | null;
  reasoningTokens: number | null;
  audioInputTokens: number | null;
  videoInputTokens: number | null;
  imageInputTokens: number | null;
  textInputTokens: number | null;
}

export const unknownUsage: Usage = {
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  reasoningTokens: null,
  audioInputTokens: null,
  videoInputTokens: null,
  imageInputTokens: null,
  textInputTokens: null,
};

/**
 * Names of failed calls (return-protocol §4). `http_<status>` and `finish_<reason>` are families,
 * and so are `batch_<reason>` (requests of a batch that came to nothing).
 * Transport kinds: `connect_failed`, `connection_reset`, `timeout`, `protocol_error`. `request_too_large` was never
 * sent: the provider would refuse its size.
 */
export type ErrorKind =
  | 'length_truncated'
  | 'empty_response'
  | 'incomplete_stream'
  | 'provider_refusal'
  | 'connect_failed'
  | 'connection_reset'
  | 'timeout'
  | 'protocol_error'
  | 'invalid_response'
  | 'request_too_large'
  | 'recording_missing'
  | 'blocked'
  | 'media_unusable'
  | 'media_dropped'
  | 'worker_lost'
  | `http_${number}`
  | `finish_${string}`
  | `recorded_${string}`
  | `batch_${string}`;

export interface CallFacts {
  httpStatus: number | null;
  /** The provider's own id of the reply or request, for its support. */
  responseId: string | null;
  /** Model name as the provider served it; may differ from the one asked for. */
  servedModel: string | null;
  finishReason: string | null;
  usage: Usage;
}

/**
 * What one call to a model came to. Only `ok` carries a reply; every other status is evidence and
 * never becomes history or an answer.
 *
 * - `length`: cut by the token cap.
 * - `retry`: passing fault; `retryAfterSeconds` is the provider's own wish, null if it had none.
 * - `refused`: the provider's policy; never asked again.
 * - `failed`: final at once.
 * - `stop_lane`: no further call of this lane can succeed (bad key, unknown model, empty wallet).
 */
export type CallOutcome =
  | ({ status: 'ok'; text: string } & CallFacts)
  | ({ status: 'length'; text: string } & CallFacts)
  | ({ status: 'retry'; kind: ErrorKind; message: string; retryAfterSeconds: number | null } & CallFacts)
  | ({ status: 'refused'; kind: ErrorKind; message: string } & CallFacts)
  | ({ status: 'failed'; kind: ErrorKind; message: string } & CallFacts)
  | ({ status: 'stop_lane'; kind: ErrorKind; message: string } & CallFacts);
