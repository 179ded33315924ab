import type { ServerResponse } from 'node:http';

/** One step of what a server sends; seconds are those of the fake, which a test may run faster. */
export type Step =
  | { head: { status: number; headers: Record<string, string> } }
  | { send: Buffer }
  /** Each byte in a write of its own. */
  | { sendEach: Buffer }
  /** The same bytes again and again until so many are sent or the caller is gone. */
  | { flood: Buffer; bytes: number }
  | { waitSeconds: number }
  | 'end'
  /** Closes the connection regularly, whatever was promised. */
  | 'close'
  | 'reset'
  /** Sends nothing more and keeps the connection. */
  | 'hang';

const written = (response: ServerResponse, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    // A caller that goes while its buffer is full never drains.
    response.once('close', resolve);
    response.write(bytes, () => {
      response.off('close', resolve);
      resolve();
    });
  });

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Plays the steps until the last one or until the caller is gone, and tells which. */
export const playSteps = async (
  steps: readonly Step[],
  response: ServerResponse,
  sleepSeconds: (seconds: number) => Promise<void>,
): Promise<'played' | 'caller_gone'> => {
  for (const [at, step] of steps.entries()) {
    if (response.destroyed) return 'caller_gone';
    if (step === 'hang') {
      await new Promise((resolve) => response.once('close', resolve));
      return 'caller_gone';
    }
    if (step === 'reset') response.socket?.resetAndDestroy();
    else if (step === 'close') response.socket?.end();
    else if (step === 'end') {
      if (!response.writableEnded) response.end();
    } else if ('head' in step) response.writeHead(step.head.status, step.head.headers);
    else if ('waitSeconds' in step) await sleepSeconds(step.waitSeconds);
    else if ('sendEach' in step) {
      response.socket?.setNoDelay(true);
      for (let index = 0; index < step.sendEach.length && !response.destroyed; index += 1) {
        await written(response, step.sendEach.subarray(index, index + 1));
        await nextTurn();
      }
    } else if ('flood' in step) {
      for (let sent = 0; sent < step.bytes && !response.destroyed; sent += step.flood.length) {
        await written(response, step.flood);
      }
    } else if (steps[at + 1] === 'end') response.end(step.send);
    else await written(response, step.send);
  }
  return 'played';
};
