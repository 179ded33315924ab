import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createFileObjectStore } from '../../../../shared/adapters/local/file-object-store.ts';
import { createPackedObjectStore } from '../../../../shared/adapters/local/packed-object-store.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import { objectStoreContract } from '../../../contracts/object-store.contract.ts';
import { sourceUrl, startScript } from '../../../support/child-script.ts';
import { collect } from '../../../support/collect.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

const folder = 'runs/r/lanes/a/requests/';
const packs = ['runs/r/lanes/*/requests/'];

const storeAt = (root = temporaryDirectory()) => {
  const open = () => createPackedObjectStore({ root, packs });
  return { root, open, store: open(), pack: path.join(root, 'runs/r/lanes/a/requests.pack') };
};

/** Every key of the tests of the contract in one pack. */
const inOnePack = (store: ObjectStore): ObjectStore => ({
  getText: (key) => store.getText(folder + key),
  getBytes: (key) => store.getBytes(folder + key),
  tag: (key) => store.tag(folder + key),
  put: (key, body) => store.put(folder + key, body),
  putIfAbsent: (key, body) => store.putIfAbsent(folder + key, body),
  putIfMatch: (key, body, tag) => store.putIfMatch(folder + key, body, tag),
  delete: (key) => store.delete(folder + key),
  async *list(prefix) {
    for await (const key of store.list(folder + prefix)) yield key.slice(folder.length);
  },
  lines: (key) => store.lines(folder + key),
  putLines: (key, lines) => store.putLines(folder + key, lines),
});

objectStoreContract('packs, one of them for all keys', async () => ({ store: inOnePack(storeAt().store) }));
objectStoreContract('packs among files', async () => ({
  store: createPackedObjectStore({
    root: temporaryDirectory(),
    packs: ['p/a/', 'p/*/y/', 'lanes/', 'many/'],
  }),
}));

