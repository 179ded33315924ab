import type { Problem } from '../../../errors.ts';

export interface ProblemList {
  add(file: string, row: number | null, message: string): void;
  count(): number;
  /** By file and row; the last one tells how many were cut. */
  list(): Problem[];
}

/** Faults up to a limit, so that a broken data set of any size costs bounded memory. */
export const createProblemList = (most: number): ProblemList => {
  const kept: Problem[] = [];
  let count = 0;
  return {
    add(file, line, message) {
      count += 1;
      if (kept.length < most) kept.push({ file, line, message });
    },
    count: () => count,
    list() {
      const sorted = kept.toSorted((a, b) =>
        a.file === b.file ? (a.line ?? 0) - (b.line ?? 0) : a.file < b.file ? -1 : 1,
      );
      if (count > kept.length) {
        sorted.push({ file: sorted.at(-1)!.file, line: null, message: `… and ${count - kept.length} more` });
      }
      return sorted;
    },
  };
};

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A value as it may stand in a one-line message on a terminal. */
export const quoted = (value: unknown): string => {
  const text =
    typeof value === 'object' && value !== null
      ? Array.isArray(value)
        ? '[…]'
        : '{…}'
      : typeof value === 'bigint'
        ? String(value)
        : (JSON.stringify(value) ?? 'undefined');
  return (text.length > 120 ? `${text.slice(0, 117)}…` : text)
    .toWellFormed()
    .replaceAll(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
};
