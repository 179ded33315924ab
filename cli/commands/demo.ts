import path from 'node:path';
import { startMockProvider } from '../../mock/server.ts';
import { exitCodes } from '../exit-codes.ts';
import { paint, print } from '../terminal.ts';
import { run } from './run.ts';

const examples = path.join(import.meta.dirname, '..', '..', 'examples');

interface Demo {
  folder: string;
  title: string;
  howToRead: readonly string[];
  /** How its sweep is meant to end. */
  endsWith: number;
}

const demos: Readonly<Record<string, Demo>> = {
  return: {
    folder: path.join(examples, 'small-return'),
    title: 'the example ReTurn benchmark',
    howToRead: [
      'each ladder goes from the single-turn question to the same question after a harmless',
      'history (reference) to the same question after a history that competes with it (conflict). One persona',
      'follows whatever clip came last, one forgets options it was given earlier, one pays attention.',
    ],
    endsWith: exitCodes.complete,
  },
  voxmem: {
    folder: path.join(examples, 'small-voxmem'),
    title: 'the example VoxMem benchmark',
    howToRead: [
      'the same spoken questions after longer and longer histories. One persona hears words, voices',
      'and sounds but loses them as histories grow; one knows the words alone; the baseline always abstains. Three',
      'items of the first come to nothing on purpose: empty, turned away, cut off by a filter.',
    ],
    endsWith: exitCodes.incomplete,
  },
};

/** Benchmarks that have a demo; the first is shown unless another is asked for. */
export const demoNames: readonly string[] = Object.keys(demos);

/** Names sort by time; a demo never continues an older one, since its mock has another port. */
const newFolder = (): string => path.join('runs', `demo-${new Date().toISOString().replace(/[:.]/g, '')}`);

/**
 * The main job on an example benchmark: real media, real HTTP, the real pipeline; only the models behind
 * the HTTP are simulated.
 */
export const demo = async (name: string, options: { out?: string }): Promise<number> => {
  const { folder, title, howToRead, endsWith } = demos[name]!;
  const mock = await startMockProvider({ port: 0, scenario: path.join(folder, 'scenario.json') });
  try {
    process.env.MOCK_BASE_URL = mock.url;
    print(paint('bold', `turnsweep demo: ${title}, end to end on this machine`));
    print('The models and the judge are SIMULATED: scripted personas behind a fake provider on');
    print(`${mock.url}. Their scores say nothing about any real model; the media, the HTTP calls, the state`);
    print('machines, the scoring and the report are the real thing.\n');
    const code = await run(path.join(folder, 'sweep.yaml'), {
      out: options.out ?? newFolder(),
      deployment: '',
    });
    print(`\nHow to read it: ${howToRead.join('\n')}`);
    print(
      'Next: copy the example sweep file, point a lane at your own endpoint, and `npx turnsweep run` it.',
    );
    return code === endsWith ? exitCodes.complete : code;
  } finally {
    await mock.close();
  }
};
