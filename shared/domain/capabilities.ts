import type { Channel } from './request.ts';
import type { SystemPromptDelivery } from './system-turn.ts';

/**
 * What a provider's model takes, so that planning can refuse what cannot work before any call. Null: no limit is
 * known. Sources stand beside each provider's values.
 */
export interface Capabilities {
  channels: readonly Channel[];
  /** `one-kind`: a message holds clips of one channel only. */
  mixesMedia: 'any' | 'one-kind';
  /** How video travels: as a file, as a list of frames, or as single pictures; null where no video does. */
  videoAs: 'file' | 'frames' | 'pictures' | null;
  /** Clips of the whole request, history included. */
  clipsPerRequest: { audio: number | null; video: number | null };
  /** The same where every clip goes by its address; left out: no other limit is known. */
  clipsByAddress?: { audio: number | null; video: number | null };
  /** Seconds of sound of the whole request; left out: no limit is known. */
  audioSecondsAtMost?: number;
  /** Pictures of one video where it goes as a list of frames; left out: no bounds are known. */
  framesPerVideo?: { min: number; max: number };
  /** Every request must hold sound. */
  needsAudio?: true;
  /** Bounds of `settings.fps`; null where no bounds are known or there is no such setting. */
  fps: { min: number; max: number } | null;
  /** Characters of one data URI, or bytes of the encoded clip where there is no URI; above that a URL is needed. */
  inlineAtMost: number | null;
  /** False: the provider fetches nothing, everything is inline. */
  takesUrls: boolean;
  /** False: the provider only fetches from URLs. */
  takesInlineVideo: boolean;
  bodyBytesAtMost: number | null;
  /** `text-first`: the text parts of a message go before its clips. */
  partOrder: 'frozen' | 'text-first';
  /** False: a system prompt has to go into the first user message. */
  takesSystemTurn: boolean;
  /** Names of `settings` that the provider has. */
  settings: readonly ('temperature' | 'topP' | 'seed' | 'reasoningEffort' | 'fps' | 'thinking')[];
  /** Values of `reasoningEffort`; null: any text goes. */
  reasoningEfforts: readonly string[] | null;
  /** How thinking is switched: not at all, by `settings.thinking`, or by the effort. */
  thinking: 'none' | 'switch' | 'effort' | 'always';
  streamRequired: boolean;
  /** OpenAI's batch interface, for judges. */
  batch: boolean;
  /** Counts of prompt tokens by modality that a reply tells; the others stay null. */
  countsTokensOf: readonly ('audio' | 'video' | 'image')[];
}

/** What the request with the most of something has. */
export interface RequestPeak {
  amount: number;
  requestId: string;
  /** Clips that make it up. */
  clips: number;
}

/** What a benchmark's requests ask of a provider, on the channels of one lane. */
export interface LaneNeeds {
  channels: readonly Channel[];
  /** Clips in one request, history included, at most. */
  clipsPerRequest: { audio: number; video: number };
  /** A message has clips of both channels. */
  mixesMedia: boolean;
  /** Some request has no sound on these channels; left out: not known. */
  hasSilentRequests?: boolean;
  /** Whether the store can give providers addresses to fetch clips from; left out: not known. */
  givesUrls?: boolean;
  /** Largest clip in bytes; null where media were not verified, or are made smaller before they are sent. */
  largestClipBytes: number | null;
  /** Clips of one request together in bytes of base64, as far as their sizes are known; left out or null: no size is. */
  inlineBytesAtMost?: RequestPeak | null;
  /** Sound of one request together in seconds, as far as it is known; left out or null: no length is. */
  audioSecondsAtMost?: RequestPeak | null;
  /** Requests with the most clips, to be named where they are too many. */
  mostClipsIn?: { audio: string | null; video: string | null };
}

/** Settings of a lane that a provider may lack. */
export interface WantedSettings {
  temperature?: number;
  topP?: number;
  seed?: number;
  reasoningEffort?: string;
  fps?: number;
  thinking?: boolean;
  stream?: boolean;
  systemPrompt?: SystemPromptDelivery;
}

const settingNames = ['temperature', 'topP', 'seed', 'reasoningEffort', 'fps', 'thinking'] as const;

/** Characters of base64. */
export const encodedSize = (bytes: number): number => 4 * Math.ceil(bytes / 3);

/**
 * Why a lane cannot work with its provider, one line each; empty where it can. `mux` says that a message's video and
 * sound are sent as one file. Settings that we carry out ourselves, such as the largest side of video, fit everywhere.
 */
