import { z } from 'zod';
import type { Benchmark, JudgeProtocol, RuleScore, Verdict } from '../benchmarks/benchmark.ts';
import { review } from '../contracts/reviews.ts';
import { keys } from '../keys.ts';
import { judgeId } from '../naming.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { readAhead } from './read-ahead.ts';
import { listedHashes, type RunContext } from './run-context.ts';
import { objectDamaged, readStored } from './stored-json.ts';

/** A scored reply as it lies in the store; what a benchmark left in a row is its own affair. */
export const ruleScore: z.ZodType<RuleScore> = z.strictObject({
  requestId: z.string(),
  reviewKey: z.string().nullable(),
  row: z.unknown(),
});

/** The review key of a request's item of the second round. */
export const followUpRow = z.strictObject({ requestId: z.string(), key: z.string() });

/** The run's judge under the name that its reviews are stored by; null where the sweep has none. */
export const judgeIdOf = (
  { settings }: RunContext,
  { promptVersion }: Pick<JudgeProtocol, 'promptVersion'>,
): string | null =>
  settings.judge === null
    ? null
    : judgeId({
        model: settings.judge.model,
        promptVersion,
        reasoningEffort: settings.judge.reasoningEffort,
      });

/** Reviews made elsewhere that the user brought, by item key. */
export const importedReviews = async (
  store: ObjectStore,
  benchmark: Benchmark,
  run: string,
): Promise<Map<string, Verdict>> => {
  const key = keys.judging.imported(run);
  const text = await store.getText(key);
  if (text === null) return new Map();
  return (await benchmark.importReviews(key, text.split('\n'))).reviews;
};

/** A judge under the name that its reviews are stored by, and the model that it is. */
const namedJudge = z.strictObject({ judge: z.string(), model: z.string() });
export type NamedJudge = z.infer<typeof namedJudge>;

/** The verdicts of one judge, as far as they were read. */
export interface StoredVerdicts extends NamedJudge {
  /** Reads what the store has of these items and is not read yet. Throws `ObjectDamaged`. */
  read(itemKeys: Iterable<string>): Promise<void>;
  verdict(itemKey: string): Verdict | null;
}

export const openVerdicts = async (
  store: ObjectStore,
  { judge, model }: NamedJudge,
): Promise<StoredVerdicts> => {
  const stored = await listedHashes(store, keys.reviews.judge(judge));
  const keyOf = (key: string): string => keys.reviews.review(judge, key);
  const verdicts = new Map<string, Verdict>();
  return {
    judge,
    model,
    async read(itemKeys) {
      const wanted = [...itemKeys].filter((key) => stored.has(key) && !verdicts.has(key));
      for await (const [key, found] of readAhead(wanted, (key) => readStored(store, keyOf(key), review))) {
        if (found === null || found.key !== key)
          throw objectDamaged(keyOf(key), 'it is not the review of this item');
        verdicts.set(key, found);
      }
    },
    verdict: (itemKey) => verdicts.get(itemKey) ?? null,
  };
};

/** Every judge that the run was given to, in order. */
export const judgesOf = async (store: ObjectStore, run: string): Promise<NamedJudge[]> =>
  (await readStored(store, keys.judging.judges(run), z.array(namedJudge))) ?? [];

/** Notes that the run is given to a judge. */
export const noteJudge = async (store: ObjectStore, run: string, named: NamedJudge): Promise<void> => {
  const known = await judgesOf(store, run);
  if (known.some(({ judge }) => judge === named.judge)) return;
  await store.put(keys.judging.judges(run), JSON.stringify([...known, named]));
};
