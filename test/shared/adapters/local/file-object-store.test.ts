import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  createFileObjectStore,
  type FileObjectStoreSettings,
} from '../../../../shared/adapters/local/file-object-store.ts';
import { objectStoreContract } from '../../../contracts/object-store.contract.ts';
import { sourceUrl, startScript } from '../../../support/child-script.ts';
import { collect } from '../../../support/collect.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

const storeAt = (settings: Partial<FileObjectStoreSettings> = {}) => {
  const root = settings.root ?? temporaryDirectory();
  return { root, store: createFileObjectStore({ ...settings, root }) };
};
const keysOf = (store: ReturnType<typeof createFileObjectStore>, prefix = '') => collect(store.list(prefix));
const createStoreInChild = (root: string) => `
  import { createFileObjectStore } from ${JSON.stringify(sourceUrl('shared/adapters/local/file-object-store.ts'))};
  const store = createFileObjectStore({ root: ${JSON.stringify(root)} });
`;

objectStoreContract('files', async () => ({ store: storeAt().store }));
objectStoreContract('files, all keys on mounts', async () => {
  const { store } = storeAt({
    mounts: ['p/', 'p/a/', 'many/', 'lanes/'].map((prefix) => ({ prefix, directory: temporaryDirectory() })),
  });
  return { store };
});

describe('keys', () => {
  it.each([
    '',
    '/',
    '/etc/passwd',
    '..',
    '../x',
    'a/../b',
    'a/..',
    './a',
    'a/./b',
    'a//b',
    'a/',
    'a\0b',
    'a\\b',
    '.hidden',
    'a/.hidden',
    'half \ud83d',
  ])('refuses %j', async (key) => {
    const { store, root } = storeAt();

    const attempts = [
      store.getText(key),
      store.getBytes(key),
      store.tag(key),
      store.put(key, 'x'),
      store.putIfAbsent(key, 'x'),
      store.putIfMatch(key, 'x', 'tag'),
      store.putLines(key, ['x']),
      store.delete(key),
      collect(store.lines(key)),
    ];

    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ name: 'AccessDenied' });
    expect(readdirSync(root)).toEqual([]);
  });

  it.each(['/', '../', 'a/../b', 'a//', 'x\0'])('refuses to list %j', async (prefix) => {
    const { store } = storeAt();

    await expect(keysOf(store, prefix)).rejects.toMatchObject({ name: 'AccessDenied' });
  });

  it('takes dots inside and at the end of names', async () => {
    const { store } = storeAt();
    const keys = ['a..b', 'a.', 'model-1.5/x...y'];

    for (const key of keys) await store.put(key, key);

    expect(await keysOf(store)).toEqual(['a.', 'a..b', 'model-1.5/x...y']);
  });

  it('knows a folder as no object', async () => {
    const { store } = storeAt();
    await store.put('folder/k', 'x');

    await store.delete('folder');

    expect([
      await store.getText('folder'),
      await store.getBytes('folder'),
      await store.tag('folder'),
    ]).toEqual([null, null, null]);
    expect(await store.getText('folder/k/deeper')).toBeNull();
    expect(await store.getText('folder/k')).toBe('x');
  });
});

describe('symbolic links', () => {
  it('are not followed out of the root, by folder or by file', async () => {
    const outside = temporaryDirectory();
    writeFileSync(path.join(outside, 'secret'), 'secret');
    const { store, root } = storeAt();
    symlinkSync(outside, path.join(root, 'folder'));
    symlinkSync(path.join(outside, 'secret'), path.join(root, 'file'));

    const attempts = [
      store.getText('folder/secret'),
      store.getBytes('file'),
      collect(store.lines('file')),
      store.put('folder/new', 'x'),
      store.putIfAbsent('folder/deep/new', 'x'),
      store.delete('folder/secret'),
      keysOf(store, 'folder/'),
    ];

    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ name: 'AccessDenied' });
    expect(readdirSync(outside)).toEqual(['secret']);
    expect(await keysOf(store)).toEqual([]);
  });

  it('may be the root itself', async () => {
    const [real, folder] = [temporaryDirectory(), temporaryDirectory()];
    symlinkSync(real, path.join(folder, 'link'));
    const { store } = storeAt({ root: path.join(folder, 'link') });

    await store.put('a/b', 'x');

    expect(readFileSync(path.join(real, 'a/b'), 'utf8')).toBe('x');
  });
});

