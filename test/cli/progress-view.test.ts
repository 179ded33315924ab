import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { showProgress } from '../../cli/progress-view.ts';
import { createProgress } from '../../local/progress.ts';

const stage = 'generate-turns';
const error = new TypeError('no such\u001b[2J\nthing');

/** Everything that the view writes, in order, with the stream that it is for. */
const written: [stream: 'out' | 'err', text: string][] = [];
const texts = (stream: 'out' | 'err') => written.filter(([name]) => name === stream).map(([, text]) => text);

const viewOf = (style: 'bars' | 'lines' | 'json') => {
  const progress = createProgress([{ lane: 'a', total: 3, done: 0, excluded: 0, openViews: new Set() }]);
  return { progress, view: showProgress(progress, style) };
};

beforeEach(() => {
  vi.useFakeTimers();
  written.length = 0;
  for (const [name, stream] of [['out', process.stdout] as const, ['err', process.stderr] as const]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => {
      written.push([name, String(text)]);
      return true;
    });
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('an exception of a stage', () => {
  it('is told at once in a pipe, each once, and again when its message is given up', () => {
    const { progress, view } = viewOf('lines');

    for (const [tries, againSeconds] of [
      [1, 1],
      [2, 2],
      [3, null],
    ] as const)
      progress.fault({ stage, error, tries, againSeconds });
    progress.fault({ stage: 'judge-answers', error: 'odd', tries: 1, againSeconds: 1 });
    const atOnce = texts('err');
    view.stop();
    progress.fault({ stage, error: 'late', tries: 1, againSeconds: 1 });

    expect(atOnce).toEqual([
      'warning: generate-turns: no such thing (a fault of turnsweep itself; --debug shows where); tried again in 1 s\n',
      'warning: generate-turns: no such thing (a fault of turnsweep itself; --debug shows where); given up after 3 tries\n',
      'warning: judge-answers: odd (a fault of turnsweep itself; --debug shows where); tried again in 1 s\n',
    ]);
    expect(texts('err')).toEqual(atOnce);
    expect(texts('out').at(-1)).toBe('4 deliveries failed\n');
  });

  it('that is different every time fills no screen: the number says how many there are', () => {
    const { progress, view } = viewOf('lines');

    for (let view = 0; view < 500; view += 1)
      progress.fault({ stage, error: new Error(`view ${view}`), tries: 1, againSeconds: 1 });
    view.stop();

    expect(texts('err')).toHaveLength(20);
    expect(texts('out').at(-1)).toBe('500 deliveries failed\n');
  });

  it('takes the place of the bars, which come back below it', () => {
    const { progress, view } = viewOf('bars');
    const before = written.length;

    progress.fault({ stage, error: 'odd', tries: 1, againSeconds: 1 });
    const [erased, told, drawn] = written.slice(before);
    view.stop();

    expect(erased).toEqual(['out', '\u001b[1A\u001b[J']);
    expect(told).toEqual(['err', expect.stringContaining('generate-turns: odd')]);
    expect(drawn![0]).toBe('out');
    expect(stripVTControlCharacters(drawn![1])).toMatch(/^a .*0\/3[^\n]*\n1 deliveries failed\n$/);
  });

  it('is an event for machines, every one of them', () => {
    const { progress, view } = viewOf('json');

    progress.fault({ stage, error, tries: 7, againSeconds: 60 });
    progress.fault({ stage, error, tries: 8, againSeconds: null });
    const events = texts('out').map((line) => JSON.parse(line));
    view.stop();

    const message = error.message;
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(events).toEqual([
      { event: 'fault', time, stage, message, tries: 7, againSeconds: 60 },
      { event: 'fault', time, stage, message, tries: 8, againSeconds: null },
    ]);
    expect(JSON.parse(texts('out').at(-1)!)).toMatchObject({ event: 'progress', faults: 2 });
    expect(texts('err')).toEqual([]);
  });
});
