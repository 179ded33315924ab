import type { Clock } from '../../ports/clock.ts';

/** What a line is about; the same names everywhere, so that one query finds all of a run or a view. */
export interface LogContext {
  run?: string;
  lane?: string;
  view?: string;
  stage?: string;
}

export type LogFields = Readonly<Record<string, unknown>>;

export interface StructuredLog {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `error` may be anything thrown: its name, message, stack and causes are written. */
  error(message: string, fields?: LogFields, error?: unknown): void;
  /** The same log with more context. */
  with(context: LogContext): StructuredLog;
}

const redacted = '[redacted]';

const secretField =
  /(^|[^a-z])(authorization|password|passwd|cookie)$|(api|access|secret|session|task)[-_]?(key|token|id_?key)$|^(token|key|secret|credentials?|apiKey|receipt(Handle)?)$/i;

// Keys of providers and of AWS, bearer headers, credentials in addresses, and any unbroken run that is longer
// than names and hashes are: task tokens and receipts look like that.
const secretText =
  /\b(?:sk|pk|rk|gsk|xai|key|hf|nvapi)[-_][\w-]{8,}|\bAIza[\w-]{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\b(?:bearer|basic)\s+[\w.~+/=-]+|(?<=:\/\/)[^/\s:@]+:[^/\s@]+(?=@)|[\w+/=.~-]{160,}/gi;

/** The text without what looks like a key or a token. */
export const redactText = (text: string): string => text.replace(secretText, redacted);

/**
 * Log lines as JSON on standard output, one object a line: time, level, message, context, fields. Tokens
 * and keys are cut out, by the name of their field and by their looks.
 */
export const createStructuredLog = (options: {
  clock: Pick<Clock, 'now'>;
  context?: LogContext;
  write?: (line: string) => void;
}): StructuredLog => {
  const { clock, context = {}, write = writeOut } = options;
  const line = (level: string, message: string, fields: LogFields = {}): void => {
    const time = new Date(clock.now()).toISOString();
    const body = redact({ ...fields }) as object;
    write(`${JSON.stringify({ time, level, message: redactText(message), ...context, ...body })}\n`);
  };
  return {
    info: (message, fields) => line('info', message, fields),
    warn: (message, fields) => line('warn', message, fields),
    error: (message, fields, error) =>
      line('error', message, error === undefined ? fields : { ...fields, error }),
    with: (more) => createStructuredLog({ ...options, context: { ...context, ...more } }),
  };
};

const redact = (value: unknown, depth = 0): unknown => {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return String(value);
  if (value === null || typeof value !== 'object') return value;
  if (depth === 8) return '[deeper]';
  if (Array.isArray(value)) return value.map((member) => redact(member, depth + 1));
  const members = value instanceof Error ? errorMembers(value) : Object.entries(value);
  return Object.fromEntries(
    members.map(([name, member]) => [
      name,
      typeof member === 'string' && secretField.test(name) ? redacted : redact(member, depth + 1),
    ]),
  );
};

const errorMembers = (error: Error): [string, unknown][] => [
  ['name', error.name],
  ['message', error.message],
  ['stack', error.stack],
  ...(error.cause === undefined ? [] : [['cause', error.cause] as [string, unknown]]),
];

const writeOut = (line: string): void => {
  process.stdout.write(line);
};
