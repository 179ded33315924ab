import { benchmarkForms } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { readUsage } from '../chat-completions/usage.ts';
import { stepfunCapabilities } from './capabilities.ts';
import { stepfunRules } from './errors.ts';
import { stepfunBody, stepfunClip } from './request.ts';

export const stepfunProfile = (model: string): ChatProfile => {
  const { partOrder, takesUrls } = stepfunCapabilities(model);
  return {
    body: stepfunBody,
    clip: stepfunClip,
    partOrder,
    rules: stepfunRules,
    readUsage,
    // Models with a picture fetch every video; those that hear are sent everything.
    inlineBytesAtMost: takesUrls ? 0 : null,
  };
};

/** StepFun: StepAudio and the models with a picture. */
export const stepfun = createChatProvider({
  profile: stepfunProfile,
  capabilities: stepfunCapabilities,
  clipForms: ({ settings }) => benchmarkForms(settings),
  usualBaseUrl: 'https://api.stepfun.com/v1',
});
