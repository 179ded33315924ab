import { expect, it } from 'vitest';
import { createStopLane } from '../../functions/stop-lane/stop-lane.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { keys } from '../../shared/keys.ts';
import { temporaryFolder } from '../support/command-line.ts';

const stoppedWith = async (error: unknown) => {
  const store = createFileObjectStore({ root: temporaryFolder() });
  const stopLane = createStopLane({ store, clock: { now: () => Date.UTC(2026, 10, 30) } });
  await stopLane({ run: 'r', lane: 'l', error });
  return JSON.parse((await store.getText(keys.lane.stopped('r', 'l')))!);
};

it.each([
  [
    'what Batch says of a failed job',
    {
      Error: 'States.TaskFailed',
      Cause: JSON.stringify({
        JobName: 'lane-l-r',
        Status: 'FAILED',
        StatusReason: 'Essential container in task exited',
        Container: { ExitCode: 1, LogStreamName: 'lane-l/default/0a' },
      }),
    },
    'Essential container in task exited; exit code 1; log stream lane-l/default/0a',
  ],
  ['text as it is', { Error: 'Batch.ClientException', Cause: 'JobQueue not found' }, 'JobQueue not found'],
  ['the name of an error without a cause', { Error: 'States.Timeout' }, 'States.Timeout'],
  ['a cause that says nothing known', { Error: 'X', Cause: '{"a":1}' }, '{"a":1}'],
])('a stopped lane tells people %s', async (_, error, message) => {
  expect(await stoppedWith(error)).toEqual({
    v: 1,
    kind: 'workers_failed',
    message,
    timeUtc: '2026-11-30T00:00:00.000Z',
  });
});
