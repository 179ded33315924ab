import type { z } from 'zod';
import { didYouMean } from '../shared/domain/did-you-mean.ts';

export type Path = readonly PropertyKey[];

/** `models[0].settings.fps`. */
export const pathText = (path: Path): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');

const longestShown = 60;

/** A value of the file as it may stand in a message: cut, inner values left out. */
const shown = (value: unknown): string => {
  if (Array.isArray(value)) return 'a list';
  if (value !== null && typeof value === 'object') return 'a mapping';
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > longestShown ? `${text.slice(0, longestShown - 1)}…` : text;
};

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of keys to values',
};

const empty = 'must not be empty';

/** A letter or two are near everything. */
const nearest = (given: unknown, known: readonly string[]): string | null =>
  typeof given === 'string' && given.length > 2 ? didYouMean(given, known) : null;

const bound = (issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string => {
  const isLow = issue.code === 'too_small';
  const limit = String(isLow ? issue.minimum : issue.maximum);
  const items = issue.origin === 'string' ? ' characters' : issue.origin === 'array' ? ' entries' : '';
  if (isLow && items !== '' && limit === '1') return empty;
  if (!issue.inclusive) return `must be ${isLow ? 'above' : 'below'} ${limit}${items}`;
  return `must be at ${isLow ? 'least' : 'most'} ${limit}${items}`;
};

/** What a value must be to pass. */
const demand = (issue: z.core.$ZodIssue): string => {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'too_small':
    case 'too_big':
      return bound(issue);
    default:
      return issue.message;
  }
};

/** Keys whose value may be a secret that somebody wrote into the wrong place. */
const isNeverShown = (path: Path): boolean => path.at(-1) === 'apiKeyEnv' || path.at(-1) === 'baseUrl';

/**
 * One fault of a value in one line: its place, what it must be, what it is. `given` is the value as written.
 * Unknown keys are not for here: each of them is a fault of its own.
 */
export const explainIssue = (issue: z.core.$ZodIssue, given: unknown): string => {
  const place = pathText(issue.path);
  if (given === undefined && place !== '') {
    const parent = pathText(issue.path.slice(0, -1));
    return `${parent === '' ? '' : `${parent}: `}missing key "${String(issue.path.at(-1))}"`;
  }
  const subject = place === '' ? 'the file' : `${place}:`;
  if (isNeverShown(issue.path)) return `${subject} ${demand(issue)}`;
  const wanted = demand(issue);
  if (wanted === empty) return `${subject} ${wanted}`;
  if (wanted.startsWith('must not')) return `${subject} ${wanted}: ${shown(given)}`;
  const near = issue.code === 'invalid_value' ? nearest(given, issue.values.map(String)) : null;
  return `${subject} ${wanted}, not ${shown(given)}${near === null ? '' : ` (did you mean "${near}"?)`}`;
};

/** One fault per unknown key. `known` are the keys that may stand there. */
export const explainUnknownKey = (path: Path, key: string, known: readonly string[]): string => {
  const place = pathText(path);
  const near = nearest(key, known);
  const hint = near === null ? `; known are ${known.join(', ')}` : ` (did you mean "${near}"?)`;
  return `${place === '' ? '' : `${place}: `}unknown key "${key}"${hint}`;
};
