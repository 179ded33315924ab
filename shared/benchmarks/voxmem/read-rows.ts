import { z } from 'zod';
import { didYouMean } from '../../domain/did-you-mean.ts';
import type { Problem } from '../../errors.ts';
import type { Lines } from '../benchmark.ts';

/** A JSONL text that arrives line by line, with the name it has in messages. */
export interface TextFile {
  file: string;
  lines: Lines;
}

export interface ProblemLog {
  add(file: string, line: number | null, message: string): void;
  /** In the order of files, then of lines; the last one tells how many were cut. */
  list(): Problem[];
}

const problemsAtMost = 1_000;
const lineLengthAtMost = 8 * 1024 * 1024;

/** Collects problems up to a limit: a broken file of any size costs bounded memory. */
export function createProblemLog(files: readonly string[] = []): ProblemLog {
  const order = new Map(files.map((file, index) => [file, index]));
  const kept: Problem[] = [];
  let count = 0;
  return {
    add(file, line, message) {
      if (!order.has(file)) order.set(file, order.size);
      count += 1;
      if (kept.length < problemsAtMost) kept.push({ file, line, message });
    },
    list() {
      const sorted = kept.toSorted(
        (a, b) => order.get(a.file)! - order.get(b.file)! || (a.line ?? 0) - (b.line ?? 0),
      );
      if (count > kept.length) {
        sorted.push({ file: sorted.at(-1)!.file, line: null, message: `… and ${count - kept.length} more` });
      }
      return sorted;
    },
  };
}

/** A value of a file as it may stand in a message on a terminal: short, nothing in it that controls one. */
export function quoted(value: unknown): string {
  if (Array.isArray(value)) return '[…]';
  if (typeof value === 'object' && value !== null) return '{…}';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return (text.length > 120 ? `${text.slice(0, 117)}…` : text)
    .toWellFormed()
    .replaceAll(
      /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
      (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
    );
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<PropertyKey, unknown>)[key]
        : undefined,
    value,
  );

const placeOf = (path: readonly PropertyKey[]): string =>
  path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${String(key)}`))
    .join('');

const faultsOf = (error: z.ZodError, value: unknown, schema: z.ZodType): string[] =>
  error.issues.flatMap((issue) => {
    const place = placeOf(issue.path);
    if (issue.code === 'unrecognized_keys') {
      const known = place === '' && schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
      return issue.keys.map((key) => {
        const meant = key.length > 64 || known.includes(key) ? null : didYouMean(key, known);
        const where = place === '' ? '' : ` in ${quoted(place)}`;
        return `unknown key ${quoted(key)}${where}${meant === null ? '' : `; did you mean "${meant}"?`}`;
      });
    }
    if (place === '') return [issue.message];
    const given = valueAt(value, issue.path);
    return given === undefined
      ? [`missing key ${quoted(place)}`]
      : [`${quoted(place).slice(1, -1)} ${quoted(given)}: ${issue.message}`];
  });

const parseJson = (text: string): { value: unknown } | { fault: string } => {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    if (error instanceof SyntaxError) return { fault: `not valid JSON: ${quoted(error.message)}` };
    throw error;
  }
};

/** Checks one JSON text against a form; null, with the problems logged, where it has faults. */
export function readDocument<T>(
  file: string,
  text: string,
  schema: z.ZodType<T>,
  log: ProblemLog,
  line: number | null = null,
  onRefused: (value: unknown) => void = () => {},
): T | null {
  const parsed = parseJson(text);
  if ('fault' in parsed) {
    log.add(file, line, parsed.fault);
    return null;
  }
  const checked = schema.safeParse(parsed.value);
  if (checked.success) return checked.data;
  for (const fault of faultsOf(checked.error, parsed.value, schema)) log.add(file, line, fault);
  onRefused(parsed.value);
  return null;
}

/**
 * Reads JSONL rows of one form. Every fault goes to the log with its 1-based line; rows with faults are left out and
 * given to `onRefused` (parsed, unchecked). Blank lines are skipped. Throws only what `source.lines` throws.
 */
export async function readRows<T>(
  source: TextFile,
  schema: z.ZodType<T>,
  log: ProblemLog,
  onRow: (row: T, line: number) => void,
  onRefused: (value: unknown) => void = () => {},
): Promise<void> {
  let line = 0;
  for await (const text of source.lines) {
    line += 1;
    if (text.length > lineLengthAtMost) {
      log.add(source.file, line, `line has ${text.length} characters; the limit is ${lineLengthAtMost}`);
    } else if (text.trim() !== '') {
      const row = readDocument(source.file, text, schema, log, line, onRefused);
      if (row !== null) onRow(row, line);
    }
  }
}
