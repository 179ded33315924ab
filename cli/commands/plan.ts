import { summarizeLane } from '../../functions/plan-sweep/plan-sweep.ts';
import type { LaneSummary } from '../../shared/contracts/plan.ts';
import { exitCodes } from '../exit-codes.ts';
import { type PreparedRun, prepareRun } from '../prepare-run.ts';
import { readSweepFile } from '../read-sweep.ts';
import { jsonLine, print, renderTable } from '../terminal.ts';

export interface LaneProjection extends LaneSummary {
  /** If every reply used the whole first cap; prompts are counted from texts and clips. */
  promptTokensProjected: number;
  replyTokensAtMost: number;
  costUsdAtMost: number | null;
}

/** Rough tokens of a clip: media are priced exactly only by the provider. */
const tokensPerClip = 1_000;
const bytesPerToken = 4;

/** Prompt tokens of every distinct request, each reply in a history counted at the lane's first cap. */
const promptTokens = (prepared: PreparedRun, lane: PreparedRun['contract']['lanes'][number]): number => {
  const requestIds = new Set(prepared.plans.get(lane.id)!.views.flatMap((view) => view.requestIds));
  let tokens = 0;
  for (const requestId of requestIds) {
    for (const message of prepared.benchmark.frozenRequest(prepared.inputs, requestId).messages) {
      if (message.role === 'assistant') {
        tokens += lane.maxTokens;
        continue;
      }
      for (const part of message.content) {
        if (part.type === 'text') tokens += Math.ceil(Buffer.byteLength(part.text) / bytesPerToken);
        else if (lane.modalities.includes(part.type === 'video' ? 'V' : 'A')) tokens += tokensPerClip;
      }
    }
  }
  return tokens;
};

export const projectLanes = (prepared: PreparedRun): LaneProjection[] =>
  prepared.contract.lanes.map((lane, index) => {
    const summary = summarizeLane(lane.id, prepared.plans.get(lane.id)!);
    const promptTokensProjected = promptTokens(prepared, lane);
    const replyTokensAtMost = summary.distinctRequests * lane.maxTokens;
    const price = prepared.settings.lanes[index]!.price;
    const costUsdAtMost =
      lane.provider === 'recorded'
        ? 0
        : price === null
          ? null
          : (promptTokensProjected * price.inputPerMTok + replyTokensAtMost * price.outputPerMTok) / 1e6;
    return { ...summary, promptTokensProjected, replyTokensAtMost, costUsdAtMost };
  });

export const plan = async (
  sweepPath: string,
  options: { limit?: number; json?: boolean },
): Promise<number> => {
  const sweep = await readSweepFile(sweepPath);
  const prepared = await prepareRun(sweep, sweepPath, { limit: options.limit ?? null });
  const lanes = projectLanes(prepared);
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
        String(lane.promptTokensProjected),
        lane.costUsdAtMost === null ? 'price unknown' : `$${lane.costUsdAtMost.toFixed(2)}`,
      ]),
    ),
  );
  return exitCodes.complete;
};
