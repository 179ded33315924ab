import type { Json, ReadRequest } from './dialects/dialect.ts';
import { isObject } from './dialects/dialect.ts';
import { mediaDigest } from './dialects/media.ts';

/** A value that keeps a JSON schema, with `text` as every free text. */
const conforming = (schema: unknown, text: string): unknown => {
  if (!isObject(schema)) return text;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if ('const' in schema) return schema.const;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  const kind = String(type ?? (isObject(schema.properties) ? 'object' : 'string')).toLowerCase();
  if (kind === 'object') {
    const properties: Json = isObject(schema.properties) ? schema.properties : {};
    return Object.fromEntries(
      Object.entries(properties).map(([key, inner]) => [key, conforming(inner, text)]),
    );
  }
  if (kind === 'array') return [conforming(schema.items, text)];
  if (kind === 'integer' || kind === 'number') return typeof schema.minimum === 'number' ? schema.minimum : 0;
  if (kind === 'boolean') return false;
  return kind === 'null' ? null : text;
};

/**
 * What the server understood of a request: user turns, kinds of media in order, and the first 8 hex digits of the
 * SHA-256 over all media bytes in order. Where the request asks for JSON, JSON that holds it. Null where the
 * address does not keep the bytes of media.
 */
export const digestReply = ({ userTurns, media, answerSchema }: ReadRequest): string | null => {
  if (media === null) return null;
  const kinds = media.length === 0 ? 'none' : media.map(({ kind }) => kind).join(',');
  const digest = `turns=${userTurns};media=${kinds};sha=${mediaDigest(media)}`;
  if (answerSchema === null) return digest;
  return JSON.stringify(answerSchema === 'any' ? { digest } : conforming(answerSchema, digest));
};
