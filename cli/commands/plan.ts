import { summarizeLane } from '../../functions/plan-sweep/plan-sweep.ts';
import type { LaneSummary } from '../../shared/contracts/plan.ts';
import { exitCodes } from '../exit-codes.ts';
import { priceOf } from '../lane-prices.ts';
import { type PreparedRun, prepareRun } from '../prepare-run.ts';
import { readSweepFile } from '../read-sweep.ts';
import { jsonLine, print, printable, renderTable } from '../terminal.ts';

export interface PlannedLane extends LaneSummary {
  /** Prompts with their clips, and every reply, in them and after them, as long as the first cap allows. */
  promptTokensProjected: number;
  mediaTokensProjected: number;
  replyTokensAtMost: number;
  /** Null where the price is unknown. */
  costUsdAtMost: number | null;
  /** What the figures rest on. */
  assumptions: readonly string[];
  /** Where the price came from; null where there is none or none is needed. */
  price: { source: string; seen: string | null; note: string | null } | null;
  /** Why the price, or a part of it, is unknown. */
  priceUnknown: string | null;
}

const planLanes = (prepared: PreparedRun): PlannedLane[] =>
  prepared.contract.lanes.map((lane, index) => {
    const { price, projection } = prepared.settings.lanes[index]!;
    const { promptTokens, mediaTokens, replyTokens, costMicroUsd, assumptions } = projection!;
    const isUnknown = costMicroUsd === null;
    const { why } = priceOf(lane, new Date().toISOString());
    return {
      ...summarizeLane(lane.id, prepared.plans.get(lane.id)!),
      promptTokensProjected: promptTokens,
      mediaTokensProjected: mediaTokens,
      replyTokensAtMost: replyTokens,
      costUsdAtMost: isUnknown ? null : costMicroUsd / 1e6,
      assumptions,
      price: price && { source: price.source!, seen: price.seen ?? null, note: price.note ?? null },
      priceUnknown: isUnknown ? (why ?? 'not in the price book; add "price" to the sweep file') : null,
    };
  });

const tokensText = (tokens: number): string =>
  tokens < 1e6 ? String(tokens) : `${(tokens / 1e6).toFixed(1)} M`;

/** What the table alone does not say: where prices come from, why one is unknown, what the figures rest on. */
const notesOf = ({ lane, price, priceUnknown, assumptions }: PlannedLane): string[] => [
  ...(priceUnknown === null ? [] : [`${lane}: price unknown: ${priceUnknown}`]),
  ...(price === null || priceUnknown !== null
    ? []
    : [
        `${lane}: price from ${price.source === 'sweep file' ? 'the sweep file' : price.source}${price.seen === null ? '' : `, seen ${price.seen}`}${price.note === null ? '' : ` (${price.note})`}`,
      ]),
  ...(assumptions.length === 0 ? [] : [`${lane}: assumed: ${assumptions.join('; ')}`]),
];

export const plan = async (
  sweepPath: string,
  options: { limit?: number; json?: boolean },
): Promise<number> => {
  const sweep = await readSweepFile(sweepPath);
  const prepared = await prepareRun(sweep, sweepPath, { limit: options.limit ?? null });
  const lanes = planLanes(prepared);
  if (options.json) {
    print(jsonLine({ run: prepared.run, contractHash: prepared.contractHash, lanes }, 2));
    return exitCodes.complete;
  }
  print(`run ${prepared.run}`);
  print(
    renderTable(
      [
        'Lane',
        'Tasks',
        'Views',
        'Groups',
        'Requests',
        'if views ran alone',
        'Judge items ≤',
        'Prompt tokens ~',
        'of them clips',
        'Reply tokens ≤',
        'Cost ≤',
      ],
      lanes.map((lane) => [
        lane.lane,
        String(lane.tasks),
        String(lane.views),
        String(lane.groups),
        String(lane.distinctRequests),
        String(lane.requestsOfViewsAlone),
        String(lane.judgeItemsAtMost),
        tokensText(lane.promptTokensProjected),
        tokensText(lane.mediaTokensProjected),
        tokensText(lane.replyTokensAtMost),
        lane.costUsdAtMost === null ? 'price unknown' : `$${lane.costUsdAtMost.toFixed(2)}`,
      ]),
    ),
  );
  for (const line of lanes.flatMap(notesOf)) print(printable(line));
  return exitCodes.complete;
};
