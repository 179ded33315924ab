import type { Capabilities } from '../../domain/capabilities.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { commonCapabilities, commonProfile } from './provider.ts';

/**
 * What the open servers share: thinking is switched in the chat template, off where the lane asks neither for it nor for
 * an effort. A template that does not know the switch ignores it. Sources: vLLM docs/features/reasoning_outputs.md,
 * SGLang `ChatCompletionRequest` in protocol.py, llama.cpp tools/server/README.md.
 *
 * A server without a reasoning parser leaves `<think>…</think>` in the text. The raw text is what is recorded, scored and
 * shown in later turns (return-protocol §2, §5), so nothing is cut out here: start such a server with its parser. A
 * reply cut inside its thinking ends with `length` like any other and is never scored.
 */
export const selfHostedProfile: ChatProfile = {
  ...commonProfile,
  body: (model, settings, call) => {
    const effort = call.reasoningEffort ?? settings.reasoningEffort;
    return {
      ...commonProfile.body(model, settings, call),
      chat_template_kwargs: {
        enable_thinking: settings.thinking ?? (effort !== undefined && effort !== 'none'),
      },
    };
  },
};

/**
 * A system turn goes out as one, but it is the model's chat template that writes it into the prompt, and some templates
 * drop it in silence: such a lane says `settings.systemPrompt: folded`.
 *
 * Limits are those that a server was started with: null until a lane can name them. No split of tokens by modality.
 */
export const selfHostedCapabilities: Capabilities = {
  ...commonCapabilities,
  settings: ['temperature', 'topP', 'seed', 'reasoningEffort', 'fps', 'thinking'],
  thinking: 'switch',
};
