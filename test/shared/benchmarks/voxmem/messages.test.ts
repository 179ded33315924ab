import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { clipCount, frozenRequest, planItems } from '../../../../shared/benchmarks/voxmem/messages.ts';
import type { Inputs } from '../../../../shared/benchmarks/voxmem/read.ts';
import { anItem, aSession, clip } from './release-builders.ts';

const inputs = (): Inputs => {
  const sessions = [
    aSession('s1', '2025-05-25 09:05', 'u:one', 'a:The labour movement is old.', 'u:two', 'a:Yes.'),
    aSession('s2', '2025-05-25 09:05', 'a:Welcome back!', 'u:three', 'u:four'),
  ];
  const items = [
    anItem('q1', '8k', { session_keys: ['s2', 's1'], query_timestamp: '2025-12-15 00:49' }),
    anItem('q1', '16k', { session_keys: ['s1', 's2', 's1'] }),
  ];
  return {
    items: new Map(items.map((item) => [item.item_id, item])),
    sessions: new Map(sessions.map((session) => [session.session_key, session])),
  };
};

describe('the request of an item', () => {
  it('is the system prompt, the sessions in order and the spoken question, turn by turn', () => {
    const request = frozenRequest(inputs(), 'q1_8k', 'Answer briefly.');

    const audio = (name: string) => ({ type: 'audio', path: clip(name) });
    const text = (value: string) => ({ type: 'text', text: value });
    expect(request).toEqual({
      requestId: 'q1_8k',
      messages: [
        { role: 'system', text: 'Answer briefly.' },
        { role: 'assistant', text: 'Welcome back!' },
        { role: 'user', content: [text('Session timestamp: 2025-05-25 09:05'), audio('three')] },
        { role: 'user', content: [audio('four')] },
        { role: 'user', content: [text('Session timestamp: 2025-05-25 09:05'), audio('one')] },
        { role: 'assistant', text: 'The labour movement is old.' },
        { role: 'user', content: [audio('two')] },
        { role: 'assistant', text: 'Yes.' },
        { role: 'user', content: [text('Session timestamp: 2025-12-15 00:49'), audio('ask-q1')] },
      ],
    });
  });

  it('counts its clips, a session as often as it stands in the history', () => {
    expect([clipCount(inputs(), 'q1_8k'), clipCount(inputs(), 'q1_16k')]).toEqual([5, 7]);
  });

  it('is none for what the release does not have', () => {
    const { items } = inputs();

    expect(() => frozenRequest(inputs(), 'q9_8k', 'x')).toThrow('no item q9_8k in the release');
    expect(() => frozenRequest({ items, sessions: new Map() }, 'q1_8k', 'x')).toThrow('no session s2');
  });
});

describe('the plan of a lane', () => {
  it('is one view, one request and one group an item', () => {
    const plan = planItems(['q1_16k', 'q1_8k'], ['A', 'V']);

    const groupId = (viewId: string) => `g-${createHash('sha256').update(viewId).digest('hex').slice(0, 16)}`;
    expect(plan).toEqual({
      taskIds: ['q1_16k', 'q1_8k'],
      views: ['q1_16k', 'q1_8k'].map((itemId) => ({
        viewId: `${itemId}/spoken`,
        taskId: itemId,
        interface: 'spoken',
        targetRequestIds: [itemId],
        requestIds: [itemId],
      })),
      groups: [
        { groupId: groupId('q1_16k/spoken'), viewIds: ['q1_16k/spoken'] },
        { groupId: groupId('q1_8k/spoken'), viewIds: ['q1_8k/spoken'] },
      ],
    });
  });

  it('is empty for a lane that hears nothing', () => {
    expect(planItems(['q1_8k'], ['V'])).toEqual({ taskIds: [], views: [], groups: [] });
  });
});
