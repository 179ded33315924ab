import { errorNames, TurnsweepError } from '../../errors.ts';

const remedies: Readonly<Record<string, string>> = {
  EBUSY: 'close the program that uses it and run again',
  EDQUOT: 'free disk space or raise the disk quota and run again',
  EIO: 'check the disk, then run again',
  EISDIR: 'a folder stands where a file is needed: remove or rename it',
  EMFILE: 'raise the limit of open files (ulimit -n) and run again',
  ENAMETOOLONG: 'use shorter names',
  ENFILE: 'close other programs, too many files are open on this machine, and run again',
  ENOSPC: 'free disk space and run again',
  ENOTDIR: 'a file stands where a folder is needed: remove or rename it',
  EROFS: 'choose a folder on a writable disk',
  ENOTSUP: 'choose a folder on a file system with hard links',
  EOPNOTSUPP: 'choose a folder on a file system with hard links',
  EMLINK: 'choose a folder on a file system with hard links',
};

export const errnoCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Turns a failed file operation into `StorageFailed` with what the user can do about it. */
export const storageFailed = (error: unknown, doing: string, path: string): TurnsweepError => {
  if (error instanceof TurnsweepError) return error;
  const code = errnoCode(error);
  const permission = code === 'EACCES' || code === 'EPERM' ? `check permissions of ${path}` : undefined;
  return new TurnsweepError(errorNames.storageFailed, `cannot ${doing}: ${code ?? String(error)}`, {
    where: path,
    remedy: permission ?? remedies[code ?? ''] ?? 'mend the cause and run again',
    cause: error,
  });
};