describe('mounts', () => {
  it('puts the keys of a run into its own folder and lists all places as one', async () => {
    const [runFolder, reviews, lanes] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
    const { store, root } = storeAt({
      mounts: [
        { prefix: 'runs/quick/', directory: runFolder },
        { prefix: 'runs/quick/lanes/', directory: lanes },
        { prefix: 'reviews/', directory: reviews },
      ],
    });
    const keys = [
      'media/a.mp4',
      'reviews/j/1.json',
      'runs/other/x',
      'runs/quick/lanes/a/1',
      'runs/quick/plan.json',
    ];
    for (const key of keys) await store.put(key, key);
    // Hidden behind the mount: it must neither be listed nor read.
    mkdirSync(path.join(root, 'runs/quick'), { recursive: true });
    writeFileSync(path.join(root, 'runs/quick/hidden'), 'hidden');
    mkdirSync(path.join(runFolder, 'lanes'));
    writeFileSync(path.join(runFolder, 'lanes/hidden'), 'hidden');

    const listed = await keysOf(store);

    expect(listed).toEqual(keys);
    expect(await keysOf(store, 'runs/quick/lanes/a')).toEqual(['runs/quick/lanes/a/1']);
    expect(await keysOf(store, 'runs/qu')).toEqual(['runs/quick/lanes/a/1', 'runs/quick/plan.json']);
    expect(await store.getText('runs/quick/hidden')).toBeNull();
    expect(readFileSync(path.join(runFolder, 'plan.json'), 'utf8')).toBe('runs/quick/plan.json');
    expect(readFileSync(path.join(lanes, 'a/1'), 'utf8')).toBe('runs/quick/lanes/a/1');
    expect(readFileSync(path.join(reviews, 'j/1.json'), 'utf8')).toBe('reviews/j/1.json');
  });

  it('may share the folder of the root', async () => {
    const root = temporaryDirectory();
    const { store } = storeAt({ root, mounts: [{ prefix: 'runs/quick/', directory: root }] });

    await store.put('runs/quick/contract.json', '{}');

    expect(readFileSync(path.join(root, 'contract.json'), 'utf8')).toBe('{}');
    expect(await keysOf(store, 'runs/quick/')).toEqual(['runs/quick/contract.json']);
  });

  it.each(['runs', '/runs/', 'a//', '../'])('refuses the prefix %j', (prefix) => {
    expect(() => createFileObjectStore({ root: '.', mounts: [{ prefix, directory: '.' }] })).toThrow(
      /mount|key/,
    );
  });
});

describe('aliases', () => {
  it('read a file elsewhere, are listed, and are never written', async () => {
    const elsewhere = temporaryDirectory();
    const clip = path.join(elsewhere, 'clip one.mp4');
    writeFileSync(clip, 'film\nfilm');
    const { store } = storeAt({
      aliases: new Map([
        ['media/b.mp4', clip],
        ['media/gone.mp4', path.join(elsewhere, 'gone.mp4')],
      ]),
    });
    await store.put('media/a.mp4', 'a');
    await store.put('media/c.mp4', 'c');

    const writes = [
      store.put('media/b.mp4', 'x'),
      store.putIfAbsent('media/b.mp4', 'x'),
      store.putLines('media/b.mp4', ['x']),
      store.delete('media/b.mp4'),
    ];

    for (const write of writes) await expect(write).rejects.toMatchObject({ name: 'AccessDenied' });
    expect(readFileSync(clip, 'utf8')).toBe('film\nfilm');
    expect(await store.getText('media/b.mp4')).toBe('film\nfilm');
    expect(await collect(store.lines('media/b.mp4'))).toEqual(['film', 'film']);
    expect(await store.getBytes('media/gone.mp4')).toBeNull();
    expect(await keysOf(store, 'media/')).toEqual(['media/a.mp4', 'media/b.mp4', 'media/c.mp4']);
  });
});

