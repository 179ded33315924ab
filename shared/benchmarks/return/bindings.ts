import type { InputRow } from './release-format.ts';

/** The part of an input row that execution order needs. */
export type BoundRequest = Pick<InputRow, 'messages'>;

/** Requests whose raw replies stand in a request's history, in message order. */
export const boundRequestIds = (row: BoundRequest): string[] =>
  row.messages.flatMap((message) =>
    message.role === 'assistant' ? [message.content_binding.request_id] : [],
  );

interface Visit {
  requestId: string;
  pending: string[];
}

/**
 * Every request reached from the roots over bindings, each once, dependencies before dependents
 * (depth-first post-order: roots in the order given, bindings in message order). Unknown ids are leaves.
 * `onCycle` gets the ids of each cycle met; the walk goes on without the edge that closes it.
 */
export function dependenciesFirst(
  roots: Iterable<string>,
  inputs: ReadonlyMap<string, BoundRequest>,
  onCycle?: (requestIds: string[]) => void,
): string[] {
  const order: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  const open = (requestId: string): Visit => {
    state.set(requestId, 'open');
    const row = inputs.get(requestId);
    return { requestId, pending: row === undefined ? [] : boundRequestIds(row).reverse() };
  };
  for (const root of roots) {
    if (state.has(root)) continue;
    const path = [open(root)];
    for (let visit = path.at(-1); visit !== undefined; visit = path.at(-1)) {
      const next = visit.pending.pop();
      if (next === undefined) {
        state.set(visit.requestId, 'done');
        order.push(visit.requestId);
        path.pop();
      } else if (!state.has(next)) path.push(open(next));
      else if (state.get(next) === 'open' && onCycle !== undefined) {
        const ids = path.map((step) => step.requestId);
        onCycle(ids.slice(ids.indexOf(next)));
      }
    }
  }
  return order;
}
