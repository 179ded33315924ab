import type { z } from 'zod';
import { errorNames, TurnsweepError } from '../errors.ts';
import type { ObjectStore } from '../ports/object-store.ts';

const defaultRemedy = 'restore it, or delete it and run again';

/** The reader of a stored text finds something else than was written: never guessed, scored or written over. */
export const objectDamaged = (key: string, what: string, remedy = defaultRemedy): TurnsweepError =>
  new TurnsweepError(errorNames.objectDamaged, `a stored file is damaged: ${what}`, { where: key, remedy });

const parseStored = <T>(text: string, where: string, schema: z.ZodType<T>, remedy?: string): T => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw objectDamaged(where, 'it is not JSON', remedy);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw objectDamaged(where, `${path.join('.') || 'content'}: ${message}`, remedy);
};

/** A stored JSON document; null where there is none. Throws `ObjectDamaged`, naming key and fault. */
export const readStored = async <T>(
  store: Pick<ObjectStore, 'getText'>,
  key: string,
  schema: z.ZodType<T>,
  remedy?: string,
): Promise<T | null> => {
  const text = await store.getText(key);
  return text === null ? null : parseStored(text, key, schema, remedy);
};

/** The rows of a stored JSONL file, one after the other. Throws `ObjectDamaged`, naming key and line. */
export async function* readStoredLines<T>(
  store: Pick<ObjectStore, 'lines'>,
  key: string,
  schema: z.ZodType<T>,
  remedy?: string,
): AsyncGenerator<T> {
  let line = 0;
  for await (const text of store.lines(key)) {
    line += 1;
    yield parseStored(text, `${key}:${line}`, schema, remedy);
  }
}
