import type { Problem } from '../../errors.ts';
import { createProblemLog, type ReadLimits, readRows, type TextFile } from '../read-rows.ts';
import type { JudgeVerdict } from './judge-reply.ts';
import { type ReviewCacheRow, reviewCacheRowSchema } from './release-format.ts';

export interface ImportedVerdict extends JudgeVerdict {
  /** As the row names it; null where it does not. */
  judgeModel: string | null;
}

export interface ImportedReviews {
  /** By review identity; a later row wins over an earlier one. */
  verdicts: Map<string, ImportedVerdict>;
  /** Rows that could not be used. */
  problems: Problem[];
  /** Rows that replaced another verdict or format judgment on the same identity. */
  conflicts: Problem[];
}

/** Reads review caches (`review_cache.jsonl`), files in the order given. Throws only what reading throws. */
export async function importReviews(
  sources: readonly TextFile[],
  limits: ReadLimits = {},
): Promise<ImportedReviews> {
  const log = createProblemLog([], limits.maxProblems);
  const conflictLog = createProblemLog([], limits.maxProblems);
  const verdicts = new Map<string, ImportedVerdict>();
  for (const source of sources) {
    const onRow = ({ identity, judgment, judge_model }: ReviewCacheRow, line: number) => {
      const next: ImportedVerdict = {
        verdict: judgment.verdict,
        formatCompliant: judgment.format_compliant,
        reason: judgment.reason,
        judgeModel: judge_model ?? null,
      };
      const earlier = verdicts.get(identity);
      if (
        earlier !== undefined &&
        (earlier.verdict !== next.verdict || earlier.formatCompliant !== next.formatCompliant)
      ) {
        const said = (one: ImportedVerdict) =>
          `${one.verdict}, format ${one.formatCompliant ? 'compliant' : 'not compliant'}`;
        conflictLog.add(source.file, line, `replaces "${said(earlier)}" by "${said(next)}" for one identity`);
      }
      verdicts.set(identity, next);
    };
    await readRows(source, reviewCacheRowSchema, log, onRow, { maxLineLength: limits.maxLineLength });
  }
  return { verdicts, problems: log.list(), conflicts: conflictLog.list() };
}
