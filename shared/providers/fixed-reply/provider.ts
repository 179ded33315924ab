import { asTheyAre } from '../../domain/media.ts';
import type { CallOutcome, Usage } from '../../domain/outcome.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { commonCapabilities } from '../openai-compatible/provider.ts';
import type { Provider } from '../provider.ts';

/** No model reads or writes anything: the counts are known, and they are zero. */
const noTokens: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  audioInputTokens: 0,
  videoInputTokens: 0,
  imageInputTokens: 0,
  textInputTokens: 0,
};

/** Gives every request the lane's own text: a baseline. Nothing is sent anywhere. */
export const fixedReply: Provider = {
  capabilities: () => commonCapabilities,
  clipForms: () => asTheyAre,
  usualBaseUrl: null,
  createClient: ({ model, reply }) => {
    if (reply === undefined || reply.trim() === '') {
      throw new TurnsweepError(errorNames.usage, 'provider fixed-reply needs a reply', { where: model });
    }
    const outcome: CallOutcome = {
      status: 'ok',
      text: reply,
      httpStatus: null,
      responseId: null,
      servedModel: null,
      finishReason: null,
      usage: noTokens,
    };
    return {
      call: async () => ({ ...outcome, consumed: { audio: 0, video: 0 } }),
      close: async () => {},
    };
  },
  createCaller: null,
};
