import { globSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../cli/program.ts';
import { projectRoot } from '../support/command-line.ts';
import { commandLinesIn } from '../support/command-lines-in-docs.ts';

const documents = globSync(['*.md', '{docs,examples,mock,state-machines}/**/*.md'], { cwd: projectRoot });

/** Reads a command line without doing what it says; throws where there is no such command, option or value. */
const read = async (line: string): Promise<void> => {
  const program = buildProgram();
  for (const command of [program, ...program.commands]) {
    command.configureOutput({ outputError: () => {} });
    command.action(() => {});
  }
  const words = line.split(' ').slice(1);
  await program.parseAsync(
    words.map((word) => (word === 'N' ? '4' : word)),
    { from: 'user' },
  );
};

describe('command lines in the documents', () => {
  const lines = documents.flatMap((file) =>
    commandLinesIn(path.join(projectRoot, file), 'turnsweep').map((line) => ({ file, line })),
  );

  it('are found', () => {
    expect(documents).toEqual(expect.arrayContaining(['README.md', path.join('docs', 'runbook.md')]));
    const words = lines.map(({ line }) => line.split(' ')[1]);
    expect(words).toEqual(expect.arrayContaining(['run', 'status', 'pause', 'resume', 'cancel', 'redrive']));
  });

  it.each(lines)('$file: $line', async ({ line }) => {
    await expect(read(line)).resolves.toBeUndefined();
  });

  it.each([
    'turnsweep stop RUN',
    'turnsweep cancel',
    'turnsweep redrive RUN --retry',
    'turnsweep plan S --limit x',
  ])('would not be read if they were wrong: %s', async (line) => {
    await expect(read(line)).rejects.toThrow(/error/);
  });
});
