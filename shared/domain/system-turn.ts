import { errorNames, TurnsweepError } from '../errors.ts';
import type { Capabilities } from './capabilities.ts';
import type { ResolvedMessage } from './request.ts';

/** How a system prompt reaches a model: as a turn of its own, or inside the first user message. */
export type SystemPromptDelivery = 'native' | 'folded';

/** The lane's own wish (`settings.systemPrompt`) goes first; without one a turn of its own where the provider has such. */
export const systemPromptDelivery = (
  { takesSystemTurn }: Pick<Capabilities, 'takesSystemTurn'>,
  { systemPrompt }: { systemPrompt?: SystemPromptDelivery | undefined },
): SystemPromptDelivery => systemPrompt ?? (takesSystemTurn ? 'native' : 'folded');

/**
 * The messages without their system turn, its text as the first part of the first user message: before a time stamp,
 * before every clip (voxmem-protocol §3). Messages without a system turn come back as they are. Throws
 * `ContractViolated` where no user message follows.
 */
export const foldSystemTurn = (messages: readonly ResolvedMessage[]): ResolvedMessage[] => {
  const [system, ...others] = messages;
  if (system?.role !== 'system') return [...messages];
  const place = others.findIndex(({ role }) => role === 'user');
  const first = others[place];
  if (first?.role !== 'user') {
    throw new TurnsweepError(errorNames.contractViolated, 'a system turn has no user message to go into');
  }
  const folded: ResolvedMessage = {
    role: 'user',
    content: [{ type: 'text', text: system.text }, ...first.content],
  };
  return others.with(place, folded);
};

/** The text of the system turn, null without one, and the messages after it. */
export const splitSystemTurn = (
  messages: readonly ResolvedMessage[],
): { system: string | null; others: readonly Exclude<ResolvedMessage, { role: 'system' }>[] } => {
  const [first, ...rest] = messages;
  const others = (first?.role === 'system' ? rest : messages).map((message) => {
    if (message.role !== 'system') return message;
    throw new TurnsweepError(errorNames.contractViolated, 'a system turn is not the first message');
  });
  return { system: first?.role === 'system' ? first.text : null, others };
};
