import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The line of a pack that counts for each key, without what was deleted. */
export const packLines = (pack: string): Map<string, { key: string; value: unknown }> => {
  const lines = new Map();
  if (!existsSync(pack)) return lines;
  for (const text of readFileSync(pack, 'utf8').split('\n')) {
    if (text === '') continue;
    const line = JSON.parse(text);
    if (line.deleted) lines.delete(line.key);
    else lines.set(line.key, line);
  }
  return lines;
};

/** The documents of a folder in the order of their names, whether it is a folder of files or a pack. */
export const documentsIn = <Document>(folder: string): Document[] => {
  const documents = [...packLines(`${folder}.pack`)].map(([key, { value }]) => [key, value] as const);
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : [];
  for (const name of files) documents.push([name, JSON.parse(readFileSync(path.join(folder, name), 'utf8'))]);
  return documents.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, document]) => document as Document);
};

/** Reviews of a run by judge and item. */
export const reviewsIn = (out: string): Record<string, unknown> => {
  const folder = path.join(out, 'reviews');
  return Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.endsWith('.pack'))
      .flatMap((name) =>
        [...packLines(path.join(folder, name))].map(([key, { value }]) => [
          `${name.slice(0, -'.pack'.length)}/${key}`,
          value,
        ]),
      ),
  );
};

/** Names of the request records of a lane. */
export const recordNames = (out: string, lane: string): string[] =>
  [...packLines(path.join(out, 'lanes', lane, 'requests.pack')).keys()].sort();
