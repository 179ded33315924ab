import { z } from 'zod';

/** One item of a lane's Distributed Map: keys only. */
export const groupRow = z.strictObject({
  groupId: z.string(),
  viewIds: z.array(z.string()).min(1),
});
export type GroupRow = z.infer<typeof groupRow>;

/** Views that an earlier version planned name their two scored requests by role. */
const asPlannedNow = (view: unknown): unknown => {
  if (typeof view !== 'object' || view === null || !('controlRequestId' in view)) return view;
  const { controlRequestId, historyRequestId, ...others } = view as Record<string, unknown>;
  return { ...others, targetRequestIds: [controlRequestId, historyRequestId] };
};

const viewOfNow = z.strictObject({
  viewId: z.string(),
  taskId: z.string(),
  interface: z.string(),
  /** The requests whose replies are scored: without one of them the view does not count. */
  targetRequestIds: z.array(z.string()).min(1),
  /** Every request that the view needs, dependencies before the requests bound to them. */
  requestIds: z.array(z.string()).min(1),
});
export type PlannedView = z.infer<typeof viewOfNow>;
export const plannedView: z.ZodType<PlannedView> = z.preprocess(asPlannedNow, viewOfNow);

const part = z.union([
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({
    type: z.enum(['audio', 'video']),
    path: z.string(),
    sha256: z.string().nullable(),
  }),
]);

export type PlannedMessage = z.infer<typeof plannedMessage>;
export const plannedMessage = z.union([
  z.strictObject({ role: z.literal('user'), content: z.array(part) }),
  z.strictObject({ role: z.literal('assistant'), replyOf: z.string() }),
  z.strictObject({ role: z.literal('assistant'), text: z.string() }),
  z.strictObject({ role: z.literal('system'), text: z.string() }),
]);

/** All that a worker needs to run a group's views: no gold, no options of the score. */
export const groupPlan = z.strictObject({
  /** 1: of an earlier version, with nothing but replies as assistant turns. */
  v: z.literal([1, 2]),
  groupId: z.string(),
  views: z.array(plannedView),
  /** By id; a list, since an id may be `__proto__`, which no JSON object keeps. */
  requests: z.array(z.tuple([z.string(), z.array(plannedMessage)])),
});
export type GroupPlan = z.infer<typeof groupPlan>;

export const laneSummary = z.strictObject({
  lane: z.string(),
  tasks: z.number().int(),
  views: z.number().int(),
  groups: z.number().int(),
  distinctRequests: z.number().int(),
  /** Requests that would be made if every view ran alone. */
  requestsOfViewsAlone: z.number().int(),
  judgeItemsAtMost: z.number().int(),
});
export type LaneSummary = z.infer<typeof laneSummary>;
