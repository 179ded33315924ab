import { readFileSync } from 'node:fs';

/** Command lines of a program in a document: code spans, and lines of code blocks without their comments. */
export const commandLinesIn = (file: string, program: string): string[] => {
  const lines: string[] = [];
  const starts = new RegExp(`^(?:npx )?(${program} [a-z].*)$`);
  const prose = readFileSync(file, 'utf8').replace(/^ *```.*?^ *```/gms, (block) => {
    lines.push(...block.split('\n').map((line) => line.replace(/(^|\s)#.*/, '').trim()));
    return '';
  });
  for (const [, span] of prose.matchAll(/`([^`]+)`/g)) lines.push(span!.replace(/\s+/g, ' '));
  return lines.flatMap((line) => starts.exec(line)?.[1] ?? []);
};