describe('what the disk does', () => {
  it('leaves no temporary files behind', async () => {
    const { store, root } = storeAt();

    await store.put('a', '1');
    await store.putIfAbsent('a', '2');
    await store.putIfAbsent('b', '3');
    await store.putLines('c', ['4']);
    await store.put('d', 'x'.repeat(5_000_000));

    expect(readdirSync(root).sort()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('does not see what a killed process left half done', async () => {
    const { store, root } = storeAt();
    await store.put('folder/a', 'whole');
    writeFileSync(path.join(root, 'folder', '.123-abc-1.tmp'), 'ha');

    const listed = await keysOf(store);

    expect(listed).toEqual(['folder/a']);
    expect(await store.putIfAbsent('folder/b', 'b')).toBe(true);
  });

  it('makes a folder again that was removed while the store was open', async () => {
    const { store, root } = storeAt();
    await store.put('deep/er/a', '1');
    rmSync(root, { recursive: true });

    await store.put('deep/er/b', '2');
    rmSync(path.join(root, 'deep'), { recursive: true });
    const isFirst = await store.putIfAbsent('deep/er/a', '3');
    rmSync(path.join(root, 'deep'), { recursive: true });
    await store.putLines('deep/er/c', ['4']);

    expect(isFirst).toBe(true);
    expect(await keysOf(store)).toEqual(['deep/er/c']);
  });

  it('says in one line what to do when a file stands where a folder is needed', async () => {
    const { store } = storeAt();
    await store.put('a', 'file');

    const error = await store.put('a/b', 'x').catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({
      name: 'StorageFailed',
      message: expect.stringMatching(/^cannot make a folder: ENOTDIR \(.*\/a\); a file stands where .*$/),
    });
  });

  it('says so when a name is too long', async () => {
    const { store } = storeAt();

    const writing = store.put('x'.repeat(300), 'x');

    await expect(writing).rejects.toMatchObject({ name: 'StorageFailed', remedy: 'use shorter names' });
  });

  // A disk of Linux that is always full.
  it.runIf(existsSync('/dev/full'))('says so when the disk is full', async () => {
    const script = startScript(`
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const write = fs.writeFileSync;
      fs.writeFileSync = (file, body) => {
        write(file, '');
        write('/dev/full', body);
      };
      syncBuiltinESMExports();
      const { createFileObjectStore } = await import('${sourceUrl('shared/adapters/local/file-object-store.ts')}');
      const store = createFileObjectStore({ root: ${JSON.stringify(temporaryDirectory())} });
      const error = await store.putIfAbsent('a', 'x').catch((thrown) => thrown);
      console.log(error.name, '|', error.message, '|', await store.getText('a'), (await Array.fromAsync(store.list(''))).length);
    `);

    expect(await script.ended).toBe(0);
    expect(script.output()).toMatch(
      /^StorageFailed \| cannot write: ENOSPC \(.*\/a\); free disk space and run again \| null 0$/m,
    );
  });

  it('lets timers have their turn among thousands of operations', async () => {
    const { store } = storeAt();
    let isTurn = false;
    setImmediate(() => {
      isTurn = true;
    });

    for (let at = 0; at < 100; at += 1) await store.getText('missing');

    expect(isTurn).toBe(true);
  });

  it('has one winner among processes', async () => {
    const { root, store } = storeAt();
    const count = 300;
    const writers = ['x', 'y', 'z'].map((writer) =>
      startScript(`
        ${createStoreInChild(root)}
        let won = 0;
        for (let at = 0; at < ${count}; at += 1) {
          if (await store.putIfAbsent('race/' + at, '${writer}'.repeat(500))) won += 1;
        }
        console.log('won ' + won);
      `),
    );

    const ends = await Promise.all(writers.map((writer) => writer.ended));

    expect(ends).toEqual([0, 0, 0]);
    const won = writers.map((writer) => Number(/won (\d+)/.exec(writer.output())![1]));
    expect(won.reduce((sum, one) => sum + one)).toBe(count);
    for (const key of await keysOf(store))
      expect(await store.getText(key)).toMatch(/^(x{500}|y{500}|z{500})$/);
  });

  it('shows whole objects only, whenever the writer is killed', async () => {
    const { root, store } = storeAt();
    const size = 200_000;
    for (let kill = 0; kill < 3; kill += 1) {
      const writer = startScript(`
        ${createStoreInChild(root)}
        console.log('begun');
        for (let at = 0; ; at += 1) {
          const body = String(at % 10).repeat(${size});
          await store.putIfAbsent('first/' + ${kill} + '-' + at, body);
          await store.put('again', body);
          await store.putLines('lines', [body, body]);
          if (at === 5 + ${kill}) console.log('under way');
        }
      `);
      await writer.says('under way');

      writer.process.kill('SIGKILL');

      expect(await writer.ended).toBe('SIGKILL');
    }
    const keys = await keysOf(store);
    expect(keys.length).toBeGreaterThan(20);
    for (const key of keys) {
      const text = (await store.getText(key))!;
      const expected = key === 'lines' ? 2 * (size + 1) : size;
      expect([key, text.length, new Set(text.replaceAll('\n', '')).size]).toEqual([key, expected, 1]);
    }
    expect(await store.putIfAbsent('first/after', 'x')).toBe(true);
  });
});

describe('lines', () => {
  it('stops at a line over the limit and says which', async () => {
    const { store } = storeAt({ longestLineBytes: 1_000_000 });
    await store.put('fits', `a\nb\n${'x'.repeat(1_000_000)}\nc`);
    await store.put('over', `a\nb\n${'x'.repeat(1_000_001)}\nc`);
    await store.put('endless', `a\n${'x'.repeat(3_000_000)}`);

    const fits = await collect(store.lines('fits'));

    expect(fits.map((line) => line.length)).toEqual([1, 1, 1_000_000, 1]);
    for (const [key, line] of [
      ['over', 3],
      ['endless', 2],
    ] as const) {
      await expect(collect(store.lines(key))).rejects.toMatchObject({
        name: 'StorageFailed',
        message: expect.stringContaining(`line ${line} is longer than 1000000 bytes (${key})`),
      });
    }
  });

  it('refuses to write a line that would become two', async () => {
    const { store } = storeAt();

    const writing = store.putLines('rows', ['fine', 'a\nb']);

    await expect(writing).rejects.toThrow('line 2 has a line end inside (rows)');
    expect(await store.getText('rows')).toBeNull();
  });

  it('streams far more than memory holds', async () => {
    const { root } = storeAt();
    const rows = 60_000;
    const script = startScript(
      `
        ${createStoreInChild(root)}
        const filling = 'x'.repeat(2000);
        function* rows() { for (let at = 0; at < ${rows}; at += 1) yield at + ' ' + filling; }
        const written = await store.putLines('big', rows());
        let [count, sum] = [0, 0];
        for await (const line of store.lines('big')) { count += 1; sum += parseInt(line); }
        console.log(JSON.stringify({ written, count, sum }));
      `,
      ['--max-old-space-size=24', '--max-semi-space-size=4'],
    );

    expect(await script.ended, script.output()).toBe(0);
    expect(JSON.parse(script.output())).toEqual({ written: rows, count: rows, sum: (rows * (rows - 1)) / 2 });
  });

  it('reads what was there when the reading began, whatever replaces it', async () => {
    const { store, root } = storeAt();
    const old = Array.from({ length: 100_000 }, (_, at) => `old ${at}`);
    await store.putLines('rows', old);

    const seen: string[] = [];
    for await (const line of store.lines('rows')) {
      if (seen.length === 0) await store.putLines('rows', ['new']);
      seen.push(line);
    }

    expect(seen).toEqual(old);
    expect(readFileSync(path.join(root, 'rows'), 'utf8')).toBe('new\n');
  });
});

describe('tags', () => {
  it('see a change made by another program', async () => {
    const { store, root } = storeAt();
    await store.put('k', 'one');
    const tag = (await store.tag('k'))!;
    appendFileSync(path.join(root, 'k'), '!');

    const replaced = await store.putIfMatch('k', 'two', tag);

    expect(replaced).toBe(false);
    expect(await store.getText('k')).toBe('one!');
  });
});
