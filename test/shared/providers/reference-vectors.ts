import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Wire vectors of the reference notes, which stand beside the project and are no part of it. */
const notes = path.join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  '..',
  'shared',
  'reference',
  'provider-apis.md',
);

export const hasReference = existsSync(notes);

/** The fenced block after `**NAME`, its stand-ins for content (`<WAV>`, `<MP4>`) filled in. */
export const vectorText = (name: string): string => {
  const text = readFileSync(notes, 'utf8');
  const found = new RegExp(`\\*\\*${name}\\b[^\\n]*\\n+\`\`\`\\w+\\n([^]*?)\`\`\``).exec(text);
  if (found === null) throw new Error(`the reference has no vector ${name}`);
  return found[1]!.replace(/"<(\w+)>"/g, (_, stand: string) => JSON.stringify(fixtureBase64(stand)));
};

/** Base64 of a small media file in the table of fixtures. */
export const fixtureBase64 = (name: string): string => {
  const row = new RegExp(`^\\| \`${name}\`.*\`([A-Za-z0-9+/=]+)\` \\|$`, 'm').exec(
    readFileSync(notes, 'utf8'),
  );
  if (row === null) throw new Error(`the reference has no fixture ${name}`);
  return row[1]!;
};