describe('a pack', () => {
  it('is one file of lines that ordinary tools read, each with its checksum', async () => {
    const { store, root, pack } = storeAt();
    const record = '{"v":1,"rawText":"Malmö 漢字"}';

    await store.put(`${folder}1.json`, record);
    await store.put(`${folder}"2" \u{1f600}.txt`, 'no "JSON"\n');
    await store.put(`${folder}3`, Uint8Array.of(0xff, 0));
    await store.delete(`${folder}1.json`);

    expect(readdirSync(path.join(root, 'runs/r/lanes/a'))).toEqual(['requests.pack']);
    const lines = readFileSync(pack, 'utf8').split('\n');
    expect(lines.pop()).toBe('');
    for (const line of lines) {
      const [, sum, rest] = /^\{"crc32":"([0-9a-f]{8})",(.*)$/s.exec(line)!;
      expect(crc32(Buffer.from(rest!))).toBe(Number.parseInt(sum!, 16));
    }
    expect(lines.map((line) => ({ ...JSON.parse(line), crc32: undefined }))).toEqual([
      { key: '1.json', value: JSON.parse(record) },
      { key: '"2" \u{1f600}.txt', text: 'no "JSON"\n' },
      { key: '3', base64: '/wA=' },
      { key: '1.json', deleted: true },
    ]);
  });

  it('has the checksum that other programs compute', async () => {
    const { store, pack } = storeAt();

    await store.put(`${folder}k.json`, '{"a":"é"}');

    // python3: zlib.crc32('"key":"k.json","value":{"a":"é"}}'.encode())
    expect(readFileSync(pack, 'utf8')).toBe('{"crc32":"5794c43e","key":"k.json","value":{"a":"é"}}\n');
  });

  it.each([
    ['a document that ends as a deletion does', '{"a":1,"deleted":true}'],
    ['white space around a document', ' [1]\t'],
    ['a document over two lines', '{\n}'],
    ['half a character', '{"a":"\ud83d"}', '{"a":"\ufffd"}'],
    ['nothing', ''],
    ['a number', '12'],
  ])('gives %s back in another process too', async (_, text, expected = text) => {
    const { store, open } = storeAt();

    await store.put(`${folder}k`, text);

    expect(await open().getText(`${folder}k`)).toBe(expected);
  });

  it('counts the last line of a key, also when it is opened again', async () => {
    const { store, open } = storeAt();
    await store.put(`${folder}kept`, 'one');
    await store.put(`${folder}gone`, 'one');

    await store.put(`${folder}kept`, 'two, longer');
    await store.delete(`${folder}gone`);

    for (const reader of [store, open()]) {
      expect(await reader.getText(`${folder}kept`)).toBe('two, longer');
      expect(await reader.getText(`${folder}gone`)).toBeNull();
      expect(await collect(reader.list(folder))).toEqual([`${folder}kept`]);
    }
  });

  it('decides changes of one turn in their order', async () => {
    const { store } = storeAt();
    const key = `${folder}k`;

    const results = await Promise.all([
      store.putIfAbsent(key, 'first'),
      store.putIfAbsent(key, 'second'),
      store.delete(key),
      store.putIfAbsent(key, 'third'),
    ]);

    expect(results).toEqual([true, false, undefined, true]);
    expect(await store.getText(key)).toBe('third');
  });

  it('lists packs of several folders among files, in the order of their keys', async () => {
    const { store, open } = storeAt();
    const keys = [
      'b/requests/1',
      'a/views.jsonl',
      'a/requests/2',
      'a/requests/1',
      'a/requests.q',
      'a/failures/1',
    ];
    for (const key of keys) await store.put(`runs/r/lanes/${key}`, key);

    const [all, one, beginning] = await Promise.all(
      ['runs/r/', 'runs/r/lanes/a/requests', 'runs/r/lanes/b'].map((prefix) => collect(open().list(prefix))),
    );

    expect(all!.map((key) => key.slice('runs/r/lanes/'.length))).toEqual([
      'a/failures/1',
      'a/requests.q',
      'a/requests/1',
      'a/requests/2',
      'a/views.jsonl',
      'b/requests/1',
    ]);
    expect(one).toEqual(['runs/r/lanes/a/requests.q', `${folder}1`, `${folder}2`]);
    expect(beginning).toEqual(['runs/r/lanes/b/requests/1']);
  });

  it('finds 100,000 keys among each other, and no other', async () => {
    const { store, open } = storeAt();
    const count = 100_000;
    const keyOf = (at: number) => `${folder}${String(at).padStart(32, '0')}.json`;
    for (let from = 0; from < count; from += 10_000) {
      await Promise.all(
        Array.from({ length: 10_000 }, (_, at) => store.putIfAbsent(keyOf(from + at), `{"at":${from + at}}`)),
      );
    }

    const reader = open();
    const wrong: number[] = [];
    for (let at = 0; at < count; at += 1) {
      if ((await reader.getText(keyOf(at))) !== `{"at":${at}}`) wrong.push(at);
    }

    expect(wrong).toEqual([]);
    expect(await reader.getText(keyOf(count))).toBeNull();
    expect(await collect(reader.list(folder))).toHaveLength(count);
  }, 30_000);

  it('refuses keys that are not safe, and writes nothing', async () => {
    const { store, root } = storeAt();
    const keys = [
      folder,
      `${folder}../x`,
      `${folder}.x`,
      'runs/r/lanes/../requests/x',
      `${folder}a//b`,
      `${folder}\0`,
    ];

    for (const key of keys) {
      await expect(store.put(key, 'x')).rejects.toMatchObject({ name: 'AccessDenied' });
      await expect(store.getText(key)).rejects.toMatchObject({ name: 'AccessDenied' });
    }

    expect(readdirSync(root)).toEqual([]);
  });

  it.each(['requests.pack', '.'])('refuses a link in the place of %s', async (name) => {
    const { store, root } = storeAt();
    const lane = path.join(root, 'runs/r/lanes/a');
    const elsewhere = temporaryDirectory();
    writeFileSync(path.join(elsewhere, 'requests.pack'), '');
    mkdirSync(path.dirname(lane), { recursive: true });
    if (name === '.') symlinkSync(elsewhere, lane);
    else {
      mkdirSync(lane);
      symlinkSync(path.join(elsewhere, name), path.join(lane, name));
    }

    await expect(store.put(`${folder}k`, 'x')).rejects.toMatchObject({ name: 'AccessDenied' });
    await expect(store.getText(`${folder}k`)).rejects.toMatchObject({ name: 'AccessDenied' });

    expect(readFileSync(path.join(elsewhere, 'requests.pack'), 'utf8')).toBe('');
  });

  it('begins anew where its folder was removed meanwhile', async () => {
    const { store, root } = storeAt();
    await store.put(`${folder}1`, 'one');
    rmSync(path.join(root, 'runs'), { recursive: true });

    await store.put(`${folder}2`, 'two');

    expect(await collect(store.list(''))).toEqual([`${folder}2`]);
    expect(await store.getText(`${folder}2`)).toBe('two');
  });

  // A disk of Linux that is always full.
  it.runIf(existsSync('/dev/full'))(
    'says so when the disk is full, keeps what it has, and goes on later',
    async () => {
      const root = temporaryDirectory();
      const script = startScript(`
      import fs from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const write = fs.writeSync;
      const full = fs.openSync('/dev/full', 'w');
      let isFull = false;
      fs.writeSync = (file, body, at) => {
        if (!isFull) return write(file, body, at);
        // As a disk does: a part goes in, the rest does not.
        if (at === 0) return write(file, body, 0, 30);
        return write(full, body, at);
      };
      syncBuiltinESMExports();
      const { createPackedObjectStore } = await import('${sourceUrl('shared/adapters/local/packed-object-store.ts')}');
      const store = createPackedObjectStore({ root: ${JSON.stringify(root)}, packs: ${JSON.stringify(packs)} });
      const key = (name) => ${JSON.stringify(folder)} + name;
      await store.put(key(1), 'one');
      isFull = true;
      const errors = await Promise.allSettled([store.put(key(2), 'two'), store.putIfAbsent(key(2), 'three')]);
      for (const { reason } of errors) console.log(reason.name, '|', reason.message);
      console.log(await store.getText(key(1)), await store.getText(key(2)));
      isFull = false;
      console.log(await store.putIfAbsent(key(2), 'later'), await store.getText(key(2)));
    `);

      expect(await script.ended).toBe(0);
      const said = script.output().split('\n');
      for (const line of said.slice(0, 2)) {
        expect(line).toMatch(
          /^StorageFailed \| cannot write: ENOSPC \(.*\/requests\.pack\); free disk space and run again$/,
        );
      }
      expect(said.slice(2, 4)).toEqual(['one null', 'true later']);
    },
  );

  it('says what is wrong with the disk, and has nothing then of what it was given', async () => {
    const { store, pack } = storeAt();
    mkdirSync(pack, { recursive: true });

    await expect(store.put(`${folder}k`, 'x')).rejects.toMatchObject({ name: 'AccessDenied' });
    rmSync(pack, { recursive: true });

    expect(await store.getText(`${folder}k`)).toBeNull();
    expect(await store.putIfAbsent(`${folder}k`, 'x')).toBe(true);
  });
});

describe('a pack whose writer was killed', () => {
  const twoRecords = async () => {
    const made = storeAt();
    await made.store.put(`${folder}1.json`, '{"n":1}');
    const size = statSync(made.pack).size;
    await made.store.put(`${folder}2.json`, '{"n":2}');
    return { ...made, firstEnds: size, whole: readFileSync(made.pack) };
  };

  it('has every line before a cut at any byte, and goes on behind it', async () => {
    const { open, pack, firstEnds, whole } = await twoRecords();

    for (let size = firstEnds; size <= whole.length; size += 1) {
      rmSync(`${pack}.torn`, { force: true });
      writeFileSync(pack, whole.subarray(0, size));
      const isThere = size >= whole.length - 1;

      const read = await open().getText(`${folder}2.json`);
      const isFirst = await open().putIfAbsent(`${folder}2.json`, '{"n":"new"}');
      await open().put(`${folder}3.json`, '{"n":3}');

      expect([size, read, isFirst]).toEqual([size, isThere ? '{"n":2}' : null, !isThere]);
      const contents = await Promise.all([1, 2, 3].map((at) => open().getText(`${folder}${at}.json`)));
      expect(contents).toEqual(['{"n":1}', isThere ? '{"n":2}' : '{"n":"new"}', '{"n":3}']);
      // Kept aside for people.
      const torn = whole.subarray(firstEnds, size).toString();
      const kept = existsSync(`${pack}.torn`) ? readFileSync(`${pack}.torn`, 'utf8') : '';
      expect(kept).toBe(isThere || torn === '' ? '' : `${torn}\n`);
    }
  });

  it('is left as it is by those who only read', async () => {
    const { open, pack } = await twoRecords();
    truncateSync(pack, statSync(pack).size - 5);
    const before = readFileSync(pack);

    const listed = await collect(open().list(''));

    expect(listed).toEqual([`${folder}1.json`]);
    expect(readFileSync(pack)).toEqual(before);
    expect(readdirSync(path.dirname(pack))).toEqual(['requests.pack']);
  });

  it('shows nothing of what was cut off as an object', async () => {
    const { store, open, pack } = await twoRecords();
    appendFileSync(pack, '{"crc32":');
    await store.put(`${folder}3.json`, '{}');

    const listed = await collect(open().list(''));

    expect(existsSync(`${pack}.torn`)).toBe(true);
    expect(listed).toEqual([1, 2, 3].map((at) => `${folder}${at}.json`));
  });

  it('has all that was said to be written, after SIGKILL at any moment', async () => {
    const { root, open } = storeAt();
    const child = startScript(`
      import { createPackedObjectStore } from ${JSON.stringify(sourceUrl('shared/adapters/local/packed-object-store.ts'))};
      const store = createPackedObjectStore({ root: ${JSON.stringify(root)}, packs: ${JSON.stringify(packs)} });
      const work = async (worker) => {
        for (let at = 0; ; at += 1) {
          const key = ${JSON.stringify(folder)} + worker + '-' + at;
          await store.putIfAbsent(key, JSON.stringify({ key, text: 'x'.repeat(at % 3000) }));
          process.stdout.write(key + '\\n');
        }
      };
      for (let worker = 0; worker < 20; worker += 1) work(worker);
    `);
    await child.says('-300\n');

    child.process.kill('SIGKILL');
    expect(await child.ended).toBe('SIGKILL');

    const store = open();
    const keys = child.output().split('\n').slice(0, -1);
    expect(keys.length).toBeGreaterThan(1000);
    for (const key of keys) expect(JSON.parse((await store.getText(key))!).key).toBe(key);
  });
});

describe('a damaged pack', () => {
  const damagedPack = async (damage: (lines: string[]) => string[]) => {
    const made = storeAt();
    for (const at of [1, 2, 3]) await made.store.put(`${folder}${at}.json`, `{"n":${at}}`);
    writeFileSync(made.pack, damage(readFileSync(made.pack, 'utf8').split('\n')).join('\n'));
    return { ...made, store: made.open() };
  };

  it.each([
    ['altered content', (line: string) => line.replace('"n":2', '"n":7')],
    ['another key', (line: string) => line.replace('2.json', '7.json')],
    ['another checksum', (line: string) => line.replace(/^\{"crc32":"........"/, '{"crc32":"00000000"')],
    ['half of it', (line: string) => line.slice(0, 40)],
    ['no key', (line: string) => line.slice(0, 15)],
    ['zeros', (line: string) => '\0'.repeat(line.length)],
  ])('with %s in a line says so with file and line, and gives every other', async (_, damage) => {
    const { store, pack } = await damagedPack((lines) => lines.with(1, damage(lines[1]!)));
    const before = readFileSync(pack);
    const isNamed = {
      name: 'ObjectDamaged',
      message: expect.stringMatching(/runs\/r\/lanes\/a\/requests\.pack:2\b.*delete it/),
    };

    expect(await store.getText(`${folder}1.json`)).toBe('{"n":1}');
    expect(await store.getText(`${folder}3.json`)).toBe('{"n":3}');
    await expect(store.getText(`${folder}2.json`)).rejects.toMatchObject(isNamed);
    // It may be any that is not found.
    await expect(store.putIfAbsent(`${folder}2.json`, 'x')).rejects.toMatchObject(isNamed);
    await expect(store.putIfAbsent(`${folder}4.json`, 'x')).rejects.toMatchObject(isNamed);
    await expect(collect(store.list(''))).rejects.toMatchObject(isNamed);
    expect(readFileSync(pack)).toEqual(before);
  });

  it('is whole again when the line is deleted', async () => {
    const { store, pack } = await damagedPack((lines) => lines.with(1, 'x'));
    await expect(collect(store.list(folder))).rejects.toMatchObject({ name: 'ObjectDamaged' });

    writeFileSync(`${pack}.new`, readFileSync(pack, 'utf8').replace('\nx\n', '\n'));
    renameSync(`${pack}.new`, pack);

    expect(await collect(store.list(folder))).toEqual([`${folder}1.json`, `${folder}3.json`]);
    expect(await store.putIfAbsent(`${folder}2.json`, 'again')).toBe(true);
  });

  it('is noticed where it happens to a line that was whole a moment ago', async () => {
    const { store, pack } = storeAt();
    await store.put(`${folder}k`, '{"n":1}');
    expect(await store.getText(`${folder}k`)).toBe('{"n":1}');
    writeFileSync(pack, readFileSync(pack, 'utf8').replace('"n":1', '"n":2'));

    await expect(store.getText(`${folder}k`)).rejects.toMatchObject({ name: 'ObjectDamaged' });
  });
});

describe('two processes at one pack', () => {
  it('one reads what the other has written by then, whole lines only', async () => {
    const { store, open, pack } = storeAt();
    const reader = open();
    expect(await collect(reader.list(folder))).toEqual([]);

    await store.put(`${folder}1`, 'one');
    expect(await reader.getText(`${folder}1`)).toBe('one');
    await store.put(`${folder}1`, 'one again');
    await store.put(`${folder}2`, 'two');
    expect(await reader.getText(`${folder}1`)).toBe('one again');
    expect(await collect(reader.list(folder))).toEqual([`${folder}1`, `${folder}2`]);

    const before = readFileSync(pack);
    await store.put(`${folder}3`, 'three');
    const third = readFileSync(pack).subarray(before.length);
    truncateSync(pack, before.length + 20);
    expect(await reader.getText(`${folder}3`)).toBeNull();
    appendFileSync(pack, third.subarray(20));
    expect(await reader.getText(`${folder}3`)).toBe('three');
  });

  it('one reads from a folder in which it may not write', async () => {
    const { store, open, pack } = storeAt();
    await store.put(`${folder}1`, 'one');
    chmodSync(path.dirname(pack), 0o555);
    chmodSync(pack, 0o444);

    try {
      expect(await open().getText(`${folder}1`)).toBe('one');
    } finally {
      chmodSync(path.dirname(pack), 0o755);
    }
  });
});

describe('a folder of files', () => {
  /** As an earlier version kept them. */
  const folderOfFiles = async () => {
    const made = storeAt();
    const files = createFileObjectStore({ root: made.root });
    for (const at of [1, 3]) await files.put(`${folder}${at}.json`, `{"n":${at}}`);
    return { ...made, store: made.open(), files };
  };

  it('is read, and what is new is packed beside it', async () => {
    const { store, open, pack } = await folderOfFiles();

    const isFirst = [
      await store.putIfAbsent(`${folder}1.json`, '{"n":"other"}'),
      await store.putIfAbsent(`${folder}2.json`, '{"n":2}'),
    ];

    expect(isFirst).toEqual([false, true]);
    expect(await collect(open().list('runs/'))).toEqual([1, 2, 3].map((at) => `${folder}${at}.json`));
    expect(await open().getText(`${folder}1.json`)).toBe('{"n":1}');
    expect(readFileSync(pack, 'utf8').split('\n')).toHaveLength(2);
    expect(await collect(open().lines(`${folder}3.json`))).toEqual(['{"n":3}']);
    expect(Buffer.from((await open().getBytes(`${folder}3.json`))!).toString()).toBe('{"n":3}');
  });

  it('is written over, compared with and deleted from as a pack is', async () => {
    const { store, files } = await folderOfFiles();
    const tag = (await store.tag(`${folder}1.json`))!;

    const isReplaced = await store.putIfMatch(`${folder}1.json`, 'new', tag);
    await store.delete(`${folder}3.json`);

    expect(tag).toBe(await files.tag(`${folder}1.json`));
    expect(isReplaced).toBe(true);
    expect(await store.getText(`${folder}1.json`)).toBe('new');
    expect(await collect(store.list(folder))).toEqual([`${folder}1.json`]);
    await store.delete(`${folder}1.json`);
    expect(await collect(store.list(folder))).toEqual([]);
  });
});
