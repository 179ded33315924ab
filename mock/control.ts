import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { batchPlan } from './batches.ts';
import type { Profile, ProviderName } from './dialects/dialect.ts';
import { providerNames } from './dialects/dialect.ts';
import { outcomeNames, servesOutcome } from './faults.ts';
import { geminiFile, geminiUploads } from './gemini-files.ts';

const scripted = z.union([
  z.string().transform((outcome) => ({ outcome })),
  z.strictObject({
    outcome: z.string().default('ok'),
    /** Text of the reply instead of the one that the request would get. */
    text: z.string().optional(),
    /** `error.code` and Retry-After of an error. */
    code: z.string().optional(),
    retryAfterSeconds: z.number().nonnegative().optional(),
  }),
]);
export interface QueuedOutcome {
  outcome: string;
  text?: string;
  code?: string;
  retryAfterSeconds?: number;
}

const limit = z.number().int().nonnegative().optional();
const profile = z.strictObject({
  extraMembers: z.array(z.string()).optional(),
  maxBodyBytes: z.number().int().positive().optional(),
  audioUrl: z.boolean().optional(),
  limitPerPrompt: z.strictObject({ image: limit, video: limit, audio: limit }).optional(),
  errorShape: z.enum(['new', 'old']).optional(),
  reasoningKey: z.enum(['reasoning_content', 'reasoning']).optional(),
  inputAudio: z.boolean().optional(),
  systemTurn: z.enum(['taken', 'dropped', 'refused']).optional(),
  mmproj: z.boolean().optional(),
  inputVideo: z.boolean().optional(),
}) satisfies z.ZodType<Profile>;

const command = z.strictObject({
  /** `step` is the prefix of `stepfun`. */
  provider: z.enum([...providerNames, 'step']).optional(),
  /** Outcomes of the next requests in order; replaces what is left of an earlier queue. */
  queue: z.array(scripted).optional(),
  /** Merged into the provider's profile. */
  profile: profile.optional(),
  /** Plan of the batches that are made from now on. */
  batch: batchPlan.optional(),
  /** Gemini: files that are there without an upload, and how uploads go. */
  files: z.array(geminiFile).optional(),
  uploads: geminiUploads.optional(),
  /** Calls in flight at once, instead of the scenario's; null: no limit. With `model` for one model only. */
  capacity: z.number().int().nonnegative().nullable().optional(),
  model: z.string().optional(),
  /** Retry-After of the 429s beyond the capacity; null: none. */
  retryAfterSeconds: z.number().nonnegative().nullable().optional(),
  /** Real seconds for one second of waiting. */
  timeScale: z.number().positive().optional(),
  /** Another scenario from the next request on. */
  scenario: z.unknown().optional(),
});
export type ControlCommand = Omit<z.output<typeof command>, 'provider'> & { provider?: ProviderName };
export type ControlInput = z.input<typeof command>;

/** Checks a control command. Throws `UsageWrong` that names the first fault. */
export const parseCommand = (value: unknown): ControlCommand => {
  const wrong = (message: string): never => {
    throw new TurnsweepError(errorNames.usage, `control command is not valid: ${message}`, {
      remedy: 'see mock/README.md',
    });
  };
  const parsed = command.safeParse(value);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    return wrong([path.join('.'), message].filter((text) => text !== '').join(': '));
  }
  const { provider: named, ...rest } = parsed.data;
  const provider = named === 'step' ? 'stepfun' : named;
  const needs = rest.queue ?? rest.profile ?? rest.batch ?? rest.files ?? rest.uploads;
  if (needs !== undefined && provider === undefined) wrong('provider is missing');
  const unknown = rest.queue?.find(({ outcome }) => !servesOutcome(outcome, provider!));
  if (unknown) {
    const names = outcomeNames(provider!).join(', ');
    wrong(`${provider} does not serve the outcome ${unknown.outcome}; it serves http_<status>, ${names}`);
  }
  return { ...rest, provider };
};

/** One request as it came. */
export interface LoggedRequest {
  /** Arrival, RFC 3339. */
  at: string;
  provider: string;
  method: string;
  path: string;
  /** Names in lower case; keys are masked. */
  headers: Record<string, string>;
  bodySha256: string;
  /** Parsed JSON with long texts cut, or null. */
  body: unknown;
  /** Name of the outcome, `refused` or `capacity`; null before it is known. */
  outcome: string | null;
  status: number | null;
  /** The caller closed the connection before the reply was complete. */
  callerGone: boolean;
}

const secretHeaders = new Set(['authorization', 'x-goog-api-key', 'x-amz-security-token', 'cookie']);
const longText = 2000;
const keptRequests = 2000;

const shortened = (value: unknown): unknown => {
  if (typeof value === 'string') {
    return value.length <= longText ? value : `${value.slice(0, 60)}… (${value.length} characters)`;
  }
  if (Array.isArray(value)) return value.map(shortened);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]));
};

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
};

/** Keeps the last 2,000 requests. */
export const createRequestLog = () => {
  let entries: LoggedRequest[] = [];
  return {
    add: (
      provider: string,
      method: string,
      path: string,
      headers: IncomingHttpHeaders,
      body: Buffer,
    ): LoggedRequest => {
      const entry: LoggedRequest = {
        at: new Date().toISOString(),
        provider,
        method,
        path,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [
            name,
            secretHeaders.has(name) ? '(masked)' : String(value),
          ]),
        ),
        bodySha256: createHash('sha256').update(body).digest('hex'),
        body: shortened(parsed(body)),
        outcome: null,
        status: null,
        callerGone: false,
      };
      entries.push(entry);
      if (entries.length > keptRequests) entries = entries.slice(-keptRequests / 2);
      return entry;
    },
    all: (): LoggedRequest[] => [...entries],
    clear: () => {
      entries = [];
    },
  };
};
