import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';

/**
 * One line of a pack:
 *
 *     {"crc32":"9c2a1f07","key":"00112233.json","value":{"v":1}}
 *
 * `value` is a JSON document exactly as it was put. Other texts stand as a string under `text`, bytes that are
 * no text under `base64`, and `"deleted":true` takes a key away. `crc32` (of zlib, eight hexadecimal digits) is
 * of the line's bytes from `"key"` to its end, and so makes a line that was cut or altered known as such.
 */

const head = '{"crc32":"';
const digits = 8;
const beforeKey = '",';
const keyStart = head.length + digits + beforeKey.length;
const nameStart = keyStart + '"key":"'.length;
const quote = 34;
const backslash = 92;

const crcOf = (rest: string | Uint8Array): string => crc32(rest).toString(16).padStart(digits, '0');

const lineOf = (name: string, kind: string, content: string): Buffer => {
  const rest = `"key":${JSON.stringify(name)},"${kind}":${content}}`;
  return Buffer.from(`${head}${crcOf(rest)}${beforeKey}${rest}\n`);
};

/** A line, its end included, that gives `name` this content from now on. */
export const packLine = (name: string, body: string | Uint8Array): Buffer => {
  if (typeof body !== 'string') {
    if (!isUtf8(body)) return lineOf(name, 'base64', `"${Buffer.from(body).toString('base64')}"`);
    const { buffer, byteOffset, byteLength } = body;
    return packLine(name, Buffer.from(buffer, byteOffset, byteLength).toString('utf8'));
  }
  return isOneLineOfJson(body) ? lineOf(name, 'value', body) : lineOf(name, 'text', JSON.stringify(body));
};

/** A line, its end included, that takes `name` away. */
export const packLineOfDeletion = (name: string): Buffer => lineOf(name, 'deleted', 'true');

const isOneLineOfJson = (text: string): boolean => {
  if (text.includes('\n')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** The name in a line without its end, as UTF-8; null where it is cut or altered before that. */
export const nameInLine = (line: Buffer): Uint8Array | null => {
  let end = line.indexOf(quote, nameStart);
  if (end < 0 || line.toString('latin1', keyStart, nameStart) !== '"key":"') return null;
  const plain = line.subarray(nameStart, end);
  if (!plain.includes(backslash)) return plain;
  while (end >= 0) {
    try {
      return Buffer.from(JSON.parse(line.toString('utf8', nameStart - 1, end + 1)));
    } catch {
      // That quote was part of the name.
      end = line.indexOf(quote, end + 1);
    }
  }
  return null;
};

/** True if a line without its end is as it was written. */
export const isWhole = (line: Buffer): boolean =>
  line.length > nameStart &&
  line.toString('latin1', 0, head.length) === head &&
  line.toString('latin1', head.length, head.length + digits) === crcOf(line.subarray(keyStart));

const deleted = Buffer.from(',"deleted":true}');

/** True if a whole line takes its name away: no value or text can end like that. */
export const isDeletion = (line: Buffer): boolean => line.subarray(-deleted.length).equals(deleted);

/** What a whole line of this name holds: text or, where it was no text, bytes. */
export const contentOfLine = (line: Buffer, name: string): string | Buffer => {
  const kindStart = keyStart + '"key":'.length + Buffer.byteLength(JSON.stringify(name)) + ',"'.length;
  const kind = line.toString('latin1', kindStart, line.indexOf(quote, kindStart));
  const content = line.toString('utf8', kindStart + kind.length + '":'.length, line.length - 1);
  if (kind === 'value') return content;
  return kind === 'text' ? JSON.parse(content) : Buffer.from(content.slice(1, -1), 'base64');
};
