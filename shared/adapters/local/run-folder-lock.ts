import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { errnoCode, storageFailed } from './storage-errors.ts';
import { discard, linkIfAbsent, unlinkIfPresent } from './whole-files.ts';

export interface RunFolderLock {
  /** Gives the folder free; again does nothing. */
  release(): void;
}

interface Holder {
  pid: number;
  host: string;
  /** When the process began, in a form that no other process with its number shares; null if unknown. */
  started: string | null;
}

const lockName = '.turnsweep-lock';
/** The holder gives a sign of life this often, for those who cannot look at its process. */
const signOfLifeSeconds = 15;
/** A holder on another host is taken for dead after so long without one. */
const silenceSeconds = 60;

/**
 * Keeps a second process out of a run's folder (made if need be). A lock whose process is dead is taken
 * over: on this host if its number is free, a zombie's or another process's by now; of another host, where
 * nobody can look, after 60 seconds without a sign of life. Of several that take over, one gets it.
 *
 * Throws `RunFolderBusy`, naming the process, or `StorageFailed`.
 */
export const lockRunFolder = (directory: string): RunFolderLock => {
  const path = `${directory}/${lockName}`;
  const me = JSON.stringify({ ...identify(process.pid), nonce: randomUUID() });
  try {
    mkdirSync(directory, { recursive: true });
    acquire(path, me, directory);
  } catch (error) {
    throw storageFailed(error, 'lock the run folder', path);
  }
  const signOfLife = setInterval(() => giveSignOfLife(path, me), signOfLifeSeconds * 1000);
  signOfLife.unref();
  return {
    release() {
      clearInterval(signOfLife);
      try {
        if (readIfPresent(path) === me) unlinkIfPresent(path);
      } catch (error) {
        throw storageFailed(error, 'unlock the run folder', path);
      }
    },
  };
};

/**
 * Makes `path` a file that says `me`. Who finds a dead holder there must first hold the claim on that very
 * holder (a lock of its own, so that a claimer may die too); then nobody else can be changing the file, and
 * a rename replaces the dead holder at once. A claim won too late shows in the file having changed.
 */
const acquire = (path: string, me: string, directory: string): void => {
  const temporary = `${path}-${randomUUID()}.tmp`;
  writeFileSync(temporary, me, { flag: 'wx' });
  try {
    while (!linkIfAbsent(temporary, path)) {
      const found = readIfPresent(path);
      if (found === null) continue;
      if (isAlive(found, path, temporary)) throw busy(found, directory);
      const claim = `${path}-${createHash('sha256').update(found).digest('hex').slice(0, 16)}`;
      acquire(claim, me, directory);
      try {
        if (readIfPresent(path) !== found) continue;
        renameSync(temporary, path);
        return;
      } finally {
        unlinkIfPresent(claim);
      }
    }
  } finally {
    discard(temporary);
  }
};

const readIfPresent = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return null;
    throw error;
  }
};

const parse = (text: string): Holder | null => {
  try {
    const { pid, host, started } = JSON.parse(text);
    return Number.isInteger(pid) && typeof host === 'string' ? { pid, host, started } : null;
  } catch {
    // Cut short by a power failure: nobody holds it.
    return null;
  }
};

const isAlive = (text: string, path: string, temporary: string): boolean => {
  const holder = parse(text);
  if (holder === null) return false;
  if (holder.host !== hostname()) {
    // Both times are of the disk's own clock.
    const [beat, now] = [statSync(path, { throwIfNoEntry: false }), statSync(temporary)];
    return beat !== undefined && now.mtimeMs - beat.mtimeMs < silenceSeconds * 1000;
  }
  if (!exists(holder.pid)) return false;
  const { started } = identify(holder.pid);
  return started === null || holder.started === null || started === holder.started;
};

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoCode(error) === 'EPERM';
  }
};

const identify = (pid: number): Holder => {
  const holder = { pid, host: hostname() };
  const boot = readIfReadable('/proc/sys/kernel/random/boot_id');
  const stat = readIfReadable(`/proc/${pid}/stat`);
  if (boot === null || stat === null) return { ...holder, started: null };
  // proc_pid_stat(5): the second field, a name in parentheses, may hold anything; 3 is the state, 22 the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const isDead = fields[0] === 'Z' || fields[0] === 'X';
  return { ...holder, started: isDead ? 'dead' : `${boot.trim()}/${fields[19]}` };
};

const readIfReadable = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not Linux, or the process has just ended.
    return null;
  }
};

const giveSignOfLife = (path: string, me: string): void => {
  try {
    const now = new Date();
    if (readIfPresent(path) === me) utimesSync(path, now, now);
  } catch {
    // The next write to the folder reports what is wrong with the disk.
  }
};

const busy = (text: string, directory: string): TurnsweepError => {
  const holder = parse(text);
  return new TurnsweepError(
    errorNames.runFolderBusy,
    `process ${holder?.pid} on ${holder?.host} is at work in this folder`,
    { where: directory, remedy: 'wait for it or stop it, then run again' },
  );
};
