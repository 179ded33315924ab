import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildRelease } from './return-release-builder.ts';
import { wavFile } from './wav.ts';

/** Bytes that differ per clip and look enough like MP4 or WAV for a provider that checks beginnings. */
const clipBytes = (file: string): Buffer => {
  const label = Buffer.from(file);
  if (file.endsWith('.mp4'))
    return Buffer.concat([Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isomiso2', 'latin1'), label]);
  return wavFile(label);
};

/** Writes a generated release with media and their digests; gives its directory and the release's facts. */
export const releaseOnDisk = (directory: string, options: Parameters<typeof buildRelease>[0]) => {
  const release = buildRelease(options);
  const digests: string[] = [];
  const write = (file: string, content: string | Buffer) => {
    mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
    writeFileSync(path.join(directory, file), content);
  };
  for (const [file, content] of Object.entries(release.files)) write(file, content);
  for (const file of release.mediaPaths) {
    const bytes = clipBytes(file);
    write(file, bytes);
    digests.push(`${createHash('sha256').update(bytes).digest('hex')}  ${file}`);
  }
  write('data/media_sha256.txt', `${digests.join('\n')}\n`);
  return { directory, ...release };
};
