import { createHash } from 'node:crypto';
import type { FrozenMessage, FrozenPart, FrozenRequest } from '../../domain/request.ts';
import { type BoundRequest, boundRequestIds, dependenciesFirst } from './bindings.ts';
import { byCodePoint } from './code-point-order.ts';
import type { InputRow, Interface, RequiredModality, TaskRow } from './release-format.ts';

/** One task seen through one interface: the unit of counting, for any one lane. */
export interface View {
  viewId: string;
  taskId: string;
  interface: Interface;
  /** The control and the history: both are scored. */
  targetRequestIds: string[];
  /** Execution order: the control, then the native turns (dependencies first), the history last. */
  requestIds: string[];
}

/** Views that share requests, directly or over others; they run in order, one group at a time. */
export interface ViewGroup {
  /** `g-` and 16 hex digits of the SHA-256 of the sorted view ids, joined by newlines. */
  groupId: string;
  views: View[];
}

/** Tasks a lane can be asked: those whose evidence is in a channel it is shown (return-protocol §3). */
export const laneTasks = (tasks: readonly TaskRow[], modalities: readonly RequiredModality[]): TaskRow[] =>
  tasks.filter((task) => modalities.includes(task.required_modality));

/** Views of the tasks: tasks in the order given, the interfaces of a task in the order given. */
export const planViews = (tasks: readonly TaskRow[], interfaces: readonly Interface[]): View[] =>
  tasks.flatMap((task) =>
    interfaces.map((name) => {
      const view = task.views[name];
      const requestIds = new Set([
        view.control_request_id,
        ...view.native_dependency_request_ids,
        view.history_request_id,
      ]);
      return {
        viewId: view.view_id,
        taskId: task.task_id,
        interface: name,
        targetRequestIds: [view.control_request_id, view.history_request_id],
        requestIds: [...requestIds],
      };
    }),
  );

const groupIdOf = (views: readonly View[]): string => {
  const ids = views.map((view) => view.viewId).sort(byCodePoint);
  return `g-${createHash('sha256').update(ids.join('\n')).digest('hex').slice(0, 16)}`;
};

/** Connected components of views over shared requests, ordered by their first view; views keep order. */
export function groupViews(views: readonly View[]): ViewGroup[] {
  const parent = views.map((_, index) => index);
  const rootOf = (index: number): number => {
    let root = index;
    while (parent[root] !== root) root = parent[root] = parent[parent[root]!]!;
    return root;
  };
  const firstViewOf = new Map<string, number>();
  views.forEach((view, index) => {
    for (const requestId of view.requestIds) {
      const first = firstViewOf.get(requestId);
      if (first === undefined) firstViewOf.set(requestId, index);
      else {
        const [a, b] = [rootOf(first), rootOf(index)];
        parent[Math.max(a, b)] = Math.min(a, b);
      }
    }
  });
  const members = new Map<number, View[]>();
  views.forEach((view, index) => {
    const root = rootOf(index);
    const group = members.get(root);
    if (group === undefined) members.set(root, [view]);
    else group.push(view);
  });
  return Array.from(members.values(), (group) => ({ groupId: groupIdOf(group), views: group }));
}

/** Requests that the views need, each once, in the order in which running the views meets them. */
export const distinctRequests = (views: readonly View[]): string[] => [
  ...new Set(views.flatMap((view) => view.requestIds)),
];

/** Most answers a judge can be asked about: the views' final requests, each once. */
export const reviewItemsAtMost = (views: readonly View[]): number =>
  new Set(views.flatMap((view) => view.targetRequestIds)).size;

/** Length of the longest chain of bindings under each request: 0 for one without history. */
export function requestDepths(
  requestIds: Iterable<string>,
  inputs: ReadonlyMap<string, BoundRequest>,
): Map<string, number> {
  const wanted = [...requestIds];
  const depths = new Map<string, number>();
  for (const requestId of dependenciesFirst(wanted, inputs)) {
    const row = inputs.get(requestId);
    const below = row === undefined ? [] : boundRequestIds(row).map((id) => depths.get(id) ?? 0);
    depths.set(
      requestId,
      below.reduce((deepest, depth) => Math.max(deepest, depth + 1), 0),
    );
  }
  return new Map(wanted.map((requestId) => [requestId, depths.get(requestId)!]));
}

/**
 * Order of the rows in the release's recorded `predictions.jsonl`: final requests (C and H0) sorted by
 * code point, each preceded by those of its native turns that did not come before. Native turns that no
 * final request of the set reaches follow, in the same manner.
 */
export function exportOrder(
  requestIds: Iterable<string>,
  inputs: ReadonlyMap<string, Pick<InputRow, 'condition' | 'messages'>>,
): string[] {
  const wanted = new Set(requestIds);
  const sorted = [...wanted].sort(byCodePoint);
  const isFinal = (id: string) => inputs.has(id) && inputs.get(id)!.condition !== 'AUX';
  const roots = [...sorted.filter(isFinal), ...sorted.filter((id) => !isFinal(id))];
  return dependenciesFirst(roots, inputs).filter((id) => wanted.has(id));
}

const frozenPart = (
  part: Extract<InputRow['messages'][number], { role: 'user' }>['content'][number],
): FrozenPart => {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'audio':
      return { type: 'audio', path: part.audio };
    case 'video':
      return { type: 'video', path: part.video };
  }
};

/** The request as the model-facing side of the system knows it; order of messages and parts as frozen. */
export const toFrozenRequest = (row: InputRow): FrozenRequest => ({
  requestId: row.request_id,
  messages: row.messages.map(
    (message): FrozenMessage =>
      message.role === 'user'
        ? { role: 'user', content: message.content.map(frozenPart) }
        : { role: 'assistant', replyOf: message.content_binding.request_id },
  ),
});
