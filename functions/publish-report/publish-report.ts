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
  }),
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
    const { counts, tables, contractHash, seed } = publishedSummary.parse(JSON.parse(text));
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
          [
            'Cost',
            counts.costMicroUsd === null
              ? 'unknown (a price is missing)'
              : `$${(counts.costMicroUsd / 1e6).toFixed(2)}`,
          ],
          ['Contract', contractHash],
          ['Seed', String(seed)],
        ],
        tables,
      }),
    );
    return { page };
  };
