import type { OutcomeRule } from '../chat-completions/errors.ts';

/**
 * llama-server answers 500 to requests that it can never serve: media without `--mmproj` ("image input is not
 * supported - hint: …"), a kind of part that it does not know, a clip that it cannot decode, and in older builds a
 * prompt longer than its context (tools/server, as quoted in public reports of 2025 and 2026). Every other 500, and the
 * 503 while a model loads, pass.
 */
export const llamacppRules: readonly OutcomeRule[] = [
  {
    message:
      /input is not supported|unsupported content\[\]\.type|failed to load image or audio|exceeds the available context size/i,
    statuses: [500, 500],
    verdict: 'failed',
  },
];
