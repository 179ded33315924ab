import { StatesError } from './states-error.ts';

const checkText = (text: string, limitBytes: number, what: string): void => {
  // A UTF-16 unit takes at most three bytes, so short texts need no count.
  if (text.length * 3 <= limitBytes) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > limitBytes) {
    throw new StatesError(
      'States.DataLimitExceeded',
      `${what} has ${bytes} bytes of JSON; the limit is ${limitBytes}`,
    );
  }
};

/** Throws `States.DataLimitExceeded` where the value's JSON is longer than the limit, in UTF-8 bytes. */
export const checkSize = (value: unknown, limitBytes: number, what: string): void =>
  checkText(JSON.stringify(value), limitBytes, what);

/** A copy as JSON carries it, for what crosses the border between states and the outside. Checks its size. */
export const copyAcross = (value: unknown, limitBytes: number, what: string): unknown => {
  const text = JSON.stringify(value) ?? 'null';
  checkText(text, limitBytes, what);
  return JSON.parse(text);
};
