import type { LaneContract, LaneProjection } from '../contracts/run.ts';
import { callCostMicroUsd, isPaid, type Price, roundMicroUsd } from '../domain/cost.ts';
import type { ClipPart, FrozenRequest } from '../domain/request.ts';
import { assumedAudioTokensPerSecond, assumedClipTokens, clipTokens } from './media-tokens.ts';

export interface ProjectedLane {
  contract: Pick<LaneContract, 'provider' | 'model' | 'modalities' | 'maxTokens' | 'settings'>;
  /** Distinct requests. */
  requests: Iterable<FrozenRequest>;
  price: Price | null;
  /** Length of a clip; null where it is not known. */
  secondsOf: (path: string) => number | null;
  timeUtc: string;
}

const bytesPerToken = 4;
const textTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / bytesPerToken);

/**
 * What a lane's requests use and cost if every reply is as long as the first cap allows and every call succeeds at
 * once, and the most tokens of one clip. Prompts grow by the replies before them; clips are counted at the upper end
 * of the provider's own rule.
 */
export const projectLane = (
  lane: ProjectedLane,
): { projection: LaneProjection; clipTokensAtMost: { audio: number; video: number } } => {
  const { provider, model, modalities, maxTokens, settings } = lane.contract;
  const clipTokensAtMost = { audio: 0, video: 0 };
  const assumed = new Set<string>();
  const tokensByPath = new Map<string, number>();
  const tokensOf = ({ type, path }: ClipPart): number => {
    const known = tokensByPath.get(path);
    if (known !== undefined) return known;
    const seconds = lane.secondsOf(path);
    const range = seconds === null ? null : clipTokens({ provider, model, type, seconds, fps: settings.fps });
    const tokens = range?.atMost ?? assumedTokens(type, seconds);
    tokensByPath.set(path, tokens);
    clipTokensAtMost[type] = Math.max(clipTokensAtMost[type], tokens);
    return tokens;
  };
  const assumedTokens = (type: ClipPart['type'], seconds: number | null): number => {
    if (type === 'video' || seconds === null) {
      assumed.add(`${assumedClipTokens} tokens for each ${type} clip`);
      return assumedClipTokens;
    }
    assumed.add(`${assumedAudioTokensPerSecond} tokens for each second of audio`);
    return Math.ceil(assumedAudioTokensPerSecond * seconds);
  };
  const sums = { promptTokens: 0, mediaTokens: 0, replyTokens: 0 };
  let costMicroUsd: number | null = 0;
  for (const request of lane.requests) {
    const tokens = { text: 0, audio: 0, video: 0 };
    for (const message of request.messages) {
      if ('replyOf' in message) {
        tokens.text += maxTokens;
        continue;
      }
      if (message.role !== 'user') {
        tokens.text += textTokens(message.text);
        continue;
      }
      for (const part of message.content) {
        if (part.type === 'text') tokens.text += textTokens(part.text);
        else if (modalities.includes(part.type === 'video' ? 'V' : 'A')) tokens[part.type] += tokensOf(part);
      }
    }
    const mediaTokens = tokens.audio + tokens.video;
    sums.promptTokens += tokens.text + mediaTokens;
    sums.mediaTokens += mediaTokens;
    sums.replyTokens += maxTokens;
    const cost = callCostMicroUsd(
      {
        inputTokens: tokens.text + mediaTokens,
        textInputTokens: tokens.text,
        audioInputTokens: tokens.audio,
        videoInputTokens: tokens.video,
        imageInputTokens: 0,
        cachedInputTokens: 0,
        outputTokens: maxTokens,
        reasoningTokens: null,
      },
      lane.price,
      { holdsMedia: mediaTokens > 0, timeUtc: lane.timeUtc },
    );
    costMicroUsd = costMicroUsd === null || cost === null ? null : costMicroUsd + cost;
  }
  const isFree = !isPaid(provider);
  const assumptions = [
    ...(isFree ? [] : ['every reply as long as the first cap', 'every call succeeds at once']),
    ...[...assumed].sort(),
  ];
  return {
    projection: {
      ...sums,
      costMicroUsd: isFree ? 0 : costMicroUsd === null ? null : roundMicroUsd(costMicroUsd),
      assumptions: isFree ? [] : assumptions,
    },
    clipTokensAtMost,
  };
};
