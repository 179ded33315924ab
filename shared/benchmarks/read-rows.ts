import type { z } from 'zod';
import { didYouMean } from '../domain/did-you-mean.ts';
import type { Problem } from '../errors.ts';
import type { Lines } from './benchmark.ts';

/** A JSONL text that arrives line by line, with the name it has in messages. */
export interface TextFile {
  file: string;
  lines: Lines;
}

export interface ReadLimits {
  /** Longest line that is parsed, in UTF-16 units; 8 Mi unless told. */
  maxLineLength?: number;
  /** Problems listed before the rest is only counted; 1,000 unless told. */
  maxProblems?: number;
}

export const defaultMaxLineLength = 8 * 1024 * 1024;
const defaultMaxProblems = 1_000;

export interface ProblemLog {
  add(file: string, line: number | null, message: string): void;
  /** Problems by file and line; the last one tells how many were cut. */
  list(): Problem[];
}

/**
 * Collects problems up to a limit, so that a broken file of any size costs bounded memory. Files are
 * listed in the order given, others after them in order of first mention.
 */
export function createProblemLog(
  files: readonly string[] = [],
  maxProblems = defaultMaxProblems,
): ProblemLog {
  const kept: Problem[] = [];
  const fileOrder = new Map(files.map((file, index) => [file, index]));
  let count = 0;
  return {
    add(file, line, message) {
      if (!fileOrder.has(file)) fileOrder.set(file, fileOrder.size);
      count += 1;
      if (kept.length < maxProblems) kept.push({ file, line, message });
    },
    list() {
      const sorted = kept.toSorted(
        (a, b) => fileOrder.get(a.file)! - fileOrder.get(b.file)! || (a.line ?? 0) - (b.line ?? 0),
      );
      const last = sorted.at(-1);
      if (last !== undefined && count > kept.length) {
        sorted.push({ file: last.file, line: null, message: `… and ${count - kept.length} more` });
      }
      return sorted;
    },
  };
}

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

const shown = (value: unknown): string =>
  typeof value === 'object' && value !== null ? '…' : (JSON.stringify(value) ?? 'undefined');

/**
 * A value of a file as it may stand in a one-line message on a terminal: cut, invisible and control
 * characters escaped, inner values left out (they may be nested too deep to print).
 */
export function quoted(value: unknown): string {
  let text = shown(value);
  if (Array.isArray(value)) text = `[${value.slice(0, 20).map(shown).join(',')}]`;
  else if (text === '…') text = '{…}';
  return (text.length > 120 ? `${text.slice(0, 117)}…` : text)
    .toWellFormed()
    .replaceAll(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** Names of members at any depth of what a schema takes. */
const keysOf = (schema: unknown): string[] => {
  const def = (schema as { _zod?: { def: Record<string, unknown> } } | undefined)?._zod?.def;
  if (def === undefined) return [];
  const shape = (def.shape ?? {}) as Record<string, unknown>;
  const inner = [
    ...Object.values(shape),
    ...((def.options as unknown[] | undefined) ?? []),
    ...['innerType', 'element', 'valueType'].map((part) => def[part]),
  ];
  return [...Object.keys(shape), ...inner.flatMap(keysOf)];
};

const suggestion = (key: string, schema: z.ZodType): string => {
  const known = [...new Set(keysOf(schema))];
  const meant = key.length > 64 || known.includes(key) ? null : didYouMean(key, known);
  return meant === null ? '' : `; did you mean ${quoted(meant)}?`;
};

const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? String(key) : `${text}.${String(key)}`;
  }, '');

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<PropertyKey, unknown>)[key]
        : undefined,
    value,
  );

/** What is wrong with a value that a schema refused, one message a fault. */
function describeIssues(error: z.ZodError, value: unknown, schema: z.ZodType): string[] {
  return error.issues.flatMap((issue) => {
    const place = pathText(issue.path);
    if (issue.code === 'unrecognized_keys') {
      const inside = place === '' ? '' : ` in ${place}`;
      return issue.keys.map((key) => `unknown key ${quoted(key)}${inside}${suggestion(key, schema)}`);
    }
    if (place === '') return [issue.message];
    const given = valueAt(value, issue.path);
    return given === undefined
      ? [`missing key ${quoted(place)}`]
      : [`${place} ${quoted(given)}: ${issue.message}`];
  });
}

const byteOrderMark = '\uFEFF';

function parseJson(text: string): { value: unknown } | { fault: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    if (error instanceof SyntaxError) return { fault: `not valid JSON: ${quoted(error.message)}` };
    throw error;
  }
}

/** Parses one JSON document and checks its form; null, with the problems logged, where it has faults. */
export function readDocument<T>(file: string, text: string, schema: z.ZodType<T>, log: ProblemLog): T | null {
  if (text.startsWith(byteOrderMark)) log.add(file, 1, 'starts with a byte order mark; save it without');
  const parsed = parseJson(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('fault' in parsed) {
    log.add(file, null, parsed.fault);
    return null;
  }
  const checked = schema.safeParse(parsed.value);
  if (checked.success) return checked.data;
  for (const message of describeIssues(checked.error, parsed.value, schema)) log.add(file, null, message);
  return null;
}

/**
 * Reads JSONL rows of one form. Every fault goes to the log with its 1-based line; rows with faults
 * are left out and given to `onRefused` (parsed, unchecked). Blank lines are skipped. Throws only what
 * `source.lines` throws.
 */
export async function readRows<T>(
  source: TextFile,
  schema: z.ZodType<T>,
  log: ProblemLog,
  onRow: (row: T, line: number) => void,
  options: { maxLineLength?: number; onRefused?: (value: unknown) => void } = {},
): Promise<void> {
  const maxLineLength = options.maxLineLength ?? defaultMaxLineLength;
  let line = 0;
  for await (const received of source.lines) {
    line += 1;
    const marked = line === 1 && received.startsWith(byteOrderMark);
    if (marked) log.add(source.file, 1, 'starts with a byte order mark; save it without');
    const text = marked ? received.slice(1) : received;
    if (text.length > maxLineLength) {
      log.add(source.file, line, `line has ${text.length} characters; the limit is ${maxLineLength}`);
      continue;
    }
    if (text.trim() === '') continue;
    const parsed = parseJson(text);
    if ('fault' in parsed) {
      log.add(source.file, line, parsed.fault);
      continue;
    }
    const checked = schema.safeParse(parsed.value);
    if (checked.success) {
      onRow(checked.data, line);
      continue;
    }
    for (const message of describeIssues(checked.error, parsed.value, schema))
      log.add(source.file, line, message);
    options.onRefused?.(parsed.value);
  }
}
