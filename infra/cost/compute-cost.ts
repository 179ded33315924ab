import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { stageSizes } from '../config/stages.ts';
import { prices } from './prices.ts';

/** What the sweep is, and how the stages behave; the second half is held to the code by a test. */
export interface SweepShape {
  views: number;
  /** Calls to evaluated models: every distinct request of a model once. */
  requests: number;
  /** Requests that the views need, shared ones counted for each view. */
  requestsOfViewsAlone: number;
  viewsPerGroup: number;
  /** Items that go to the judge: at most every open answer. */
  judgeItems: number;
  itemsPerChunk: number;
  meanCallSeconds: number;
  /** Calls that fail in passing and are made again, of all calls. */
  retriedShare: number;
  /** Deliveries that end as `continue` because time is short, of all views. */
  continuedShare: number;
}

export const paperSweep: SweepShape = {
  views: 95_000,
  requests: 291_000,
  requestsOfViewsAlone: 427_500,
  // The release's preview has 160 views in 40 groups.
  viewsPerGroup: 4,
  // Half of the views are open answers with two final replies each, a quarter of which is shared.
  judgeItems: 71_250,
  itemsPerChunk: 20,
  meanCallSeconds: 10,
  retriedShare: 0.05,
  continuedShare: 0.01,
};

/** What one step does, counted in the stages' code. */
export const behaviour = {
  /** Reply, failure, stopped lane, attempts. */
  getsPerCall: 4,
  putsPerCall: 1,
  /** The view's group. */
  getsPerDelivery: 1,
  /** A request that an earlier view has made: its reply. */
  getsPerReusedRequest: 1,
  /** The log of attempts. */
  putsPerFailedAttempt: 1,
  /** Two marks of the lease and the answer's. */
  ledgerWritesPerDelivery: 3,
  /** Reserve and settle, each a transaction on two accounts and the reservation, at two units an item. */
  ledgerWriteUnitsPerCall: 12,
  /** The reservation, before it is settled. */
  ledgerReadsPerCall: 1,
  /** The run's balance, for the metric. */
  ledgerReadsPerDelivery: 1,
  /** Send, receive, delete. */
  queueRequestsPerDelivery: 3,
  /** Chunk, attempts, and the judge's assignment. */
  getsPerChunk: 3,
  putsPerChunk: 2,
  /** Loading, recording, answering: what a delivery takes besides its calls. */
  ownSecondsPerDelivery: 0.4,
  functionLogKb: 1.5,
  stateLogKbPerTransition: 1.6,
  /** The default rule traces the first of each second and one in twenty. */
  tracedShare: 0.06,
  mediaMbPerCall: 0.3,
} as const;

/** Clips that the first sweep makes where providers want another form; assumed, and kept for later sweeps. */
export const clipsToMake = { clips: 10_000, secondsPerClip: 4 };

export interface CostLine {
  what: string;
  count: number;
  unit: string;
  usd: number;
}

interface State {
  Type: string;
  Next?: string;
  End?: boolean;
  Choices?: { Next: string; StringEquals?: string; And?: { StringEquals?: string }[] }[];
  ItemProcessor?: Definition;
  Branches?: Definition[];
}
interface Definition {
  StartAt: string;
  States: Record<string, State>;
}

const machines = path.join(import.meta.dirname, '..', '..', 'state-machines');
const definition = (name: string): Definition =>
  JSON.parse(readFileSync(path.join(machines, `${name}.asl.json`), 'utf8'));

/** The states that are entered from `start` when each outcome says `status`, until the end or `stop`. */
export const statesEntered = (
  machine: Definition,
  status: string,
  start = machine.StartAt,
  stop?: string,
): string[] => {
  const entered: string[] = [];
  for (let name: string | undefined = start; name !== undefined && name !== stop; ) {
    entered.push(name);
    const state: State = machine.States[name]!;
    const chosen = state.Choices?.find(
      (rule) => rule.StringEquals === status || rule.And?.some((part) => part.StringEquals === status),
    );
    if (state.Type === 'Choice' && chosen === undefined)
      throw new Error(`no branch for ${status} in ${name}`);
    name = chosen?.Next ?? state.Next;
  }
  return entered;
};

