import type { Channel, FrozenMessage, FrozenPart, FrozenRequest } from '../../domain/request.ts';
import { sha256 } from '../../naming.ts';
import type { LanePlan } from '../benchmark.ts';
import type { ItemRow, SessionRow } from './format.ts';
import type { Inputs } from './read.ts';

/** The one way of asking that VoxMem has. */
export const spoken = 'spoken';

const timestampText = (timestamp: string): FrozenPart => ({
  type: 'text',
  text: `Session timestamp: ${timestamp}`,
});

const sessionMessages = ({ timestamp, turns }: SessionRow): FrozenMessage[] => {
  const firstUserTurn = turns.findIndex((turn) => turn.role === 'user');
  return turns.map((turn, index): FrozenMessage => {
    if (turn.role === 'assistant') return { role: 'assistant', text: turn.text };
    const clip: FrozenPart = { type: 'audio', path: turn.audio };
    return { role: 'user', content: index === firstUserTurn ? [timestampText(timestamp), clip] : [clip] };
  });
};

const itemOf = (inputs: Inputs, itemId: string): ItemRow => {
  const item = inputs.items.get(itemId);
  if (item === undefined) throw new Error(`no item ${itemId} in the release`);
  return item;
};

const historyOf = (inputs: Inputs, item: ItemRow): SessionRow[] =>
  item.session_keys.map((key) => {
    const session = inputs.sessions.get(key);
    if (session === undefined) throw new Error(`no session ${key} in the release`);
    return session;
  });

/**
 * The one call of an item, turn by turn as voxmem-protocol §3 has it: nothing stands in it but the system prompt, the
 * timestamps, the clips and the fixed turns of the assistant. Of the last turn the protocol says only that it has "the
 * timestamp text": it is the label of the sessions with `query_timestamp`, which is how the public evaluation writes it.
 */
export const frozenRequest = (inputs: Inputs, itemId: string, systemPrompt: string): FrozenRequest => {
  const item = itemOf(inputs, itemId);
  return {
    requestId: itemId,
    messages: [
      { role: 'system', text: systemPrompt },
      ...historyOf(inputs, item).flatMap(sessionMessages),
      {
        role: 'user',
        content: [timestampText(item.query_timestamp), { type: 'audio', path: item.question_audio }],
      },
    ],
  };
};

/** Clips that an item's request sends, the question among them. */
export const clipCount = (inputs: Inputs, itemId: string): number =>
  historyOf(inputs, itemOf(inputs, itemId)).reduce(
    (count, { turns }) => count + turns.filter((turn) => turn.role === 'user').length,
    1,
  );

/**
 * Views of a lane: one an item, one request a view, and no two share any, so that each is a group of its own. A lane
 * without the audio channel is asked nothing.
 */
export const planItems = (itemIds: readonly string[], modalities: readonly Channel[]): LanePlan => {
  const taskIds = modalities.includes('A') ? [...itemIds] : [];
  const views = taskIds.map((itemId) => ({
    viewId: `${itemId}/${spoken}`,
    taskId: itemId,
    interface: spoken,
    targetRequestIds: [itemId],
    requestIds: [itemId],
  }));
  return {
    taskIds,
    views,
    groups: views.map(({ viewId }) => ({ groupId: `g-${sha256(viewId).slice(0, 16)}`, viewIds: [viewId] })),
  };
};
