import { errorNames, TurnsweepError } from '../../errors.ts';

const hardLinks = 'choose a folder on a file system with hard links';

const remedies: Readonly<Record<string, string>> = {
  EBUSY: 'close the program that uses it and run again',
  EDQUOT: 'free disk space or raise the disk quota and run again',
  EEXIST: 'a file stands where a folder is needed: remove or rename it',
  EIO: 'check the disk, then run again',
  EISDIR: 'a folder stands where a file is needed: remove or rename it',
  EMFILE: 'raise the limit of open files (ulimit -n) and run again',
  EMLINK: hardLinks,
  ENAMETOOLONG: 'use shorter names',
  ENFILE: 'close other programs, too many files are open on this machine, and run again',
  ENOENT: 'check the path and run again',
  ENOSPC: 'free disk space and run again',
  ENOTDIR: 'a file stands where a folder is needed: remove or rename it',
  ENOTSUP: hardLinks,
  EOPNOTSUPP: hardLinks,
  EROFS: 'choose a folder on a writable disk',
  ERR_FS_CP_DIR_TO_NON_DIR: 'a file stands where a folder is needed: remove or rename it',
  ERR_STRING_TOO_LONG: 'read it as lines',
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

/** Awaits an operation on `path`; its errors become `StorageFailed`. */
export const onDisk = async <Result>(
  doing: string,
  path: string,
  operation: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await operation();
  } catch (error) {
    throw storageFailed(error, doing, path);
  }
};
