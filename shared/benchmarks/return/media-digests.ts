import { z } from 'zod';
import type { Problem } from '../../errors.ts';
import { createProblemLog, quoted, readDocument } from '../read-rows.ts';
import { mediaPathSchema } from './release-format.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/i, 'is not a SHA-256 in hexadecimal');

const entrySchema = z
  .looseObject({
    sha256,
    path: mediaPathSchema.optional(),
    video: mediaPathSchema.optional(),
    audio: mediaPathSchema.optional(),
  })
  .refine(
    (entry) => [entry.path, entry.video, entry.audio].filter((path) => path !== undefined).length === 1,
    {
      error: 'an entry has a sha256 and exactly one of path, video, audio',
    },
  );

/**
 * Reads digests of media, by path inside the release: lines of `sha256sum` (`<hex>  <path>`), as in
 * `data/media_sha256.txt`, or a JSON array of `{path | video | audio, sha256}`. Digests come out in lower
 * case. Malformed entries, bad paths and two digests for one path are problems.
 */
export function parseMediaDigests(
  file: string,
  text: string,
): { sha256ByPath: Map<string, string>; problems: Problem[] } {
  const log = createProblemLog();
  const sha256ByPath = new Map<string, string>();
  const add = (line: number | null, path: string, digest: string) => {
    const earlier = sha256ByPath.get(path);
    if (earlier !== undefined && earlier !== digest.toLowerCase()) {
      log.add(file, line, `${quoted(path)} has two digests`);
    } else sha256ByPath.set(path, digest.toLowerCase());
  };
  if (/^\uFEFF?\s*[[{]/.test(text)) {
    for (const entry of readDocument(file, text, z.array(entrySchema), log) ?? []) {
      add(null, (entry.path ?? entry.video ?? entry.audio)!, entry.sha256);
    }
  } else {
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      if (line.trim() === '') continue;
      const [, digest, path] = /^([0-9a-f]{64}) [ *](.*)$/i.exec(line) ?? [];
      if (digest === undefined || path === undefined) {
        log.add(file, index + 1, `${quoted(line)} is not "<sha256>  <path>"`);
        continue;
      }
      const checked = mediaPathSchema.safeParse(path);
      if (checked.success) add(index + 1, path, digest);
      else log.add(file, index + 1, `${quoted(path)} ${checked.error.issues[0]!.message}`);
    }
  }
  return { sha256ByPath, problems: log.list() };
}
