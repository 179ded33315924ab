import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lockRunFolder } from '../../../../shared/adapters/local/run-folder-lock.ts';
import { sourceUrl, startScript } from '../../../support/child-script.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

const lockFile = (directory: string) => path.join(directory, '.turnsweep-lock');
const lock = (directory: string) => {
  const taken = lockRunFolder(directory);
  onTestFinished(() => taken.release());
  return taken;
};
const importLock = `import { lockRunFolder } from '${sourceUrl('shared/adapters/local/run-folder-lock.ts')}';`;
const holdingChild = (directory: string) =>
  startScript(`
    ${importLock}
    lockRunFolder(${JSON.stringify(directory)});
    console.log('locked');
    setInterval(() => {}, 1000);
  `);
const pidOfDeadProcess = async (): Promise<number> => {
  const child = startScript('');
  await child.ended;
  return child.process.pid!;
};
const leaveLock = (directory: string, holder: Record<string, unknown> | string): void =>
  writeFileSync(lockFile(directory), typeof holder === 'string' ? holder : JSON.stringify(holder));

describe('the lock of a run folder', () => {
  it('makes the folder, and leaves nothing in it once released', () => {
    const directory = path.join(temporaryDirectory(), 'new/run');

    const taken = lockRunFolder(directory);
    const whileTaken = readdirSync(directory);
    taken.release();
    taken.release();

    expect(whileTaken).toEqual(['.turnsweep-lock']);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('keeps another process out and names who holds it', async () => {
    const directory = temporaryDirectory();
    const child = holdingChild(directory);
    await child.says('locked');

    expect(() => lockRunFolder(directory)).toThrow(
      expect.objectContaining({
        name: 'RunFolderBusy',
        message: `process ${child.process.pid} on ${hostname()} is at work in this folder (${directory}); wait for it or stop it, then run again`,
      }),
    );
    expect(readdirSync(directory)).toEqual(['.turnsweep-lock']);
  });

  it('keeps a second run of the same process out', () => {
    const directory = temporaryDirectory();
    lock(directory);

    expect(() => lockRunFolder(directory)).toThrow(`process ${process.pid}`);
  });

  it('is taken over from a killed process', async () => {
    const directory = temporaryDirectory();
    const child = holdingChild(directory);
    await child.says('locked');
    child.process.kill('SIGKILL');
    await child.ended;

    lock(directory);

    expect(JSON.parse(readFileSync(lockFile(directory), 'utf8')).pid).toBe(process.pid);
    expect(readdirSync(directory)).toEqual(['.turnsweep-lock']);
  });

  it.runIf(existsSync('/proc/self/stat'))('is taken over when another process has the number by now', () => {
    const directory = temporaryDirectory();
    leaveLock(directory, { pid: process.pid, host: hostname(), started: 'another boot/12345' });

    lock(directory);

    expect(JSON.parse(readFileSync(lockFile(directory), 'utf8')).started).not.toBe('another boot/12345');
  });

  it.each(['', '{"pid":', '[]', 'null', '{"pid":"x","host":1}'])('is taken over when it says %j', (text) => {
    const directory = temporaryDirectory();
    leaveLock(directory, text);

    lock(directory);

    expect(JSON.parse(readFileSync(lockFile(directory), 'utf8')).pid).toBe(process.pid);
  });

  it('of another host counts while there are signs of life, and not after', () => {
    const directory = temporaryDirectory();
    leaveLock(directory, { pid: 1, host: 'elsewhere.example', started: null });

    const whileAlive = () => lockRunFolder(directory);
    expect(whileAlive).toThrow('process 1 on elsewhere.example is at work');
    const longAgo = new Date(Date.now() - 61_000);
    utimesSync(lockFile(directory), longAgo, longAgo);
    lock(directory);

    expect(JSON.parse(readFileSync(lockFile(directory), 'utf8')).host).toBe(hostname());
  });

  it('leaves alone what somebody else holds by now', () => {
    const directory = temporaryDirectory();
    const taken = lockRunFolder(directory);
    leaveLock(directory, { pid: 1, host: 'elsewhere.example', started: null });

    taken.release();

    expect(JSON.parse(readFileSync(lockFile(directory), 'utf8')).host).toBe('elsewhere.example');
  });

  it('goes to one of several that take it over at once, also after one died doing so', async () => {
    const pid = await pidOfDeadProcess();
    const dead = { pid, host: hostname(), started: null };
    // Each takes the lock as often as it can and holds it for a moment, in which it must be alone.
    const script = (directory: string, rounds: number) => `
      ${importLock}
      import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
      let taken = 0;
      for (let round = 0; round < ${rounds}; round += 1) {
        const directory = ${JSON.stringify(directory)} + '/' + round;
        try {
          lockRunFolder(directory);
        } catch (error) {
          if (error.name === 'RunFolderBusy') continue;
          throw error;
        }
        taken += 1;
        mkdirSync(directory + '/alone');
      }
      console.log('taken ' + taken);
      // Alive until all have tried: a lock of a process that ended is free.
      process.stdout.write('done\\n');
      setInterval(() => {}, 1000);
    `;
    const directory = temporaryDirectory();
    const rounds = 100;
    const { createHash } = await import('node:crypto');
    for (let round = 0; round < rounds; round += 1) {
      const folder = path.join(directory, String(round));
      mkdirSync(folder);
      leaveLock(folder, dead);
      if (round % 2 === 0) continue;
      // The claim of a process that died while it took the lock over.
      const hash = createHash('sha256').update(JSON.stringify(dead)).digest('hex').slice(0, 16);
      writeFileSync(`${lockFile(folder)}-${hash}`, JSON.stringify({ ...dead, nonce: 'claim' }));
    }

    const children = Array.from({ length: 4 }, () => startScript(script(directory, rounds)));
    await Promise.all(children.map((child) => child.says('done')));

    // A second holder would have failed to make the folder `alone`.
    const taken = children.map((child) => Number(/taken (\d+)/.exec(child.output())![1]));
    expect(taken.reduce((sum, one) => sum + one)).toBe(rounds);
    const left = Array.from({ length: rounds }, (_, round) =>
      readdirSync(path.join(directory, String(round))),
    );
    expect(left.every((names) => names.sort().join() === '.turnsweep-lock,alone')).toBe(true);
  });

  it('passes from one process to the next without ever being held twice', async () => {
    const directory = temporaryDirectory();
    const script = `
      ${importLock}
      import { mkdirSync, rmdirSync } from 'node:fs';
      const directory = ${JSON.stringify(directory)};
      for (let taken = 0; taken < 100; ) {
        let held;
        try {
          held = lockRunFolder(directory);
        } catch (error) {
          if (error.name !== 'RunFolderBusy') throw error;
          continue;
        }
        mkdirSync(directory + '/alone');
        rmdirSync(directory + '/alone');
        held.release();
        taken += 1;
      }
    `;

    const children = Array.from({ length: 3 }, () => startScript(script));
    const ends = await Promise.all(children.map((child) => child.ended));

    expect(ends, children.map((child) => child.output()).join('\n')).toEqual([0, 0, 0]);
    expect(readdirSync(directory)).toEqual([]);
  });
});
