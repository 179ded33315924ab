import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { laneQueue, queueResourceName } from '../../shared/naming.ts';

/** Bounds of an event source mapping's MaximumConcurrency; a lane of one slot cannot be had with it. */
const slots = z.number().int().min(2).max(1000);
/** A function lives 900 s at most; below 60 s no call with its reply fits. */
const timeoutSeconds = z.number().int().min(60).max(900);
const secret = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*$/, 'the name of a provider key, as apiKeyEnv in a sweep file');

/** GPU memory of one device: lanes of a class share a compute environment. */
export const gpuMemoryClasses = ['24GB', '48GB', '80GB'] as const;
export type GpuMemoryClass = (typeof gpuMemoryClasses)[number];

/**
 * Folder names of a run. In a policy a star also stands for slashes, so a lane of such a name would have its
 * plan inside what another stage may write.
 */
const reservedIds = ['plan', 'lanes', 'judging', 'scores', 'report', 'inputs', 'answers'];
const id = z
  .string()
  .min(1)
  .refine((name) => !reservedIds.includes(name), 'the name of a folder of every run');

/** Id of a foundation model or of an inference profile: the stage may call it with its role. */
const bedrockModel = z.string().regex(/^[\w.:-]+$/);

const hostedLane = z.strictObject({
  id,
  kind: z.literal('hosted'),
  maxInFlight: slots,
  timeoutSeconds,
  secret: secret.optional(),
  bedrockModel: bedrockModel.optional(),
});

/** The server that holds the model, in the same container as the worker. */
const modelServer = z.strictObject({
  engine: z.enum(['vllm', 'sglang']),
  /** Name or path of the weights, as the engine wants it. */
  model: z.string().min(1),
  /** Tag of the image in the deployment's repository: engine and worker, see `workers/README.md`. */
  imageTag: z.string().regex(/^[\w][\w.-]{0,127}$/),
  port: z.number().int().min(1024).max(65_535).default(8000),
  /** More arguments of the engine, as they are. */
  arguments: z.array(z.string()).default([]),
  startSeconds: z.number().int().min(1).max(7200).default(3600),
});
export type ModelServer = z.output<typeof modelServer>;

const gpuLane = z.strictObject({
  id,
  kind: z.literal('gpu'),
  /** Views at work at once in one job. */
  maxInFlight: z.number().int().min(1).max(1000),
  timeoutSeconds,
  gpuMemory: z.enum(gpuMemoryClasses),
  gpus: z.number().int().min(1).max(8).default(1),
  server: modelServer,
});

const lanesFile = z
  .strictObject({
    judge: z.strictObject({
      maxInFlight: slots,
      timeoutSeconds,
      secret: secret.optional(),
      bedrockModel: bedrockModel.optional(),
    }),
    lanes: z.array(z.discriminatedUnion('kind', [hostedLane, gpuLane])).min(1),
    /** Of the function that calls hosted lanes, in place of its usual size: hundreds of clips in a request need 512. */
    memoryMb: z.number().int().min(128).max(10_240).optional(),
  })
  .superRefine(({ lanes }, context) => {
    const owners = new Map<string, string>();
    for (const lane of lanes) {
      const name = queueResourceName(laneQueue(lane.id));
      const owner = owners.get(name);
      if (owner !== undefined) {
        context.addIssue({
          code: 'custom',
          message: `lanes ${owner} and ${lane.id} would share the queue ${name}`,
        });
      }
      owners.set(name, lane.id);
    }
  });

export type LanesConfig = z.output<typeof lanesFile>;
export type Lane = LanesConfig['lanes'][number];
export type HostedLane = Extract<Lane, { kind: 'hosted' }>;
export type GpuLane = Extract<Lane, { kind: 'gpu' }>;

export const isHosted = (lane: Lane): lane is HostedLane => lane.kind === 'hosted';
export const isGpu = (lane: Lane): lane is GpuLane => lane.kind === 'gpu';

/** Lanes of a deployment: a new model is a new entry there, no code. Throws `ZodError` naming the entry. */
export const readLanes = (file: string): LanesConfig =>
  lanesFile.parse(JSON.parse(readFileSync(file, 'utf8')));

/** Provider keys that some lane or the judge names, each once. */
export const secretNames = (config: LanesConfig): string[] =>
  [
    ...new Set([config.judge, ...config.lanes.filter(isHosted)].flatMap(({ secret: name }) => name ?? [])),
  ].sort();

/** The model behind an inference profile, which is named by its region group in front. */
export const foundationModel = (id: string): string => id.replace(/^(us|eu|apac|jp|au|global)\./, '');