/** What runs inside a state, inside that in another one, and so on: a Map's processor, a Parallel's first branch. */
const processor = (machine: Definition, ...names: string[]): Definition =>
  names.reduce<Definition>((inner, name) => {
    const { ItemProcessor, Branches } = inner.States[name]!;
    return ItemProcessor ?? Branches![0]!;
  }, machine);

/** State transitions of each grain, read from the definitions. Starting an execution is counted as one. */
export const transitions = () => {
  const sweep = definition('sweep');
  const group = definition('view-group');
  const chunk = processor(definition('judging'), 'Judge Chunks');
  const view = processor(group, 'Run Views');
  const start = 1;
  return {
    perView: statesEntered(view, 'done').length,
    perRetry: statesEntered(view, 'retry', 'Turn Outcome', 'Generate Turns').length + 1,
    perContinue: statesEntered(view, 'continue', 'Turn Outcome', 'Generate Turns').length + 1,
    perGroup:
      start +
      statesEntered(processor(sweep, 'Evaluate Lanes', 'Run Lane', 'Evaluate Groups'), '').length +
      start +
      statesEntered(group, '').length,
    perClip: start + statesEntered(processor(sweep, 'Prepare Media'), '').length,
    perChunk: start + statesEntered(chunk, 'done').length,
    perChunkRetry: statesEntered(chunk, 'retry', 'Judge Outcome', 'Judge Answers').length + 1,
  };
};

/** Infrastructure cost of a sweep in dollars, line by line. Tokens are not in it. */
export const computeCost = (shape: SweepShape): CostLine[] => {
  const steps = transitions();
  const groups = shape.views / shape.viewsPerGroup;
  const chunks = Math.ceil(shape.judgeItems / shape.itemsPerChunk);
  const retries = shape.requests * shape.retriedShare;
  const chunkRetries = chunks * shape.retriedShare;
  const continues = shape.views * shape.continuedShare;
  const deliveries = shape.views + retries + continues;
  const chunkDeliveries = chunks + chunkRetries;
  const calls = shape.requests + retries;
  const reused = shape.requestsOfViewsAlone - shape.requests;

  const transitionCount =
    shape.views * steps.perView +
    retries * steps.perRetry +
    continues * steps.perContinue +
    groups * steps.perGroup +
    chunks * steps.perChunk +
    chunkRetries * steps.perChunkRetry;
  const gigabytes = (stage: 'generate-turns' | 'judge-answers') => stageSizes[stage].memoryMb / 1024;
  const turnsGbSeconds =
    (calls * shape.meanCallSeconds + deliveries * behaviour.ownSecondsPerDelivery) *
    gigabytes('generate-turns');
  const judgeGbSeconds =
    chunkDeliveries * (shape.meanCallSeconds + behaviour.ownSecondsPerDelivery) * gigabytes('judge-answers');
  // Planning, judging's plan, aggregation: at most their whole time each.
  const planners = ['plan-sweep', 'plan-judging', 'aggregate-run'] as const;
  const plannersGbSeconds = planners.reduce(
    (sum, stage) => sum + (stageSizes[stage].memoryMb / 1024) * stageSizes[stage].timeoutSeconds!,
    0,
  );
  const puts =
    shape.requests * behaviour.putsPerCall +
    retries * behaviour.putsPerFailedAttempt +
    groups +
    shape.judgeItems +
    chunks * behaviour.putsPerChunk +
    (2 * shape.requests) / 1000;
  const gets =
    calls * behaviour.getsPerCall +
    reused * behaviour.getsPerReusedRequest +
    deliveries * behaviour.getsPerDelivery +
    // Scoring reads every record, aggregation every review.
    shape.requests +
    shape.judgeItems +
    chunkDeliveries * behaviour.getsPerChunk;
  const allDeliveries = deliveries + chunkDeliveries;
  const writeUnits =
    allDeliveries * behaviour.ledgerWritesPerDelivery +
    (calls + chunkDeliveries) * behaviour.ledgerWriteUnitsPerCall;
  const readUnits =
    allDeliveries * behaviour.ledgerReadsPerDelivery +
    (calls + chunkDeliveries) * behaviour.ledgerReadsPerCall;
  const logGb =
    (allDeliveries * behaviour.functionLogKb + transitionCount * behaviour.stateLogKbPerTransition) / 1e6;

  const line = (what: string, count: number, unit: string, usdEach: number): CostLine => ({
    what,
    count: count < 100 ? Math.round(count * 100) / 100 : Math.round(count),
    unit,
    usd: count * usdEach,
  });
  return [
    line('Step Functions', transitionCount, 'transitions', prices.transition.usd),
    line('Lambda, waiting for evaluated models', turnsGbSeconds, 'GB-seconds', prices.lambdaGbSecond.usd),
    line('Lambda, waiting for the judge', judgeGbSeconds, 'GB-seconds', prices.lambdaGbSecond.usd),
    line('Lambda, planning and reports', plannersGbSeconds, 'GB-seconds', prices.lambdaGbSecond.usd),
    line('Lambda, invocations', allDeliveries, 'invocations', prices.lambdaRequest.usd),
    line('SQS', allDeliveries * behaviour.queueRequestsPerDelivery, 'requests', prices.sqsRequest.usd),
    line('S3, writing and listing', puts, 'requests', prices.s3Put.usd),
    line('S3, reading', gets, 'requests', prices.s3Get.usd),
    line('DynamoDB, writing', writeUnits, 'write units', prices.dynamodbWrite.usd),
    line('DynamoDB, reading', readUnits, 'read units', prices.dynamodbRead.usd),
    line('CloudWatch Logs', logGb, 'GB', prices.logsGb.usd),
    line('X-Ray', 2 * allDeliveries * behaviour.tracedShare, 'traces', prices.traces.usd),
  ];
};

