import type { Channel } from './request.ts';

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
}

const settingNames = ['temperature', 'topP', 'seed', 'reasoningEffort', 'fps', 'thinking'] as const;

/** Characters of base64. */
const encodedSize = (bytes: number): number => 4 * Math.ceil(bytes / 3);

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
  for (const medium of ['audio', 'video'] as const) {
    const atMost = capabilities.clipsPerRequest[medium];
    // At least the sounds beyond the videos stay clips of their own.
    const muxed = mux && needs.mixesMedia && medium === 'audio' ? needs.clipsPerRequest.video : 0;
    const needed = Math.max(0, needs.clipsPerRequest[medium] - muxed);
    if (atMost !== null && needed > atMost) {
      found.push(`takes ${atMost} ${medium} clips in a request, history included; ${needed} are needed`);
    }
  }
  found.push(...sizeMisfits(capabilities, needs));
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

const sizeMisfits = (capabilities: Capabilities, needs: LaneNeeds): string[] => {
  const { channels, inlineAtMost, bodyBytesAtMost, takesUrls, takesInlineVideo, videoAs } = capabilities;
  const hasUrls = takesUrls && needs.givesUrls !== false;
  const sendsVideo = needs.channels.includes('V') && channels.includes('V');
  const found: string[] = [];
  if (sendsVideo && !takesInlineVideo && !hasUrls) found.push('takes video by its address only');
  // Frames are small; the file that they are cut from is never sent.
  if (needs.largestClipBytes === null || (sendsVideo && videoAs !== 'file') || hasUrls) return found;
  const encoded = encodedSize(needs.largestClipBytes);
  const atMost = Math.min(
    inlineAtMost ?? Number.POSITIVE_INFINITY,
    bodyBytesAtMost ?? Number.POSITIVE_INFINITY,
  );
  if (encoded > atMost) {
    found.push(`takes ${atMost} bytes of an encoded clip in a request; the largest clip has ${encoded}`);
  }
  return found;
};
