import { describe, expect, it, onTestFinished } from 'vitest';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { collect } from '../support/collect.ts';

export interface ObjectStoreUnderTest {
  store: ObjectStore;
  dispose?(): Promise<void>;
}

/** What every ObjectStore does. `makeStore` gives an empty one for each test. */
export const objectStoreContract = (name: string, makeStore: () => Promise<ObjectStoreUnderTest>): void => {
  const emptyStore = async (): Promise<ObjectStore> => {
    const { store, dispose } = await makeStore();
    if (dispose) onTestFinished(dispose);
    return store;
  };

  describe(`ObjectStore contract: ${name}`, () => {
    it('has nothing under a key that was never written', async () => {
      const store = await emptyStore();

      const found = [await store.getText('a/b'), await store.getBytes('a/b'), await store.tag('a/b')];

      expect(found).toEqual([null, null, null]);
    });

    it('gives back text as written, whatever its characters', async () => {
      const store = await emptyStore();
      const text = 'Malmö\r\n漢字 \u{1f600}\u0000 end';

      await store.put('texts/one.txt', text);

      expect(await store.getText('texts/one.txt')).toBe(text);
      expect(Buffer.from((await store.getBytes('texts/one.txt'))!)).toEqual(Buffer.from(text, 'utf8'));
    });

    it('gives back bytes as written, small, empty and large', async () => {
      const store = await emptyStore();
      const everyByte = Uint8Array.from({ length: 256 }, (_, at) => at);
      const large = Buffer.alloc(6 * 1024 * 1024, everyByte);

      await store.put('bytes/small', everyByte);
      await store.put('bytes/empty', new Uint8Array());
      await store.put('bytes/large', large);

      expect([...(await store.getBytes('bytes/small'))!]).toEqual([...everyByte]);
      expect((await store.getBytes('bytes/empty'))!.length).toBe(0);
      expect(Buffer.compare((await store.getBytes('bytes/large'))!, large)).toBe(0);
    });

    it('replaces content on put', async () => {
      const store = await emptyStore();
      await store.put('k', 'a long first text');

      await store.put('k', 'second');

      expect(await store.getText('k')).toBe('second');
    });

    it('lets the first putIfAbsent win and leaves its content untouched', async () => {
      const store = await emptyStore();

      const first = await store.putIfAbsent('lanes/a/one.json', 'first');
      const second = await store.putIfAbsent('lanes/a/one.json', 'second');

      expect([first, second]).toEqual([true, false]);
      expect(await store.getText('lanes/a/one.json')).toBe('first');
    });

    it('has one winner among 20 putIfAbsent at once', async () => {
      const store = await emptyStore();
      const bodies = Array.from({ length: 20 }, (_, writer) => `writer ${writer} `.repeat(50));

      const won = await Promise.all(bodies.map((body) => store.putIfAbsent('race', body)));

      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await store.getText('race')).toBe(bodies[won.indexOf(true)]);
    });

    it('never mixes the contents of writers at once', async () => {
      const store = await emptyStore();
      const bodies = Array.from({ length: 20 }, (_, writer) => `${writer} `.repeat(1000 + writer * 10));

      await Promise.all(bodies.map((body) => store.put('race', body)));

      expect(bodies).toContain(await store.getText('race'));
    });

    it('writes with a tag only over the content that has it', async () => {
      const store = await emptyStore();
      await store.put('k', 'one');
      const tagOfOne = (await store.tag('k'))!;

      const replaced = await store.putIfMatch('k', 'two', tagOfOne);
      const replacedAgain = await store.putIfMatch('k', 'three', tagOfOne);

      expect([replaced, replacedAgain]).toEqual([true, false]);
      expect(await store.getText('k')).toBe('two');
      expect(await store.tag('k')).not.toBe(tagOfOne);
    });

    it('refuses putIfMatch where the object has gone', async () => {
      const store = await emptyStore();
      await store.put('k', 'one');
      const tag = (await store.tag('k'))!;
      await store.delete('k');

      const replaced = await store.putIfMatch('k', 'two', tag);

      expect(replaced).toBe(false);
      expect(await store.getText('k')).toBeNull();
    });

    it('loses no update of writers that read, compare and write', async () => {
      const store = await emptyStore();
      await store.put('count', '0');
      const increment = async (): Promise<void> => {
        for (;;) {
          const tag = (await store.tag('count'))!;
          const count = Number(await store.getText('count'));
          // The text may be newer than the tag; then the write fails, as it should.
          if (await store.putIfMatch('count', String(count + 1), tag)) return;
        }
      };

      await Promise.all(Array.from({ length: 10 }, increment));

      expect(await store.getText('count')).toBe('10');
    });

    it('deletes, also what is not there', async () => {
      const store = await emptyStore();
      await store.put('folder/k', 'text');

      await store.delete('folder/k');
      await store.delete('folder/k');
      await store.delete('nowhere/k');

      expect(await store.getText('folder/k')).toBeNull();
      expect(await store.putIfAbsent('folder/k', 'again')).toBe(true);
    });

    it('lists in the order of UTF-8 bytes, not of folders or UTF-16 units', async () => {
      const store = await emptyStore();
      // The bytes that decide: - 2d, . 2e, / 2f, b 62, é c3, ～ ef (U+FF5E), 𐀀 f0 (U+10000).
      const inOrder = ['p/a-b', 'p/a.b', 'p/a/x', 'p/a/y/z', 'p/b', 'p/é', 'p/\uff5e', 'p/\u{10000}'];
      for (const key of [...inOrder].reverse()) await store.put(key, key);
      await store.put('q', 'not under the prefix');

      const listed = await collect(store.list('p/'));

      expect(listed).toEqual(inOrder);
    });

    it('lists by any beginning of a key', async () => {
      const store = await emptyStore();
      for (const key of ['p/ab/1', 'p/ab/2', 'p/abc', 'p/b', 'pa']) await store.put(key, '');

      const [ofName, ofFolder, ofAll, ofNone] = await Promise.all(
        ['p/ab', 'p/ab/', '', 'p/x/'].map((prefix) => collect(store.list(prefix))),
      );

      expect(ofName).toEqual(['p/ab/1', 'p/ab/2', 'p/abc']);
      expect(ofFolder).toEqual(['p/ab/1', 'p/ab/2']);
      expect(ofAll).toEqual(['p/ab/1', 'p/ab/2', 'p/abc', 'p/b', 'pa']);
      expect(ofNone).toEqual([]);
    });

    it('lists more keys than one page of a bucket holds', async () => {
      const store = await emptyStore();
      const keys = Array.from({ length: 1205 }, (_, at) => `many/${String(at).padStart(5, '0')}`);
      for (let at = 0; at < keys.length; at += 50) {
        await Promise.all(keys.slice(at, at + 50).map((key) => store.put(key, 'x')));
      }

      const listed = await collect(store.list('many/'));

      expect(listed).toEqual(keys);
    });

    it('keeps keys of any script apart', async () => {
      const store = await emptyStore();
      const keys = ['ключ/файл', '鍵/ファイル', 'key with space/\u{1f600}.json', 'a+b/c%20d', "it's/#1?"];

      for (const key of keys) await store.put(key, `content of ${key}`);

      for (const key of keys) expect(await store.getText(key)).toBe(`content of ${key}`);
      expect(new Set(await collect(store.list('')))).toEqual(new Set(keys));
    });

    it.each([
      ['a last line without an end', 'one\ntwo', ['one', 'two']],
      ['a last line with an end', 'one\ntwo\n', ['one', 'two']],
      ['empty lines', '\n\none\n\n', ['', '', 'one', '']],
      ['a carriage return, which stays', 'one\r\ntwo\r\n', ['one\r', 'two\r']],
      ['nothing', '', []],
      ['other separators inside a line', 'a\u2028b\u0085c\vd\n', ['a\u2028b\u0085c\vd']],
    ])('streams lines: %s', async (_, text, expected) => {
      const store = await emptyStore();
      await store.put('lines.txt', text);

      const lines = await collect(store.lines('lines.txt'));

      expect(lines).toEqual(expected);
    });

    it('throws ObjectMissing for the lines of no object', async () => {
      const store = await emptyStore();

      const reading = collect(store.lines('nothing.jsonl'));

      await expect(reading).rejects.toMatchObject({ name: 'ObjectMissing' });
    });

    it('keeps long lines and characters that lie across chunks whole', async () => {
      const store = await emptyStore();
      // 3 bytes a character: no power of two divides the lines, so that chunks cut characters.
      const expected = ['x', '漢'.repeat(1_000_000), '', `y${'\u{1f600}é'.repeat(200_000)}`, 'end'];
      await store.put('long.txt', expected.join('\n'));

      const lines = await collect(store.lines('long.txt'));

      expect(lines.map((line) => line.length)).toEqual(expected.map((line) => line.length));
      expect(lines.every((line, at) => line === expected[at])).toBe(true);
    });

    it('streams 200,000 lines in and out', async () => {
      const store = await emptyStore();
      const count = 200_000;
      async function* rows() {
        for (let row = 0; row < count; row += 1) yield JSON.stringify({ row, text: 'ü'.repeat(row % 100) });
      }

      const written = await store.putLines('rows.jsonl', rows());
      let [read, sumOfRows, sumOfLengths] = [0, 0, 0];
      for await (const line of store.lines('rows.jsonl')) {
        const { row, text } = JSON.parse(line);
        read += 1;
        sumOfRows += row;
        sumOfLengths += text.length;
      }

      expect([written, read]).toEqual([count, count]);
      expect(sumOfRows).toBe((count * (count - 1)) / 2);
      expect(sumOfLengths).toBe((count / 100) * (99 * 50));
    });

    it('lets a reader of lines stop early', async () => {
      const store = await emptyStore();
      await store.putLines(
        'rows.txt',
        Array.from({ length: 100_000 }, (_, at) => `row ${at}`),
      );

      const seen: string[] = [];
      for await (const line of store.lines('rows.txt')) {
        seen.push(line);
        if (seen.length === 3) break;
      }

      expect(seen).toEqual(['row 0', 'row 1', 'row 2']);
    });

    it('replaces an object by putLines, also by no lines at all', async () => {
      const store = await emptyStore();
      await store.put('rows.txt', 'before');

      const counts = [await store.putLines('rows.txt', ['a', 'b']), await store.putLines('none.txt', [])];

      expect(counts).toEqual([2, 0]);
      expect(await store.getText('rows.txt')).toBe('a\nb\n');
      expect(await store.getText('none.txt')).toBe('');
    });

    it('leaves everything as it was when the source of putLines fails', async () => {
      const store = await emptyStore();
      await store.put('kept.txt', 'before');
      function* failing() {
        yield 'first';
        throw new Error('the source broke');
      }

      const over = store.putLines('kept.txt', failing());
      await expect(over).rejects.toThrow('the source broke');
      const anew = store.putLines('new.txt', failing());
      await expect(anew).rejects.toThrow('the source broke');

      expect(await store.getText('kept.txt')).toBe('before');
      expect(await collect(store.list(''))).toEqual(['kept.txt']);
    });

    it('shows an object of putLines only when it is complete', async () => {
      const store = await emptyStore();
      const seenMeanwhile: (string | null)[] = [];
      async function* watched() {
        for (let row = 0; row < 3; row += 1) {
          yield 'z'.repeat(300_000);
          seenMeanwhile.push(await store.getText('slow.txt'));
        }
      }

      await store.putLines('slow.txt', watched());

      expect(seenMeanwhile).toEqual([null, null, null]);
      expect((await store.getText('slow.txt'))!.length).toBe(3 * 300_001);
    });
  });
};