export const misfits = (
  capabilities: Capabilities,
  needs: LaneNeeds,
  settings: WantedSettings,
  mux: boolean,
): string[] => {
  const found: string[] = [];
  const channelName = { V: 'video', A: 'audio' } as const;
  for (const channel of needs.channels) {
    if (!capabilities.channels.includes(channel)) found.push(`takes no ${channelName[channel]}`);
  }
  const takesAll = found.length === 0;
  if (capabilities.needsAudio && needs.hasSilentRequests) found.push('takes no request without audio');
  if (takesAll && needs.mixesMedia && capabilities.mixesMedia === 'one-kind' && !mux) {
    found.push('takes video or audio in one message, not both');
  }
  const { clipsPerRequest, clipsByAddress = clipsPerRequest } = capabilities;
  const clipsAtMost = mayFetch(capabilities, needs) ? clipsByAddress : clipsPerRequest;
  for (const medium of ['audio', 'video'] as const) {
    const atMost = clipsAtMost[medium];
    // At least the sounds beyond the videos stay clips of their own.
    const muxed = mux && needs.mixesMedia && medium === 'audio' ? needs.clipsPerRequest.video : 0;
    const needed = Math.max(0, needs.clipsPerRequest[medium] - muxed);
    if (atMost !== null && needed > atMost) {
      const request = needs.mostClipsIn?.[medium] ?? null;
      found.push(
        `takes ${atMost} ${medium} clips in a request, history included; ${needed} are needed${request === null ? '' : ` (request ${request})`}`,
      );
    }
  }
  found.push(...sizeMisfits(capabilities, needs));
  const { audioSecondsAtMost = Number.POSITIVE_INFINITY } = capabilities;
  const longest = needs.audioSecondsAtMost ?? null;
  if (longest !== null && longest.amount > audioSecondsAtMost) {
    found.push(
      `takes ${audioSecondsAtMost} s of sound in a request; request ${longest.requestId} has ${Math.ceil(longest.amount)} s in ${longest.clips} clips`,
    );
  }
  if (settings.systemPrompt === 'native' && !capabilities.takesSystemTurn) {
    found.push('takes no system turn; set systemPrompt to folded, or leave it out');
  }
  for (const name of settingNames) {
    if (settings[name] !== undefined && !capabilities.settings.includes(name)) {
      found.push(`has no setting ${name}`);
    }
  }
  if (settings.stream === false && capabilities.streamRequired) found.push('works with streams only');
  const { fps, reasoningEffort, thinking } = settings;
  if (thinking !== undefined && reasoningEffort !== undefined) {
    const thinks = !['none', 'minimal'].includes(reasoningEffort);
    if (thinks !== thinking) found.push(`cannot have thinking ${thinking} with effort ${reasoningEffort}`);
  }
  if (fps !== undefined && capabilities.fps !== null) {
    const { min, max } = capabilities.fps;
    if (fps < min || fps > max) found.push(`takes fps from ${min} to ${max}, not ${fps}`);
  }
  if (reasoningEffort !== undefined && capabilities.reasoningEfforts?.includes(reasoningEffort) === false) {
    found.push(
      `has the reasoning efforts ${capabilities.reasoningEfforts.join(', ')}, not ${reasoningEffort}`,
    );
  }
  return found;
};

/** Clips may go by their addresses, as far as is known. */
const mayFetch = ({ takesUrls }: Capabilities, { givesUrls }: LaneNeeds): boolean =>
  takesUrls && givesUrls !== false;

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${bytes} bytes` : `${(bytes / 1e6).toFixed(1)} MB`;

const sizeMisfits = (capabilities: Capabilities, needs: LaneNeeds): string[] => {
  const { channels, inlineAtMost, bodyBytesAtMost, takesInlineVideo, videoAs } = capabilities;
  const hasUrls = mayFetch(capabilities, needs);
  const sendsVideo = needs.channels.includes('V') && channels.includes('V');
  const found: string[] = [];
  if (sendsVideo && !takesInlineVideo && !hasUrls) found.push('takes video by its address only');
  if (hasUrls) return found;
  const bodyAtMost = bodyBytesAtMost ?? Number.POSITIVE_INFINITY;
  const atMost = Math.min(inlineAtMost ?? Number.POSITIVE_INFINITY, bodyAtMost);
  // Frames are small; the file that they are cut from is never sent.
  const sendsFrames = sendsVideo && videoAs !== 'file';
  const encoded = needs.largestClipBytes === null || sendsFrames ? 0 : encodedSize(needs.largestClipBytes);
  if (encoded > atMost) {
    found.push(`takes ${atMost} bytes of an encoded clip in a request; the largest clip has ${encoded}`);
  }
  const most = needs.inlineBytesAtMost ?? null;
  if (most !== null && most.amount > bodyAtMost && encoded <= bodyAtMost) {
    found.push(
      `takes ${sizeText(bodyAtMost)} in a request; request ${most.requestId} has ${most.clips} clips, ${sizeText(most.amount)} encoded`,
    );
  }
  return found;
};
