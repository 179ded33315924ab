import type { ReleaseTexts } from '../../../../shared/benchmarks/return/read.ts';

/** The three task files as a reader gets them; `answers: false` for one that must not see gold. */
export const releaseTexts = (
  files: Record<string, string>,
  { answers = true }: { answers?: boolean } = {},
): ReleaseTexts => {
  const text = (name: string) => ({
    file: `${name}.jsonl`,
    lines: files[`data/tasks/${name}.jsonl`]!.split('\n'),
  });
  return { tasks: text('tasks'), inputs: text('inputs'), answers: answers ? text('answers') : null };
};
