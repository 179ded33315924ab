import { describe, expect, it } from 'vitest';
import { onDisk, storageFailed } from '../../../../shared/adapters/local/storage-errors.ts';
import { errorNames, TurnsweepError } from '../../../../shared/errors.ts';

const failureOf = (code: string) => Object.assign(new Error(`${code}: it did not work`), { code });

describe('failures of the disk', () => {
  it.each([
    ['ENOSPC', 'free disk space and run again'],
    ['EDQUOT', 'free disk space or raise the disk quota and run again'],
    ['EACCES', 'check permissions of out/a'],
    ['EPERM', 'check permissions of out/a'],
    ['EROFS', 'choose a folder on a writable disk'],
    ['EMFILE', 'raise the limit of open files (ulimit -n) and run again'],
    ['EWHATEVER', 'mend the cause and run again'],
  ])('say what to do about %s', (code, remedy) => {
    const cause = failureOf(code);

    const error = storageFailed(cause, 'write', 'out/a');

    expect(error).toMatchObject({
      name: 'StorageFailed',
      message: `cannot write: ${code} (out/a); ${remedy}`,
      cause,
    });
  });

  it('keep what is already said', async () => {
    const said = new TurnsweepError(errorNames.accessDenied, 'no');

    const failing = onDisk('write', 'out/a', () => Promise.reject(said));

    await expect(failing).rejects.toBe(said);
  });
});
