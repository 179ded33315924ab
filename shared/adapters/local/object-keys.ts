import { errorNames, TurnsweepError } from '../../errors.ts';

// Empty segments, segments that begin with a dot, and characters that a path reads in another way.
// Dotted names are reserved for what an adapter keeps beside the objects (temporary files, locks).
const unsafe = /(?:^|\/)(?:\.|\/|$)|[\0\\]/;

/**
 * Throws `AccessDenied` for a key that could name something outside the store: with an empty segment, a
 * segment that begins with a dot (`..` is one), a leading or trailing slash, NUL, a backslash or half a
 * surrogate pair.
 */
export const checkKey = (key: string): void => {
  if (!unsafe.test(key) && key.isWellFormed()) return;
  throw new TurnsweepError(errorNames.accessDenied, 'not a safe storage key', {
    where: JSON.stringify(key),
    remedy: 'use names without leading dots, joined by single slashes',
  });
};

/** As `checkKey` for the folder part of a list prefix; the part after the last slash may be cut anywhere. */
export const checkPrefix = (prefix: string): void => {
  const folder = prefix.slice(0, Math.max(0, prefix.lastIndexOf('/')));
  if (folder !== '' || prefix.startsWith('/')) checkKey(folder);
  if (/[\0\\]/.test(prefix)) checkKey(prefix);
};

const outsideAscii = /[^\0-\x7f]/;

// Moves surrogates behind the rest of the basic plane, which is where UTF-8 puts what they stand for.
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

/** Ascending order of the UTF-8 bytes; JavaScript's own `<` orders UTF-16 units. */
export const compareKeys = (a: string, b: string): number => {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at += 1) {
    const difference = rank(a.charCodeAt(at)) - rank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
};

/** Sorts in place by UTF-8 bytes. */
export const sortKeys = (keys: string[]): string[] =>
  keys.some((key) => outsideAscii.test(key)) ? keys.sort(compareKeys) : keys.sort();
