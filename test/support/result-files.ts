import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** Without what a killed process left half written. */
const visibleNames = (folder: string): string[] =>
  readdirSync(folder).filter((name) => !name.startsWith('.'));

/** Every file below a folder by relative path, as text. */
export const filesBelow = (folder: string, under = ''): Record<string, string> =>
  Object.assign(
    {},
    ...visibleNames(path.join(folder, under)).map((name) => {
      const file = path.join(under, name);
      if (statSync(path.join(folder, file)).isDirectory()) return filesBelow(folder, file);
      return { [file]: readFileSync(path.join(folder, file), 'utf8') };
    }),
  );

/** What a run concluded: its report, its scores and its view rows. Records hold times and are left out. */
export const resultFiles = (out: string): Record<string, string> => ({
  ...filesBelow(out, 'report'),
  ...filesBelow(out, 'scores'),
  ...Object.fromEntries(
    readdirSync(path.join(out, 'lanes')).map((lane) => [
      `lanes/${lane}/views.jsonl`,
      readFileSync(path.join(out, 'lanes', lane, 'views.jsonl'), 'utf8'),
    ]),
  ),
});
