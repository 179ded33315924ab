import type { Benchmark, Verdict } from '../benchmarks/benchmark.ts';
import { keys } from '../keys.ts';
import { judgeId } from '../naming.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { RunContext } from './run-context.ts';

/** The run's judge under the name that its reviews are stored by; null where the sweep has none. */
export const judgeIdOf = (context: RunContext, promptVersion: string): string | null =>
  context.settings.judge === null
    ? null
    : judgeId({
        model: context.settings.judge.model,
        promptVersion,
        reasoningEffort: context.settings.judge.reasoningEffort,
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
