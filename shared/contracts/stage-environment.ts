import { z } from 'zod';

const whole = z.string().regex(/^\d+$/).transform(Number);

/**
 * Environment of every deployed stage. A name here says where something is; what a stage may do there is
 * its role's affair.
 */
export const stageEnvironment = z.object({
  TURNSWEEP_BUCKET: z.string().min(1),
  TURNSWEEP_LEDGER_TABLE: z.string().min(1),
  /** What the URLs of all queues begin with. */
  TURNSWEEP_QUEUE_URL_PREFIX: z.url(),
  /** Provider keys are stored as `<deployment>/<key>`. */
  TURNSWEEP_DEPLOYMENT: z.string().min(1),
  /** The function's own time limit. */
  TURNSWEEP_TIMEOUT_SECONDS: whole,
  /** Visibility of the queue and receives after which a message is dead; 0 for stages without a queue. */
  TURNSWEEP_VISIBILITY_SECONDS: whole,
  TURNSWEEP_MAX_RECEIVE_COUNT: whole,
  /** Only for the stage that starts sweeps. */
  TURNSWEEP_SWEEP_MACHINE: z.string().optional(),
});
export type StageEnvironment = z.output<typeof stageEnvironment>;
/** As set on the function: text. */
export type StageVariables = z.input<typeof stageEnvironment>;
