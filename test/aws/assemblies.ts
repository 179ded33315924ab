import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Folder of what has been synthesized, shared by the suites of one start. */
    assemblies: string;
  }
}

export default (project: TestProject) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-assemblies-'));
  project.provide('assemblies', folder);
  return () => rmSync(folder, { recursive: true, force: true });
};
