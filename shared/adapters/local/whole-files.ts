import { linkSync, unlinkSync } from 'node:fs';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { errnoCode } from './storage-errors.ts';

/** Gives a finished file a second name; false, and nothing changes, if that name is taken. Atomic among processes. */
export const linkIfAbsent = (from: string, to: string): boolean => {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const code = errnoCode(error);
    if (code === 'EEXIST') return false;
    if (code !== 'EPERM') throw error;
    throw new TurnsweepError(errorNames.storageFailed, 'cannot link: EPERM', {
      where: to,
      remedy: 'choose a folder of your own on a file system with hard links',
      cause: error,
    });
  }
};

export const unlinkIfPresent = (path: string): void => {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errnoCode(error) !== 'ENOENT') throw error;
  }
};

/** Removes what a failed write left behind, if it can. */
export const discard = (temporary: string): void => {
  try {
    unlinkSync(temporary);
  } catch {
    // The error that led here is the one to report, and nobody sees a leftover.
  }
};
