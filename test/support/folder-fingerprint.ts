import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** Everything below a folder, hidden files and links too: path and content of each, to see what changed. */
export const folderFingerprint = (folder: string, under = ''): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of readdirSync(path.join(folder, under)).sort()) {
    const file = path.join(under, name);
    const absolute = path.join(folder, file);
    const entry = lstatSync(absolute);
    if (entry.isDirectory()) Object.assign(found, { [`${file}/`]: '' }, folderFingerprint(folder, file));
    else if (entry.isSymbolicLink()) found[file] = `→ ${readlinkSync(absolute)}`;
    else found[file] = createHash('sha256').update(readFileSync(absolute)).digest('hex');
  }
  return found;
};
