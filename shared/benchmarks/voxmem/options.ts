import { z } from 'zod';
import { contextLengths, evidenceTypes } from './format.ts';

/** What `benchmark.options` of a sweep file may hold for VoxMem. All that is left out is not narrowed. */
export const voxmemOptions = z.strictObject({
  /** Lengths of history to ask at. */
  lengths: z.array(z.enum(contextLengths)).min(1).optional(),
  /** Kinds of evidence to ask about. */
  evidenceTypes: z.array(z.enum(evidenceTypes)).min(1).optional(),
  /** Items by id, or questions by id at every length. */
  ids: z.array(z.string().min(1)).min(1).optional(),
  /**
   * Which system prompt models get: one that permits to abstain, as in every evaluation, or one that does not, for
   * checks whether questions can be answered without hearing. Without it, items to be refused mean nothing
   * (voxmem-protocol §3).
   */
  abstention: z.boolean().default(true),
  /** Who grades: the sweep's judge, or a comparison of texts that costs nothing and is for smoke tests only. */
  grader: z.enum(['judge', 'exact-match']).default('judge'),
  /** Whether an auditor is asked where each wrong answer came from (voxmem-protocol §6): one more call an error. */
  attribution: z.boolean().default(false),
  /** Whose models lanes (by id) and judges (by model) are, so that favouritism can be told (voxmem-protocol §5). */
  families: z.record(z.string(), z.string().min(1)).default({}),
});
export type VoxmemOptions = z.infer<typeof voxmemOptions>;
