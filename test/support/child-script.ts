import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

const projectRoot = new URL('../../', import.meta.url);

/** Address of a source file for an `import` in a child's script. */
export const sourceUrl = (file: string): string => new URL(file, projectRoot).href;

export interface ChildScript {
  process: ChildProcess;
  /** Resolves when the child has written a line that contains `text`; throws if it ends before that. */
  says(text: string): Promise<void>;
  /** All that it has written so far, errors included. */
  output(): string;
  /** Its exit code, or the signal that ended it. */
  ended: Promise<number | string>;
}

/** Runs a module's text in another process of the same Node. Killed, if need be, when the test ends. */
export const startScript = (script: string, nodeOptions: readonly string[] = []): ChildScript => {
  const child = spawn(process.execPath, [...nodeOptions, '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | string);
  return {
    process: child,
    async says(text) {
      while (!output.includes(text)) {
        const next = await Promise.race([once(child.stdout, 'data'), ended]);
        if (!Array.isArray(next) && !output.includes(text)) throw new Error(`the child ended: ${output}`);
      }
    },
    output: () => output,
    ended,
  };
};
