import { describe, expect, it } from 'vitest';
import { createFileObjectStore } from '../../../../shared/adapters/local/file-object-store.ts';
import { type KeyScopes, scopeObjectStore } from '../../../../shared/adapters/local/scoped-object-store.ts';
import { objectStoreContract } from '../../../contracts/object-store.contract.ts';
import { collect } from '../../../support/collect.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

const everything = [''];

objectStoreContract('files, scoped to everything', async () => ({
  store: scopeObjectStore(createFileObjectStore({ root: temporaryDirectory() }), {
    read: everything,
    write: everything,
  }),
}));

const generateTurns: KeyScopes = {
  read: ['benchmarks/*/inputs/', 'runs/*/lanes/*/requests/', 'runs/*/contract.json'],
  write: ['runs/*/lanes/*/requests/'],
};

const scopedStore = async (scopes: KeyScopes) => {
  const whole = createFileObjectStore({ root: temporaryDirectory() });
  for (const key of [
    'benchmarks/return/inputs/a.jsonl',
    'benchmarks/return/answers/a.jsonl',
    'runs/quick/contract.json',
    'runs/quick/lanes/qwen/requests/1.json',
    'reviews/judge/1.json',
  ]) {
    await whole.put(key, `content of ${key}`);
  }
  return { whole, store: scopeObjectStore(whole, scopes) };
};

describe('a scoped store', () => {
  it('reads and writes what its scope names', async () => {
    const { store, whole } = await scopedStore(generateTurns);

    const wrote = await store.putIfAbsent('runs/quick/lanes/qwen/requests/2.json', 'new');

    expect(wrote).toBe(true);
    expect(await whole.getText('runs/quick/lanes/qwen/requests/2.json')).toBe('new');
    expect(await store.getText('runs/quick/contract.json')).toBe('content of runs/quick/contract.json');
    expect(await collect(store.list('runs/quick/lanes/qwen/requests/'))).toEqual([
      'runs/quick/lanes/qwen/requests/1.json',
      'runs/quick/lanes/qwen/requests/2.json',
    ]);
  });

  it.each([
    ['answers', 'benchmarks/return/answers/a.jsonl'],
    ['reviews', 'reviews/judge/1.json'],
    ['a star that would have to stand for two segments', 'benchmarks/x/y/inputs/a.jsonl'],
    ['a star that would have to stand for nothing', 'benchmarks//inputs/a.jsonl'],
    ['a key that only contains a permitted one', 'x/benchmarks/return/inputs/a.jsonl'],
    ['a name that only a dot as wildcard would match', 'runs/quick/contract-json'],
  ])('refuses every way to read %s', async (_, key) => {
    const { store } = await scopedStore(generateTurns);

    const attempts = [
      store.getText(key),
      store.getBytes(key),
      store.tag(key),
      (async () => collect(store.lines(key)))(),
      (async () => collect(store.list(key)))(),
    ];

    for (const attempt of attempts) {
      await expect(attempt).rejects.toMatchObject({ name: 'AccessDenied', where: key });
    }
  });

  it.each(['benchmarks/return/inputs/a.jsonl', 'runs/quick/contract.json', 'reviews/judge/2.json'])(
    'refuses every way to write %s',
    async (key) => {
      const { store, whole } = await scopedStore(generateTurns);
      const before = await whole.getText(key);

      const attempts = [
        store.put(key, 'x'),
        store.putIfAbsent(key, 'x'),
        store.putIfMatch(key, 'x', 'tag'),
        store.putLines(key, ['x']),
        store.delete(key),
      ];

      for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ name: 'AccessDenied' });
      expect(await whole.getText(key)).toBe(before);
    },
  );

  it.each(['', 'runs/', 'runs/quick/', 'benchmarks/return/in'])(
    'refuses to list %j, which reaches beyond the scope',
    async (prefix) => {
      const { store } = await scopedStore(generateTurns);

      const listing = (async () => collect(store.list(prefix)))();

      await expect(listing).rejects.toMatchObject({ name: 'AccessDenied' });
    },
  );

  it('cannot be left by way of the folder above', async () => {
    const { store } = await scopedStore(generateTurns);

    const reading = store.getText('benchmarks/return/inputs/../answers/a.jsonl');

    await expect(reading).rejects.toMatchObject({ name: 'AccessDenied' });
  });

  it('permits nothing where its scope is empty', async () => {
    const { store } = await scopedStore({ read: [], write: [] });

    await expect(store.getText('runs/quick/contract.json')).rejects.toMatchObject({ name: 'AccessDenied' });
    await expect(store.put('x', '')).rejects.toMatchObject({ name: 'AccessDenied' });
  });
});
