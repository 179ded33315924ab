import { createHash } from 'node:crypto';
import { errorNames, TurnsweepError } from './errors.ts';

/** Names of things that travel between parts, each builder beside its parser. */

const unsafe = /[^a-z0-9]+/g;

/** A name in lower case letters, digits and dashes. */
export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(unsafe, '-')
    .replace(/^-+|-+$/g, '') || 'x';

export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex');

/** JSON with sorted keys and no spaces: equal values, equal text. `undefined` members are left out. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
};

/** Run id: sweep name and the first 12 hex digits of the contract's hash. */
export const runId = (sweepName: string, contractHash: string): string =>
  `${slug(sweepName).slice(0, 40)}-${contractHash.slice(0, 12)}`;

export const parseRunId = (run: string): { sweep: string; contractHashPrefix: string } => {
  const match = /^(.+)-([0-9a-f]{12})$/.exec(run);
  if (!match) throw new TurnsweepError(errorNames.usage, 'not a run id', { where: run });
  return { sweep: match[1]!, contractHashPrefix: match[2]! };
};

/** Who judges: everything that may change a verdict is part of the name. */
export const judgeId = (judge: {
  model: string;
  promptVersion: string;
  reasoningEffort: string | null;
}): string =>
  `${slug(judge.model)}-${sha256(canonicalJson([judge.model, judge.promptVersion, judge.reasoningEffort])).slice(0, 8)}`;

export const laneQueue = (lane: string): string => `lane/${lane}`;
export const judgeQueue = 'judge';

export const parseQueue = (queue: string): { kind: 'lane'; lane: string } | { kind: 'judge' } => {
  if (queue === judgeQueue) return { kind: 'judge' };
  if (queue.startsWith('lane/')) return { kind: 'lane', lane: queue.slice(5) };
  throw new TurnsweepError(errorNames.usage, 'not a queue name', { where: queue });
};

/** Whatever one deployment owns on AWS begins with its name, so that an account can hold several. */
export const deployedName = (deployment: string, thing: string): string => `${deployment}-${thing}`;

/** Table of money and leases, without the deployment. */
export const ledgerTable = 'ledger';

/** Stack whose outputs tell where a deployment has its things. */
export const sweepStackName = (deployment: string): string => deployedName(deployment, 'sweep');

/** Names of those outputs. */
export const deploymentOutputs = {
  bucket: 'RunBucketName',
  sweepMachine: 'SweepMachineArn',
  judgingMachine: 'JudgingMachineArn',
  lanes: 'LaneIds',
  generateTurnsFunction: 'GenerateTurnsName',
  judgeAnswersFunction: 'JudgeAnswersName',
} as const;

/** A deployment's lanes as one output: those with their own GPUs name the port of their model server. */
export const lanesOutput = (lanes: readonly { id: string; serverPort: number | null }[]): string =>
  lanes.map(({ id, serverPort }) => (serverPort === null ? id : `${id}@${serverPort}`)).join(',');

export const parseLanesOutput = (text: string): { id: string; serverPort: number | null }[] =>
  text.split(',').map((entry) => {
    const [id, port] = entry.split('@');
    return { id: id!, serverPort: port === undefined ? null : Number(port) };
  });

/** Name of a run's n-th start, from 1: the same start has the same name wherever it is asked for. */
export const startName = (run: string, start: number): string => `${run}-${start}`;

/** Null for executions that somebody has started under a name of their own. */
export const parseStartName = (name: string): { run: string; start: number } | null => {
  const match = /^(.+-[0-9a-f]{12})-([1-9]\d*)$/.exec(name);
  return match && { run: match[1]!, start: Number(match[2]) };
};

/** Longest queue name inside a deployment: SQS allows 80 characters, the deployment and `--dead` among them. */
const queueNameLength = 50;

/** A queue's name on AWS, without the deployment; a long one is cut and keeps its hash. */
export const queueResourceName = (queue: string): string => {
  const name = slug(queue);
  return name.length <= queueNameLength
    ? name
    : `${name.slice(0, queueNameLength - 9)}-${sha256(queue).slice(0, 8)}`;
};

/** `slug` never makes two dashes, so no queue of a lane can have the name of another's dead letters. */
export const deadLetterName = (queue: string): string => `${queueResourceName(queue)}--dead`;

/** Batch queue of all lanes whose GPUs have so much memory. */
export const gpuJobQueueName = (deployment: string, gpuMemory: string): string =>
  deployedName(deployment, `gpu-${gpuMemory.toLowerCase()}`);

/** Batch job definition of a lane with its own GPUs. */
export const jobDefinitionName = (deployment: string, lane: string): string =>
  deployedName(deployment, queueResourceName(laneQueue(lane)));

/** URL of a queue on AWS. `prefix` is what all queues of a deployment have in common. */
export const queueUrlOf = (prefix: string, queue: string): string => `${prefix}${queueResourceName(queue)}`;

/** Name of a provider key in Secrets Manager. */
export const secretResourceName = (deployment: string, key: string): string => `${deployment}/${key}`;

/** Run id of a scheduled start: one tick, one run, however often the tick is delivered. */
export const scheduledRunId = (run: string, scheduledTime: Date): string => {
  const { sweep, contractHashPrefix } = parseRunId(run);
  const tick = scheduledTime
    .toISOString()
    .replace(/[-:]|\.\d+/g, '')
    .toLowerCase();
  return `${sweep.slice(0, 40)}-${tick}-${contractHashPrefix}`;
};

/** Ledger accounts. */
export const runAccount = (run: string): string => `run/${run}`;
export const laneAccount = (run: string, lane: string): string => `run/${run}/lane/${lane}`;
/** Nothing is spent on it: where the judge's workers agree on pauses. */
export const judgeAccount = (run: string): string => `run/${run}/judge`;
