import path from 'node:path';
import { startMockProvider } from '../../mock/server.ts';
import { paint, print } from '../terminal.ts';
import { run } from './run.ts';

const example = path.join(import.meta.dirname, '..', '..', 'examples', 'small-return');

/** Names sort by time; a demo never continues an older one, since its mock has another port. */
const newFolder = (): string => path.join('runs', `demo-${new Date().toISOString().replace(/[:.]/g, '')}`);

/**
 * The main job on the example benchmark: real media, real HTTP, the real pipeline; only the models behind
 * the HTTP are simulated.
 */
export const demo = async (options: { out?: string }): Promise<number> => {
  const mock = await startMockProvider({ port: 0, scenario: path.join(example, 'scenario.json') });
  try {
    process.env.MOCK_BASE_URL = mock.url;
    print(paint('bold', 'turnsweep demo: the example ReTurn benchmark, end to end on this machine'));
    print('The three models and the judge are SIMULATED: scripted personas behind a fake provider on');
    print(`${mock.url}. Their scores say nothing about any real model; the media, the HTTP calls, the state`);
    print('machines, the scoring and the report are the real thing.\n');
    const code = await run(path.join(example, 'sweep.yaml'), {
      out: options.out ?? newFolder(),
      deployment: '',
    });
    print(
      '\nHow to read it: each ladder goes from the single-turn question to the same question after a harmless',
    );
    print(
      'history (reference) to the same question after a history that competes with it (conflict). One persona',
    );
    print('follows whatever clip came last, one forgets options it was given earlier, one pays attention.');
    print(
      'Next: copy the example sweep file, point a lane at your own endpoint, and `npx turnsweep run` it.',
    );
    return code;
  } finally {
    await mock.close();
  }
};
