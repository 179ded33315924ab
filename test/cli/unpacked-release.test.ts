import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ItemRow } from '../../shared/benchmarks/voxmem/format.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { releaseContents, releaseRows, unpackedRelease } from '../support/unpacked-voxmem.ts';
import { fixtureRows, rowOf, writeJsonl, writeParquet } from '../support/voxmem-data-set.ts';

const places = () => {
  const folder = temporaryDirectory();
  return { set: path.join(folder, 'set'), cacheDirectory: path.join(folder, 'a', 'cache'), folder };
};

const itemIds = (release: string): string[] =>
  releaseRows<ItemRow>(release, 'data/items.jsonl').map(({ item_id }) => item_id);

describe('a data set', () => {
  it('becomes the same release as one file, as several, as Parquet and as JSON lines', async () => {
    const { folder, cacheDirectory } = places();
    const rows = fixtureRows();
    const sources = ['one', 'several', 'lines'].map((name) => path.join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeParquet(path.join(sources[0], 'rows.parquet'), rows);
    writeParquet(path.join(sources[1], 'a', 'rows-00000.parquet'), rows.slice(0, 2), { pageSize: 100 });
    writeParquet(path.join(sources[1], 'a', 'rows-00001.parquet'), rows.slice(2, 5), { rowGroupSize: 1 });
    writeParquet(path.join(sources[1], 'b', 'rows.parquet'), rows.slice(5), { codec: 'UNCOMPRESSED' });
    writeJsonl(sources[2], rows);

    const releases = [];
    for (const source of sources) releases.push(await unpackedRelease({ source, cacheDirectory }));

    const [one, several, lines] = releases.map(releaseContents);
    expect(Object.keys(one!).filter((file) => file.startsWith('data/'))).toEqual([
      'data/answers.jsonl',
      'data/items.jsonl',
      'data/media.json',
      'data/sessions.jsonl',
      'data/transcripts.jsonl',
    ]);
    expect(several).toEqual(one);
    expect(lines).toEqual(one);
    expect(new Set(releases).size).toBe(3);
  });

  it('is unpacked once, until it or what is wanted of it changes', async () => {
    const { set, cacheDirectory } = places();
    const file = writeJsonl(set, fixtureRows());
    const unpacked = (options = {}) => unpackedRelease({ source: set, cacheDirectory, options });

    const first = await unpacked();
    writeFileSync(path.join(first, 'data', 'marker'), 'still the first');
    const again = await unpacked();
    const short = await unpacked({ lengths: ['8k'] });
    const clip = readdirSync(path.join(set, 'audio'))[0]!;
    utimesSync(path.join(set, 'audio', clip), 1, 1);
    const withOtherClip = await unpacked();
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('Who said 1?', 'Who said two?'));
    const withOtherText = await unpacked();

    expect(again).toBe(first);
    expect(existsSync(path.join(again, 'data', 'marker'))).toBe(true);
    expect(new Set([first, short, withOtherClip, withOtherText]).size).toBe(4);
    expect(itemIds(short)).toEqual(['q_00001_8k', 'q_00002_8k', 'q_00003_8k', 'q_00004_8k']);
    const note = JSON.parse(readFileSync(path.join(short, 'source.json'), 'utf8'));
    expect(note).toMatchObject({ v: 1, files: [{ name: 'items.jsonl' }], selection: { lengths: ['8k'] } });
  });

  it('is left as it is where it is unpacked already', async () => {
    const { set, cacheDirectory } = places();
    writeJsonl(set, fixtureRows());
    const release = await unpackedRelease({ source: set, cacheDirectory });

    const given = await unpackedRelease({ source: release, cacheDirectory });

    expect(given).toBe(release);
  });

  it('may be one file, and files may be links', async () => {
    const { set, folder, cacheDirectory } = places();
    writeParquet(path.join(folder, 'blob'), [rowOf(1)]);
    mkdirSync(set);
    symlinkSync('../blob', path.join(set, '8k.parquet'));
    writeParquet(path.join(set, '16k.parquet'), [rowOf(1, '16k')]);

    const [file, all] = [
      await unpackedRelease({ source: path.join(set, '8k.parquet'), cacheDirectory }),
      await unpackedRelease({ source: set, cacheDirectory }),
    ];

    expect(itemIds(file)).toEqual(['q_00001_8k']);
    expect(itemIds(all)).toEqual(['q_00001_8k', 'q_00001_16k']);
  });

  it('leaves nothing behind where it has faults', async () => {
    const { set, cacheDirectory } = places();
    writeParquet(path.join(set, 'rows.parquet'), [rowOf(1), rowOf(2, '8k', { question_audio: null })]);

    const unpacking = unpackedRelease({ source: set, cacheDirectory });

    await expect(unpacking).rejects.toMatchObject({ name: 'BenchmarkInvalid' });
    expect(readdirSync(cacheDirectory)).toEqual([]);
  });

  it('is unpacked whole by two at once', async () => {
    const { set, cacheDirectory } = places();
    writeJsonl(set, fixtureRows());

    const releases = await Promise.all([1, 2, 3].map(() => unpackedRelease({ source: set, cacheDirectory })));

    expect(new Set(releases).size).toBe(1);
    expect(readdirSync(cacheDirectory)).toEqual([path.basename(releases[0]!)]);
    expect(itemIds(releases[0]!)).toHaveLength(6);
  });

  it('clears what a killed unpacking left, not what another process still writes', async () => {
    const { set, cacheDirectory } = places();
    writeJsonl(set, fixtureRows());
    const gone = 'voxmem-0123456789abcdef.unpacking-999999999-1';
    const running = `voxmem-0123456789abcdef.unpacking-${process.pid}-999`;
    for (const name of [gone, running])
      mkdirSync(path.join(cacheDirectory, name, 'data'), { recursive: true });

    const release = await unpackedRelease({ source: set, cacheDirectory });

    expect(readdirSync(cacheDirectory).sort()).toEqual([running, path.basename(release)].sort());
  });

  it.each([
    ['nowhere', () => {}, 'no such file or folder'],
    ['an empty folder', (set: string) => mkdirSync(set), 'no *.parquet or *.jsonl there'],
    [
      'both forms',
      (set: string) => {
        writeJsonl(set, [rowOf(1)]);
        writeParquet(path.join(set, 'rows.parquet'), [rowOf(1)]);
      },
      'both *.parquet and *.jsonl are there',
    ],
  ])('must be there in one form: %s', async (_, make, message) => {
    const { set, cacheDirectory } = places();
    make(set);

    const unpacking = unpackedRelease({ source: set, cacheDirectory });

    await expect(unpacking).rejects.toThrow(message);
  });

  it('gives each item once: overlapping configs are told', async () => {
    const { set, cacheDirectory } = places();
    writeParquet(path.join(set, '8k.parquet'), [rowOf(1), rowOf(2)]);
    copyFileSync(path.join(set, '8k.parquet'), path.join(set, '8k_speaker_information.parquet'));

    const error = await unpackedRelease({ source: set, cacheDirectory }).catch((thrown: unknown) => thrown);

    const file = path.join(set, '8k.parquet');
    expect(error).toMatchObject({
      problems: [1, 2].map((row) => ({
        file: path.join(set, '8k_speaker_information.parquet'),
        line: row,
        message: `item "q_0000${row}_8k": there is one in ${file}, row ${row}; give each item once`,
      })),
    });
  });
});
