import type { ClipForms } from '../../domain/media.ts';
import type { ClipCounts, ResolvedMessage, ResolvedPart } from '../../domain/request.ts';
import { clipCounts } from '../../domain/request.ts';
import { splitSystemTurn } from '../../domain/system-turn.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource } from '../../ports/model-client.ts';
import { bareBase64, type JsonPiece } from '../chat-completions/profile.ts';
import { loadWholeClip } from '../inline-clip.ts';
import type { LaneSettings } from '../provider.ts';
import { smallestBudget, thinksByBudget } from './capabilities.ts';

export interface GeminiCall {
  maxTokens: number;
  /** Goes before the settings' own. */
  reasoningEffort?: string;
  /** Text of the system instruction. */
  system?: string;
}

/**
 * Safety filters off: a benchmark measures the model. Some prompts are blocked all the same, and the reply says so
 * (ai.google.dev/gemini-api/docs/safety-settings).
 */
const safetySettings = [
  'HARM_CATEGORY_HARASSMENT',
  'HARM_CATEGORY_HATE_SPEECH',
  'HARM_CATEGORY_SEXUALLY_EXPLICIT',
  'HARM_CATEGORY_DANGEROUS_CONTENT',
].map((category) => ({ category, threshold: 'BLOCK_NONE' }));

const dynamicBudget = -1;
const budgetOfEffort: Readonly<Record<string, number>> = { none: 0, low: 1024, medium: 8192, high: 24_576 };

/**
 * Sent with every call, because models think much by default: what the settings ask for, else as little as the model
 * takes. That is no budget at all (2.5), and for later models `LOW`, the lowest level that each of them has.
 */
const thinkingConfig = (model: string, { thinking }: LaneSettings, effort: string | undefined) => {
  if (!thinksByBudget(model)) return { thinkingLevel: (effort ?? 'low').toUpperCase() };
  if (effort === undefined) return { thinkingBudget: thinking ? dynamicBudget : smallestBudget(model) };
  const budget = budgetOfEffort[effort];
  if (budget === undefined) {
    throw new TurnsweepError(errorNames.usage, `there is no reasoning effort ${effort}`, {
      where: model,
      remedy: `use one of ${Object.keys(budgetOfEffort).join(', ')}`,
    });
  }
  return { thinkingBudget: Math.max(budget, smallestBudget(model)) };
};

/**
 * Everything of the body before the contents; the body ends with `]}`. `mediaResolution` stays the model's own.
 * Throws `UsageWrong` for an effort that a model with budgets does not have.
 */
export const bodyHead = (model: string, settings: LaneSettings, call: GeminiCall): string => {
  const members = {
    systemInstruction: call.system === undefined ? undefined : { parts: [{ text: call.system }] },
    generationConfig: {
      temperature: settings.temperature,
      topP: settings.topP,
      seed: settings.seed,
      maxOutputTokens: call.maxTokens,
      thinkingConfig: thinkingConfig(model, settings, call.reasoningEffort ?? settings.reasoningEffort),
    },
    safetySettings,
  };
  return `${JSON.stringify(members).slice(0, -1)},"contents":[`;
};

/** Media types by the names that ai.google.dev's video and audio pages list. */
const mimeNames: Readonly<Record<string, string>> = {
  'audio/mpeg': 'audio/mp3',
  'video/quicktime': 'video/mov',
};

interface Loading {
  clips: ClipSource;
  forms: ClipForms;
  /** Frames a second at which the provider samples video; null: its own rate. */
  fps: number | null;
}

/** Contents of a frozen request: parts in their order, earlier replies as turns of the model; a system turn apart. */
export const mediaContents = async (
  messages: readonly ResolvedMessage[],
  loading: Loading,
): Promise<{ system: string | undefined; pieces: JsonPiece[]; sent: ClipCounts }> => {
  const { system, others } = splitSystemTurn(messages);
  const written = await Promise.all(
    others.map(async (message): Promise<JsonPiece[]> => {
      if (message.role === 'assistant') {
        return [`{"role":"model","parts":[{"text":${JSON.stringify(message.text)}}]}`];
      }
      const parts = await Promise.all(message.content.map((part) => writePart(part, loading)));
      return ['{"role":"user","parts":[', ...separated(parts), ']}'];
    }),
  );
  return { system: system ?? undefined, pieces: separated(written), sent: clipCounts(messages) };
};

const separated = (items: readonly JsonPiece[][]): JsonPiece[] =>
  items.flatMap((pieces, index) => (index === 0 ? pieces : [',', ...pieces]));

const writePart = async (part: ResolvedPart, { clips, forms, fps }: Loading): Promise<JsonPiece[]> => {
  if (part.type === 'text') return [`{"text":${JSON.stringify(part.text)}}`];
  const clip = await loadWholeClip(clips, part, forms);
  const mime = mimeNames[clip.mime] ?? clip.mime;
  const sampled = part.type === 'video' && fps !== null ? `,"videoMetadata":{"fps":${fps}}` : '';
  return [`{"inlineData":{"mimeType":${JSON.stringify(mime)},"data":"`, bareBase64(clip), `"}${sampled}}`];
};
