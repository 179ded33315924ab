import { statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { mediaManifest } from '../../shared/benchmarks/voxmem/format.ts';
import { sourceUrl, startScript } from '../support/child-script.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { releaseContents, releaseRows } from '../support/unpacked-voxmem.ts';
import { audioOf, type DataSetRow, rowOf, writeParquet } from '../support/voxmem-data-set.ts';

const mebibyte = 1024 * 1024;
const memoryMebibytes = 400;
const rowCount = 20;
const sessionsOfRow = 40;
const clipCount = 12;
const clipSamples = 256 * 1024;

/** As much in a row as the data set has at 64K, some 40 MB; few distinct clips, so that little is written. */
const largeRows = (): DataSetRow[] => {
  const clips = Array.from({ length: clipCount }, (_, seed) => audioOf(seed, clipSamples));
  const userTurns = 4;
  return Array.from({ length: rowCount }, (_, row) =>
    rowOf(row, '64k', {
      session_count: sessionsOfRow,
      question_audio: clips[row % clipCount]!,
      sessions: Array.from({ length: sessionsOfRow }, (_, session) => ({
        timestamp: `2025-01-${String((session % 28) + 1).padStart(2, '0')} ${row}`,
        turns: Array.from({ length: userTurns }, (_, turn) => [
          { role: 'user', text: 'said', audio: clips[(row * 5 + session * 3 + turn) % clipCount]! },
          { role: 'assistant', text: `reply ${row} ${session} ${turn}`, audio: null },
        ]).flat(),
      })),
    }),
  );
};

const unpackInChild = async (source: string, cacheDirectory: string, options = {}) => {
  const child = startScript(`
    import { existsSync, readFileSync } from 'node:fs';
    import { unpackedRelease } from ${JSON.stringify(sourceUrl('test/support/unpacked-voxmem.ts'))};
    const wanted = ${JSON.stringify({ source, cacheDirectory, options })};
    const release = await unpackedRelease(wanted);
    // A child's maxRSS counts what its parent held when it was started; the kernel's own peak does not.
    const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '';
    const peakKibibytes = /VmHWM:\\s+(\\d+) kB/.exec(status)?.[1] ?? process.resourceUsage().maxRSS;
    console.log(JSON.stringify({ release, peakMebibytes: Number(peakKibibytes) / 1024 }));
  `);
  expect(await child.ended, child.output()).toBe(0);
  return JSON.parse(child.output()) as { release: string; peakMebibytes: number };
};

describe('one row group of more than 800 MB, in pages of more than 150', () => {
  it.each([
    // The second is small on disk, but each of its pages is as large in memory.
    { codec: 'UNCOMPRESSED', leastFileBytes: 800 * mebibyte },
    { codec: 'SNAPPY', leastFileBytes: 0 },
  ] as const)('is unpacked within 400 MiB: $codec', async ({ codec, leastFileBytes }) => {
    const folder = temporaryDirectory();
    const file = path.join(folder, '64k.parquet');
    // Pyarrow closes a page after so many values, not so many bytes: 1,024 user turns of a few hundred kilobytes each.
    writeParquet(file, largeRows(), { codec, rowGroupSize: 100, pageSize: 150e6, dictionarySize: 1 });

    const { release, peakMebibytes } = await unpackInChild(file, path.join(folder, 'cache'));

    const sizeMebibytes = Math.round(statSync(file).size / mebibyte);
    console.info(`${codec}: ${sizeMebibytes} MiB unpacked with ${Math.round(peakMebibytes)} MiB`);
    expect(statSync(file).size).toBeGreaterThanOrEqual(leastFileBytes);
    expect(peakMebibytes).toBeLessThan(memoryMebibytes);
    const manifest = mediaManifest.parse(JSON.parse(releaseContents(release)['data/media.json']!));
    expect(Object.values(manifest).map(({ bytes, seconds }) => [bytes, seconds])).toEqual(
      Array.from({ length: clipCount }, () => [clipSamples + 44, clipSamples / 8000]),
    );
    expect(releaseRows(release, 'data/items.jsonl')).toHaveLength(rowCount);
    expect(releaseRows(release, 'data/sessions.jsonl')).toHaveLength(rowCount * sessionsOfRow);
  });
});
