import type { OutcomeRule } from '../chat-completions/errors.ts';

/**
 * developers.openai.com, error codes. Codes of policy, of an empty wallet and of a wrong key are among the rules that all
 * share; inside a stream a code is all that there is, so those with a meaning of their own stand here.
 */
export const openAiRules: readonly OutcomeRule[] = [
  // More tokens than a whole minute's allowance: it never fits (Aider-AI/aider#1880, TheR1D/shell_gpt#653).
  { message: /\brequest too large\b/i, codes: /^rate_limit_exceeded$/, verdict: 'failed', kind: 'http_429' },
  { codes: /^rate_limit_exceeded$/, verdict: 'retry', kind: 'http_429' },
  { codes: /^context_length_exceeded$/, verdict: 'failed', kind: 'http_400' },
];
