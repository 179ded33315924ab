import { z } from 'zod';

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text) => JSON.parse(text) as unknown)
    .pipe(schema);
const whole = z.string().regex(/^\d+$/).transform(Number);
const wholes = z
  .string()
  .regex(/^\d+(,\d+)*$/)
  .transform((text) => text.split(',').map(Number));

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
  /** After how long a message comes back whose first, second … delivery threw; the last counts for all further ones. */
  TURNSWEEP_RETURN_SECONDS: wholes,
  /** Only for the stage that starts sweeps. */
  TURNSWEEP_SWEEP_MACHINE: z.string().optional(),
  /** Only for the planner: the Batch queue of each lane with its own GPUs, as JSON. */
  TURNSWEEP_GPU_LANES: json(z.record(z.string(), z.string())).optional(),
});
export type StageEnvironment = z.output<typeof stageEnvironment>;
/** As set on the function: text. */
export type StageVariables = z.input<typeof stageEnvironment>;

/** Environment of a worker that empties the queue of one lane, beside that of its stage. */
export const workerEnvironment = z.object({
  TURNSWEEP_LANE: z.string().min(1),
  TURNSWEEP_QUEUE_URL: z.url(),
  /** Views at work at once: what the model server takes in one batch. */
  TURNSWEEP_MAX_IN_FLIGHT: whole,
  /** Program and arguments of the model server, as JSON; empty where somebody else has started it. */
  TURNSWEEP_SERVER_COMMAND: json(z.array(z.string())),
  /** Answers 200 once the model is loaded. */
  TURNSWEEP_SERVER_HEALTH_URL: z.url(),
  /** Longest time from the server's start to its first good answer: weights come over the network. */
  TURNSWEEP_SERVER_START_SECONDS: whole,
  /** Without a message for so long the worker ends. */
  TURNSWEEP_IDLE_SECONDS: whole,
  /** A message whose worker was killed comes back after this time at most. */
  TURNSWEEP_HIDDEN_SECONDS: whole,
});
export type WorkerVariables = z.input<typeof workerEnvironment>;
