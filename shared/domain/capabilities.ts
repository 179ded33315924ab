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
  /** Bounds of `settings.fps`; null where the provider has no such control. */
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
  /** Largest clip in bytes; null where media were not verified. */
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

/**
 * Why a lane cannot work with its provider, one line each; empty where it can. `mux` says that a message's video and
 * sound are sent as one file.
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
  if (needs.mixesMedia && capabilities.mixesMedia === 'one-kind' && !mux) {
    found.push('takes video or audio in one message, not both');
  }
  for (const medium of ['audio', 'video'] as const) {
    const atMost = capabilities.clipsPerRequest[medium];
    const needed = needs.clipsPerRequest[medium];
    if (atMost !== null && needed > atMost) {
      found.push(`takes ${atMost} ${medium} clips in a request, history included; ${needed} are needed`);
    }
  }
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined || name === 'stream') continue;
    if (!(capabilities.settings as readonly string[]).includes(name)) found.push(`has no setting ${name}`);
  }
  if (settings.stream === false && capabilities.streamRequired) found.push('works with streams only');
  const { fps, reasoningEffort } = settings;
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
