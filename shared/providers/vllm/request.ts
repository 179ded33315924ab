import { urlPart } from '../chat-completions/clip-parts.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { bareBase64 } from '../chat-completions/profile.ts';
import { selfHostedProfile } from '../openai-compatible/self-hosted.ts';

/**
 * vLLM docs/features/multimodal_inputs.md. Sound goes as `audio_url`: its data URL names the media type, where
 * `input_audio` knows wav and mp3 only. The rate of frames stands at the top level and is ignored anywhere else; it needs
 * a server started with `--media-io-kwargs '{"video":{"num_frames":-1}}'`, else 32 frames are taken (QwenLM/Qwen3-VL
 * #1644, #1517). Frames that are cut already go as one `video/jpeg` URL (QwenLM/Qwen3-VL#1932): the part `video`
 * of other servers is refused.
 */
export const vllmProfile: ChatProfile = {
  ...selfHostedProfile,
  body: (model, settings, call) => ({
    ...selfHostedProfile.body(model, settings, call),
    mm_processor_kwargs:
      settings.fps === undefined ? undefined : { fps: settings.fps, do_sample_frames: true },
  }),
  clip: ({ medium, files }) => {
    if (medium === 'audio') return urlPart('audio_url', files[0]!);
    if (files[0]!.mime !== 'image/jpeg') return urlPart('video_url', files[0]!);
    return [
      '{"type":"video_url","video_url":{"url":"data:video/jpeg;base64,',
      ...files.flatMap((frame, position) => [...(position === 0 ? [] : [',']), bareBase64(frame)]),
      '"}}',
    ];
  },
};
