import { existsSync, readdirSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { lockRunFolder } from '../shared/adapters/local/run-folder-lock.ts';
import { type RunContract, storedContract } from '../shared/contracts/run.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { runId } from '../shared/naming.ts';

const contractFile = 'contract.json';

/** What a folder that is not a run may hold and still be taken for one. */
const harmless = (name: string): boolean => name.startsWith('.');

export interface KnownRun {
  directory: string;
  run: string;
  hash: string;
  contract: RunContract;
}

export const readContractText = async (directory: string): Promise<string | null> => {
  const file = path.join(directory, contractFile);
  return existsSync(file) ? readFile(file, 'utf8') : null;
};

/** The run that a folder holds; throws where it holds none. */
export const openKnownRun = async (directory: string): Promise<KnownRun> => {
  const text = await readContractText(directory);
  const fault = (what: string, cause?: unknown) =>
    new TurnsweepError(errorNames.usage, what, {
      where: path.join(directory, contractFile),
      remedy: 'give the output folder of `turnsweep run`',
      cause,
    });
  if (text === null) throw fault('this folder holds no run');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw fault('the contract is not JSON', cause);
  }
  const parsed = storedContract.safeParse(value);
  if (!parsed.success) throw fault('the contract is not one of this version of turnsweep', parsed.error);
  const { hash, contract } = parsed.data;
  return { directory, run: runId(contract.name, hash), hash, contract };
};

/** Makes the folder if need be, refuses one with foreign content, and takes its lock. */
export const claimRunFolder = async (directory: string) => {
  try {
    await mkdir(directory, { recursive: true });
  } catch (cause) {
    throw new TurnsweepError(errorNames.storageFailed, 'cannot make the output folder', {
      where: directory,
      remedy: 'choose a folder that you may write to with --out',
      cause,
    });
  }
  const content = readdirSync(directory).filter((name) => !harmless(name));
  if (content.length > 0 && !content.includes(contractFile)) {
    // A start that was killed before its contract was written leaves only these.
    const started = content.every((name) =>
      ['benchmarks', 'judging', 'settings.json', 'ledger.sqlite'].includes(name),
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
