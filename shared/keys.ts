import { createHash } from 'node:crypto';

/**
 * Every storage key of the system. A bucket on AWS and the output folder on one machine hold the same
 * keys; locally `runs/<run>/` is the output folder itself.
 */

const requestHash = (requestId: string): string =>
  createHash('sha256').update(requestId).digest('hex').slice(0, 32);

export const keys = {
  benchmark: {
    input: (benchmark: string, file: string) => `benchmarks/${benchmark}/inputs/${file}`,
    answers: (benchmark: string, file: string) => `benchmarks/${benchmark}/answers/${file}`,
    recording: (benchmark: string, sha256: string) =>
      `benchmarks/${benchmark}/recordings/${sha256.slice(0, 32)}.jsonl`,
  },
  media: (sha256: string, extension: string) => `media/${sha256}.${extension}`,
  /** What is made of a clip, by its content and by how it is made (`recipeId`). */
  derived: {
    /** Says what the files are; there once all of them are. */
    record: (sha256: string, recipe: string) => `derived/${sha256}/${recipe}/made.json`,
    file: (sha256: string, recipe: string, name: string) => `derived/${sha256}/${recipe}/${name}`,
  },
  run: {
    root: (run: string) => `runs/${run}/`,
    contract: (run: string) => `runs/${run}/contract.json`,
    settings: (run: string) => `runs/${run}/settings.json`,
    progress: (run: string) => `runs/${run}/progress.json`,
    planSummary: (run: string) => `runs/${run}/plan/summary.json`,
    /** Requests and views of one group, shared by every lane that runs it. */
    group: (run: string, group: string) => `runs/${run}/plan/groups/${group}.json`,
    /** Every clip that some lane sends in a form, once for each form. */
    clips: (run: string) => `runs/${run}/plan/clips.jsonl`,
    /** Those of them that this start has to make. */
    pendingClips: (run: string) => `runs/${run}/plan/pending-clips.jsonl`,
    clipMapResults: (run: string) => `runs/${run}/media/map`,
    laneGroups: (run: string, lane: string) => `runs/${run}/plan/${lane}/groups.jsonl`,
    /** The groups of `laneGroups` that have work left in this attempt. */
    lanePending: (run: string, lane: string) => `runs/${run}/plan/${lane}/pending.jsonl`,
    laneViews: (run: string, lane: string) => `runs/${run}/plan/${lane}/views.jsonl`,
    laneSummary: (run: string, lane: string) => `runs/${run}/plan/${lane}/summary.json`,
    report: (run: string, file: string) => `runs/${run}/report/${file}`,
    scores: (run: string, lane: string) => `runs/${run}/scores/${lane}.jsonl`,
  },
  lane: {
    requests: (run: string, lane: string) => `runs/${run}/lanes/${lane}/requests/`,
    request: (run: string, lane: string, requestId: string) =>
      `runs/${run}/lanes/${lane}/requests/${requestHash(requestId)}.json`,
    failures: (run: string, lane: string) => `runs/${run}/lanes/${lane}/failures/`,
    failure: (run: string, lane: string, requestId: string) =>
      `runs/${run}/lanes/${lane}/failures/${requestHash(requestId)}.json`,
    /** Failed attempts of a request that may still succeed. */
    attempts: (run: string, lane: string, requestId: string) =>
      `runs/${run}/lanes/${lane}/attempts/${requestHash(requestId)}.json`,
    stopped: (run: string, lane: string) => `runs/${run}/lanes/${lane}/stopped.json`,
    views: (run: string, lane: string) => `runs/${run}/lanes/${lane}/views.jsonl`,
    costs: (run: string, lane: string) => `runs/${run}/lanes/${lane}/costs.json`,
    mapResults: (run: string, lane: string) => `runs/${run}/lanes/${lane}/map`,
  },
  judging: {
    chunks: (run: string) => `runs/${run}/judging/chunks.jsonl`,
    chunkFiles: (run: string) => `runs/${run}/judging/chunks/`,
    chunk: (run: string, chunk: string) => `runs/${run}/judging/chunks/${chunk}.json`,
    /** Which items go together: fixed once for a set of items, see plan-judging. */
    cut: (run: string, generation: string) => `runs/${run}/judging/cut/${generation}.json`,
    attempts: (run: string) => `runs/${run}/judging/attempts/`,
    chunkAttempts: (run: string, chunk: string) => `runs/${run}/judging/attempts/${chunk}.json`,
    /** Provider batches of chunks, in the order of submission. */
    batches: (run: string) => `runs/${run}/judging/batch/`,
    batch: (run: string, name: string) => `runs/${run}/judging/batch/${name}.json`,
    imported: (run: string) => `runs/${run}/judging/imported.jsonl`,
    mapResults: (run: string) => `runs/${run}/judging/map`,
    ruleScores: (run: string, lane: string) => `runs/${run}/judging/rule-scores/${lane}.jsonl`,
    /** Items of the second round by request: what the verdicts of the first gave rise to. */
    followUps: (run: string, lane: string) => `runs/${run}/judging/follow-ups/${lane}.jsonl`,
    /** Every judge that the run was given to, in order. */
    judges: (run: string) => `runs/${run}/judging/judges.json`,
    summary: (run: string) => `runs/${run}/judging/summary.json`,
    /** The judge cannot go on, and why; gone at the next start. */
    stopped: (run: string) => `runs/${run}/judging/stopped.json`,
    /** All that the judging stage may know of the run. */
    judge: (run: string) => `runs/${run}/judging/judge.json`,
  },
  reviews: {
    judge: (judge: string) => `reviews/${judge}/`,
    review: (judge: string, identityHash: string) => `reviews/${judge}/${identityHash}.json`,
  },
} as const;

export { requestHash };
