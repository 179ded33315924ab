import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import aslValidator from 'asl-validator';
import { describe, expect, it } from 'vitest';
import { errorNames, handledErrors } from '../../shared/errors.ts';
import { scopes } from '../../shared/scopes.ts';

const directory = path.join(import.meta.dirname, '..', '..', 'state-machines');
const files = readdirSync(directory).filter((name) => name.endsWith('.asl.json'));
const textOf = (name: string): string => readFileSync(path.join(directory, name), 'utf8');

/** Text of all code that may meet a state machine. */
const sources = (): string =>
  ['shared', 'functions', 'local', 'workers', 'cli']
    .map((folder) => path.join(directory, '..', folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && entry.name !== 'errors.ts')
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const visit = (value: Json, seen: (object: { [key: string]: Json }) => void): void => {
  if (Array.isArray(value)) for (const member of value) visit(member, seen);
  else if (value !== null && typeof value === 'object') {
    seen(value);
    for (const member of Object.values(value)) visit(member, seen);
  }
};

const collect = <Found>(pick: (object: { [key: string]: Json }) => Found[]): Found[] => {
  const found: Found[] = [];
  for (const name of files) visit(JSON.parse(textOf(name)), (object) => found.push(...pick(object)));
  return found;
};

describe('state machine files', () => {
  it('are the three machines of the architecture', () => {
    expect(files.sort()).toEqual(['judging.asl.json', 'sweep.asl.json', 'view-group.asl.json']);
  });

  it.each(files)('%s passes an independent linter', (name) => {
    const { isValid, errorsText } = aslValidator(JSON.parse(textOf(name)), { checkPaths: true });
    expect(errorsText('\n')).toBe('');
    expect(isValid).toBe(true);
  });

  it('catch and retry the errors that are theirs to handle, all of them and no others', () => {
    const listed = collect((object) =>
      Array.isArray(object.ErrorEquals) ? (object.ErrorEquals as string[]) : [],
    );
    const ours = new Set(listed.filter((name) => !/^(States|Lambda)\./.test(name)));

    expect([...ours].toSorted()).toEqual(Object.values(handledErrors).toSorted());
  });

  it('are never handed an error that nobody in them handles', () => {
    // Adapters hand on the `error` that they are given.
    const ofTokens = Array.from(
      sources().matchAll(/\.fail\(\s*\w+,\s*([^,]+),/g),
      (match) => match[1]!,
    ).filter((name) => name !== 'error');
    const ofStates = collect((object) => (object.Type === 'Fail' ? [object.Error as string] : []));

    expect(ofTokens.length).toBeGreaterThan(1);
    const handled = Object.keys(handledErrors).map((name) => `errorNames.${name}`);
    expect(ofTokens.filter((name) => !handled.includes(name))).toEqual([]);
    expect(ofStates.filter((name) => !(Object.values(handledErrors) as string[]).includes(name))).toEqual([]);
  });

  it('and stages have no error name that nothing throws', () => {
    const used = new Set(Array.from(sources().matchAll(/errorNames\.(\w+)/g), (match) => match[1]));
    const ofStates = collect((object) => (object.Type === 'Fail' ? [object.Error as string] : []));

    const unused = Object.entries(errorNames).filter(
      ([key, name]) => !used.has(key) && !ofStates.includes(name),
    );
    expect(unused).toEqual([]);
  });

  it('list the time-out wherever they list a missed heartbeat', () => {
    const lists = collect((object) =>
      Array.isArray(object.ErrorEquals) ? [object.ErrorEquals as string[]] : [],
    );
    for (const list of lists) {
      expect(list.includes('States.HeartbeatTimeout')).toBe(list.includes('States.Timeout'));
    }
  });

  it('bound every task in time and jitter every retry', () => {
    const tasks = collect((object) => (object.Type === 'Task' ? [object] : []));
    expect(tasks.length).toBeGreaterThan(7);
    expect(tasks.filter((task) => task.TimeoutSeconds === undefined)).toEqual([]);
    const retries = collect((object) =>
      Array.isArray(object.Retry) ? (object.Retry as { [key: string]: Json }[]) : [],
    );
    expect(
      retries.filter((retry) => retry.JitterStrategy !== 'FULL' || retry.MaxDelaySeconds === undefined),
    ).toEqual([]);
  });

  it('call every stage by the name of its folder', () => {
    const functions = collect((object) =>
      typeof object.FunctionName === 'string' ? [object.FunctionName] : [],
    );
    const stageOf = (name: string) =>
      name
        .slice(2, -'Function}'.length)
        .replace(/([a-z])([A-Z])/g, '$1-$2')
        .toLowerCase();
    const queued = ['generate-turns', 'judge-answers'];
    const scheduled = ['start-sweep'];
    const called = [...new Set(functions.map(stageOf)), ...queued, ...scheduled];
    expect(called.sort()).toEqual(Object.keys(scopes).sort());
  });
});
