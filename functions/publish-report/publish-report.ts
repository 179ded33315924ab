import { z } from 'zod';
import { renderPage } from '../../report/page.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';

export interface PublishReportPorts {
  store: ObjectStore;
}

const publishReportInput = z.strictObject({ run: z.string() });

const publishedSummary = z.looseObject({
  run: z.string(),
  contractHash: z.string(),
  seed: z.number(),
  counts: z.looseObject({
    views: z.number(),
    valid: z.number(),
    excluded: z.number(),
    pending: z.number(),
    open: z.number(),
    calls: z.number(),
    costMicroUsd: z.number().nullable(),
    knownCostMicroUsd: z.number().default(0),
    unpricedCalls: z.number().default(0),
  }),
  priceDate: z.string().nullable(),
  tables: z.array(
    z.strictObject({ title: z.string(), header: z.array(z.string()), rows: z.array(z.array(z.string())) }),
  ),
});

/** Makes the page for people from `summary.json`; every figure on it stands in that file. */
export const createPublishReport =
  ({ store }: PublishReportPorts) =>
  async (rawInput: unknown): Promise<{ page: string }> => {
    const { run } = publishReportInput.parse(rawInput);
    const key = keys.run.report(run, 'summary.json');
    const text = await store.getText(key);
    if (text === null) {
      throw new TurnsweepError(errorNames.objectMissing, 'nothing to publish yet', {
        where: key,
        remedy: 'run `turnsweep report` first',
      });
    }
    const { counts, tables, contractHash, seed, priceDate } = publishedSummary.parse(JSON.parse(text));
    const page = keys.run.report(run, 'index.html');
    await store.put(
      page,
      renderPage({
        title: `turnsweep: ${run}`,
        facts: [
          [
            'Views',
            `${counts.valid} valid, ${counts.excluded} excluded, ${counts.pending} awaiting review, ${counts.open} open`,
          ],
          ['Calls', String(counts.calls)],
          ['Cost', costText(counts)],
          ...(priceDate === null ? [] : [['List prices as of', priceDate] as const]),
          ['Contract', contractHash],
          ['Seed', String(seed)],
        ],
        tables,
      }),
    );
    return { page };
  };

const costText = (counts: {
  costMicroUsd: number | null;
  knownCostMicroUsd: number;
  unpricedCalls: number;
}): string => {
  if (counts.costMicroUsd !== null) return `$${(counts.costMicroUsd / 1e6).toFixed(2)}`;
  const known =
    counts.knownCostMicroUsd === 0 ? 'unknown' : `at least $${(counts.knownCostMicroUsd / 1e6).toFixed(2)}`;
  return `${known} (${counts.unpricedCalls} calls of unknown cost)`;
};