/** What making clips costs, in dollars. */
export const clipsUsd = ({ clips, secondsPerClip }: typeof clipsToMake): number =>
  clips *
  ((secondsPerClip * stageSizes['prepare-media'].memoryMb * prices.lambdaGbSecond.usd) / 1024 +
    prices.lambdaRequest.usd +
    transitions().perClip * prices.transition.usd +
    // The file and what is known of it; the look before, the original, and the child's result.
    2 * prices.s3Put.usd +
    3 * prices.s3Get.usd);

export const totalUsd = (lines: readonly CostLine[]): number => lines.reduce((sum, { usd }) => sum + usd, 0);

/** The upper limit that the design has to keep, in dollars. */
export const limitUsd = 35;

const dollars = (usd: number): string => `$${usd.toFixed(2)}`;
const grouped = (count: number): string => count.toLocaleString('en-US');

/** Prices are fractions of a cent: no powers of ten for people. */
const plainUsd = (usd: number): string => `$${usd.toFixed(12).replace(/0+$/, '').replace(/\.$/, '')}`;

/** A table in the columns that the formatter wants; `>` before a head aligns its column to the right. */
const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string => {
  const isRight = heads.map((head) => head.startsWith('>'));
  const names = heads.map((head) => head.replace(/^>/, ''));
  const widths = names.map((name, at) =>
    Math.max(3, ...[name, ...rows.map((row) => row[at]!)].map(({ length }) => length)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => (isRight[at] ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!))).join(' | ')} |`;
  const rule = widths.map((width, at) => (isRight[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)));
  return [line(names), line(rule), ...rows.map(line)].join('\n');
};

/** `docs/cost.md`. */
export const costPage = (shape: SweepShape = paperSweep): string => {
  const lines = computeCost(shape);
  const total = totalUsd(lines);
  const steps = transitions();
  const byCost = lines.toSorted((a, b) => b.usd - a.usd);
  const other = [5, 20, 40].map((meanCallSeconds) => ({
    meanCallSeconds,
    usd: totalUsd(computeCost({ ...shape, meanCallSeconds })),
  }));
  const noBudget =
    total -
    (shape.requests * (1 + shape.retriedShare) + Math.ceil(shape.judgeItems / shape.itemsPerChunk)) *
      behaviour.ledgerWriteUnitsPerCall *
      prices.dynamodbWrite.usd;
  const mediaGb = (shape.requests * (1 + shape.retriedShare) * behaviour.mediaMbPerCall) / 1000;
  return `# What a sweep costs on AWS

