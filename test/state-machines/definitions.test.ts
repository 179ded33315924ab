import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import aslValidator from 'asl-validator';
import { describe, expect, it } from 'vitest';
import { errorNames } from '../../shared/errors.ts';
import { scopes } from '../../shared/scopes.ts';

const directory = path.join(import.meta.dirname, '..', '..', 'state-machines');
const files = readdirSync(directory).filter((name) => name.endsWith('.asl.json'));
const textOf = (name: string): string => readFileSync(path.join(directory, name), 'utf8');

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

  it('catch and retry only errors that exist', () => {
    const named = collect((object) =>
      Array.isArray(object.ErrorEquals) ? (object.ErrorEquals as string[]) : [],
    );
    const known = new Set<string>(Object.values(errorNames));
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !/^(States|Lambda)\./.test(name) && !known.has(name))).toEqual([]);
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
