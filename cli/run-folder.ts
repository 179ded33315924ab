import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { withFilesForKeys } from '../local/home.ts';
import { lockRunFolder } from '../shared/adapters/local/run-folder-lock.ts';
import { errnoCode, onDisk, storageFailed } from '../shared/adapters/local/storage-errors.ts';
import { type RunContract, runSettings, storedContract } from '../shared/contracts/run.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { canonicalJson, runId, sha256 } from '../shared/naming.ts';

const contractFile = 'contract.json';
const settingsFile = 'settings.json';

/** What a folder that is not a run may hold and still be taken for one. */
const harmless = (name: string): boolean => name.startsWith('.');

export interface KnownRun {
  directory: string;
  run: string;
  hash: string;
  contract: RunContract;
}

const readContractText = (directory: string): string | null => {
  const file = path.join(directory, contractFile);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoCode(error) ?? '')) return null;
    throw storageFailed(error, 'read', file);
  }
};

/** A scheduled run has the contract of the run that it repeats; its settings tell its own name. */
const ownName = (directory: string): string | null => {
  try {
    const settings: unknown = JSON.parse(readFileSync(path.join(directory, settingsFile), 'utf8'));
    return runSettings.pick({ run: true }).loose().parse(settings).run;
  } catch {
    // Not there yet, or damaged: whoever needs the settings says so.
    return null;
  }
};

/** The run that a folder holds, null for none; throws where its contract cannot be read as one. */
export const findRun = (directory: string): KnownRun | null => {
  const text = readContractText(directory);
  if (text === null) return null;
  const fault = (what: string, cause: unknown) =>
    new TurnsweepError(errorNames.objectDamaged, what, {
      where: path.join(directory, contractFile),
      remedy: 'restore the file, or choose another folder',
      cause,
    });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw fault("the run's contract is not JSON", cause);
  }
  const parsed = storedContract.safeParse(value);
  if (!parsed.success)
    throw fault("the run's contract is damaged or of another version of turnsweep", parsed.error);
  const { hash, contract } = parsed.data;
  if (sha256(canonicalJson(contract)) !== hash)
    throw fault("the run's contract was altered: its hash is another", null);
  const run = ownName(directory) ?? runId(contract.name, hash);
  return { directory, run, hash, contract };
};

/** The run that a folder holds; throws where it holds none. */
export const openKnownRun = async (directory: string): Promise<KnownRun> => {
  const found = findRun(directory);
  if (found !== null) return found;
  throw new TurnsweepError(errorNames.usage, 'there is no run in this folder', {
    where: directory,
    remedy: 'give the output folder of `turnsweep run`',
  });
};

/** Does work on a run; its errors then name files as people find them, not keys of the store. */
export const withFileNames = async <Result>(
  { directory, run }: Pick<KnownRun, 'directory' | 'run'>,
  work: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TurnsweepError) {
      error.message = withFilesForKeys(error.message, run, directory);
    }
    throw error;
  }
};

/** Makes the folder if need be, refuses one with foreign content, and takes its lock. */
export const claimRunFolder = async (directory: string) => {
  const content = await onDisk('make the output folder', directory, async () => {
    mkdirSync(directory, { recursive: true });
    return readdirSync(directory).filter((name) => !harmless(name));
  });
  if (content.length > 0 && !content.includes(contractFile)) {
    // A start that was killed before its contract was written leaves only these.
    const started = content.every((name) =>
      ['benchmarks', 'judging', settingsFile, 'ledger.sqlite'].includes(name),
    );
    if (!started) {
      throw new TurnsweepError(errorNames.usage, 'the output folder holds other files', {
        where: directory,
        remedy: 'choose an empty or new folder with --out',
      });
    }
  }
  return lockRunFolder(directory);
};
