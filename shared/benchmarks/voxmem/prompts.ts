import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Prompts } from '../benchmark.ts';
import type { VoxmemOptions } from './options.ts';

/** Texts that models are shown. */
export const requestPrompts = ['system-abstain', 'system-answer'] as const;
/** Texts that the judge is asked with. */
export const rubrics = ['rubric-answerable', 'rubric-refusal'] as const;

/** Text that the auditor of wrong answers is asked with. */
export const auditPrompts = ['auditor'] as const;

type PromptName = (typeof requestPrompts)[number] | (typeof rubrics)[number] | (typeof auditPrompts)[number];

/** A text without the white space around it. Throws `BenchmarkInvalid` where it is missing or blank. */
export const promptText = (prompts: Prompts, name: PromptName): string => {
  const text = Object.hasOwn(prompts, name) ? prompts[name]!.trim() : '';
  if (text === '') {
    throw new TurnsweepError(errorNames.benchmarkInvalid, 'a prompt is missing or blank', { where: name });
  }
  return text;
};

/** The system prompt that a sweep's options ask for (voxmem-protocol §3). */
export const systemPrompt = (prompts: Prompts, { abstention }: Pick<VoxmemOptions, 'abstention'>): string =>
  promptText(prompts, abstention ? 'system-abstain' : 'system-answer');
