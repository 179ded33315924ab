import type { ClipForms } from '../../domain/media.ts';
import type { ClipCounts, ResolvedMessage, ResolvedPart } from '../../domain/request.ts';
import { clipCounts } from '../../domain/request.ts';
import { splitSystemTurn } from '../../domain/system-turn.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource, LoadedClip } from '../../ports/model-client.ts';
import { loadWholeClip } from '../inline-clip.ts';
import type { LaneSettings } from '../provider.ts';
import { reasoningEfforts, takesEffort } from './capabilities.ts';
import type { ContentBlock, ConverseCommandInput, Message } from './converse-sdk.ts';

export interface BedrockCall {
  maxTokens: number;
  /** Goes before the settings' own. */
  reasoningEffort?: string;
  system?: readonly string[];
}

/**
 * Thinking of Nova 2 is off unless it is asked for (nova2-userguide, reasoning-capabilities): nothing is sent for off.
 * Throws `UsageWrong` for an effort that the model does not have.
 */
const thinkingFields = (model: string, effort: string | undefined) => {
  if (effort === undefined || effort === 'none') return undefined;
  if (takesEffort(model) && (reasoningEfforts as readonly string[]).includes(effort)) {
    return { reasoningConfig: { type: 'enabled', maxReasoningEffort: effort } };
  }
  throw new TurnsweepError(errorNames.usage, `there is no reasoning effort ${effort}`, {
    where: model,
    remedy: takesEffort(model) ? `use one of ${reasoningEfforts.join(', ')}` : 'leave it out',
  });
};

/** One call. There is no seed. Throws `UsageWrong` for an effort that the model does not have. */
export const converseInput = (
  model: string,
  settings: LaneSettings,
  messages: Message[],
  call: BedrockCall,
): ConverseCommandInput => ({
  modelId: model,
  messages,
  system: call.system?.length ? call.system.map((text) => ({ text })) : undefined,
  inferenceConfig: {
    maxTokens: call.maxTokens,
    temperature: settings.temperature,
    topP: settings.topP,
  },
  additionalModelRequestFields: thinkingFields(model, call.reasoningEffort ?? settings.reasoningEffort),
});

interface Loading {
  clips: ClipSource;
  forms: ClipForms;
}

/**
 * Messages of a frozen request: parts in their order, earlier replies as plain text. Neighbouring messages of one role
 * become one, because the roles must alternate; a system turn stands beside them. Throws `ContractViolated` where the
 * first of them is not the user's.
 */
export const mediaMessages = async (
  frozen: readonly ResolvedMessage[],
  loading: Loading,
): Promise<{ system: string[]; messages: Message[]; sent: ClipCounts }> => {
  const { system, others } = splitSystemTurn(frozen);
  if (others[0]?.role !== 'user') {
    throw new TurnsweepError(errorNames.contractViolated, 'the first message is not of the user');
  }
  const written = await Promise.all(
    others.map(async (message): Promise<Message> => {
      if (message.role === 'assistant') return { role: 'assistant', content: [{ text: message.text }] };
      const content = await Promise.all(message.content.map((part) => contentBlock(part, loading)));
      return { role: 'user', content };
    }),
  );
  return {
    system: system === null ? [] : [system],
    messages: alternating(written),
    sent: clipCounts(frozen),
  };
};

export const alternating = (messages: readonly Message[]): Message[] => {
  const merged: Message[] = [];
  for (const { role, content } of messages) {
    const last = merged.at(-1);
    if (last !== undefined && last.role === role)
      last.content = [...(last.content ?? []), ...(content ?? [])];
    else merged.push({ role, content });
  }
  return merged;
};

/** Formats by media type (enums of the service's API). */
const videoFormats = {
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'video/x-matroska': 'mkv',
} as const;
const audioFormats = {
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
} as const;

const contentBlock = async (part: ResolvedPart, { clips, forms }: Loading): Promise<ContentBlock> => {
  if (part.type === 'text') return { text: part.text };
  const clip = await loadWholeClip(clips, part, forms);
  const source = sourceOf(clip, part.path);
  return part.type === 'video'
    ? { video: { format: formatOf(videoFormats, clip.mime, part.path), source } }
    : { audio: { format: formatOf(audioFormats, clip.mime, part.path), source } };
};

const formatOf = <Format extends string>(
  formats: Readonly<Record<string, Format>>,
  mime: string,
  where: string,
): Format => {
  const format = formats[mime];
  if (format !== undefined) return format;
  throw new TurnsweepError(errorNames.usage, `provider bedrock takes no ${mime}`, { where });
};

const sourceOf = (clip: LoadedClip, where: string) => {
  if (clip.type === 'inline') return { bytes: new Uint8Array(Buffer.from(clip.base64, 'base64')) };
  if (clip.url.startsWith('s3://')) return { s3Location: { uri: clip.url } };
  throw new TurnsweepError(errorNames.contractViolated, 'provider bedrock fetches clips from S3 only', {
    where,
  });
};

/** Bytes of the inline clips as they go on the wire, in base64. */
export const inlineBytes = (messages: readonly Message[]): number => {
  let total = 0;
  for (const { content } of messages) {
    for (const block of content ?? []) {
      const bytes = (block.video ?? block.audio)?.source?.bytes;
      if (bytes !== undefined) total += 4 * Math.ceil(bytes.length / 3);
    }
  }
  return total;
};
