import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type BuiltClips,
  buildClips,
  clipsText,
  readClipFacts,
} from '../../examples/small-voxmem/build/build-clips.ts';
import { parquetFile, parquetOf } from '../../examples/small-voxmem/build/build-data.ts';

const example = path.join(import.meta.dirname, '../../examples/small-voxmem');

/** What a tool says of its version; null where it is not installed. */
const versionOf = (tool: string): string | null => {
  const { error, stdout, stderr } = spawnSync(tool, ['--version'], { encoding: 'utf8' });
  return error === undefined ? `${stdout}${stderr}` : null;
};
const versions = [versionOf('flite'), versionOf('espeak-ng'), versionOf('sox')] as const;
/** Those of NOTICE: other versions speak the same words with other bytes. */
const areThoseOfNotice = ['flite-2.2', ' 1.51 ', '14.4.2'].every((version, index) =>
  versions[index]?.includes(version),
);

describe.runIf(!versions.includes(null))('the build of small-voxmem (needs flite, espeak-ng and sox)', () => {
  let built: BuiltClips;
  beforeAll(() => {
    built = buildClips();
  }, 300_000);

  it('makes the same bytes each time', () => {
    const again = buildClips();

    expect(clipsText(again.facts)).toBe(clipsText(built.facts));
    expect([...again.stems].map(([name, wav]) => [name, wav.equals(built.stems.get(name)!)])).toEqual(
      [...built.stems.keys()].map((name) => [name, true]),
    );
  });

  it('says the same as the clips in git, for about as long', () => {
    const inGit = readClipFacts();

    expect(built.facts.map(({ who, text, path: clip }) => [who, text, clip])).toEqual(
      inGit.map(({ who, text, path: clip }) => [who, text, clip]),
    );
    for (const [index, { seconds, text }] of built.facts.entries()) {
      expect(seconds / inGit[index]!.seconds, text).toBeGreaterThan(0.7);
      expect(seconds / inGit[index]!.seconds, text).toBeLessThan(1.4);
    }
  });

  it.runIf(areThoseOfNotice)('makes what is in git, byte by byte, with the versions of NOTICE', () => {
    expect(clipsText(built.facts)).toBe(readFileSync(path.join(example, 'clips.jsonl'), 'utf8'));
    expect(parquetOf(built.clips).equals(readFileSync(parquetFile))).toBe(true);
    for (const [name, wav] of built.stems) {
      expect(wav.equals(readFileSync(path.join(example, 'stems', name))), name).toBe(true);
    }
  });
});
