import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

/** A new folder that goes when the test ends. */
export const temporaryDirectory = (): string => {
  const directory = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
};