Written by \`npm run cost\` (\`infra/cost/compute-cost.ts\`); a test computes it again. Infrastructure only: tokens are the
provider's bill, and at a cent a call they are a hundred times this. Free tiers are not counted.

**${grouped(shape.views)} views, ${grouped(shape.requests)} calls of ${shape.meanCallSeconds} s: ${dollars(total)}** (limit ${dollars(limitUsd)}).

${table(
  ['', '>count', 'unit', '>cost'],
  [
    ...lines.map(({ what, count, unit, usd }) => [what, grouped(count), unit, dollars(usd)]),
    ['**together**', '', '', `**${dollars(total)}**`],
  ],
)}

${byCost[0]!.what} (${Math.round((100 * byCost[0]!.usd) / total)} %) and ${byCost[1]!.what} (${Math.round((100 * byCost[1]!.usd) / total)} %) dominate.

${table(
  ['>mean call', '>cost'],
  other.map(({ meanCallSeconds, usd }) => [`${meanCallSeconds} s`, dollars(usd)]),
)}

- Memory is a straight multiplier of the waiting: a stage that only waits has ${stageSizes['generate-turns'].memoryMb} MB.
- A run without a budget reserves nothing: ${dollars(noBudget)}.
- Clips leave through the functions: at ${behaviour.mediaMbPerCall} MB a call about ${mediaGb.toFixed(0)} GB, ${dollars(mediaGb * prices.egressGb.usd)} more that no
  design of ours saves while the provider takes no addresses. Text-only benchmarks have none.
- Clips in another form are made once and kept for 90 days: ${grouped(clipsToMake.clips)} of them at ${clipsToMake.secondsPerClip} s each ${dollars(clipsUsd(clipsToMake))} more.
- Standing cost a month: the bucket's key $1, each provider key $0.40, each alarm $0.10, the dashboard $3, stored data. No NAT
  gateway, no endpoint with an hourly price, no GPU while no job waits.

## From what

State transitions, read from \`state-machines/*.asl.json\` (starting an execution counted as one):

${table(
  ['grain', '>transitions'],
  [
    ['view, done at once', String(steps.perView)],
    ['failed call made again', String(steps.perRetry)],
    ['view continued in another delivery', String(steps.perContinue)],
    ['view group', String(steps.perGroup)],
    ['judge chunk', String(steps.perChunk)],
  ],
)}

The sweep: ${grouped(shape.requestsOfViewsAlone)} requests if every view ran alone, ${shape.viewsPerGroup} views a group, at most ${grouped(shape.judgeItems)} items for the judge,
${shape.itemsPerChunk} a chunk, ${100 * shape.retriedShare} % of the calls made twice. The stages: ${behaviour.getsPerCall} reads and ${behaviour.putsPerCall} write of S3 a call, ${behaviour.ledgerWritesPerDelivery} ledger
writes a delivery, ${behaviour.ledgerWriteUnitsPerCall} write units a call under a budget, counted in the code.

Prices of us-east-1:

${table(
  ['', '>price', 'as of', 'source'],
  Object.values(prices).map(({ usd, per, asOf, source }) => [per, plainUsd(usd), asOf, source]),
)}
`;
};

if (import.meta.main) {
  if (process.argv.includes('--write')) {
    writeFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'cost.md'), costPage());
  } else process.stdout.write(costPage());
}
