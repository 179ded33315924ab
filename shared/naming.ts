import { createHash } from 'node:crypto';
import { errorNames, TurnsweepError } from './errors.ts';

/** Names of things that travel between parts, each builder beside its parser. */

const unsafe = /[^a-z0-9]+/g;

/** A name in lower case letters, digits and dashes. */
export const slug = (text: string): string =>
  text.toLowerCase().replace(unsafe, '-').replace(/^-+|-+$/g, '') || 'x';

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

/** Ledger accounts. */
export const runAccount = (run: string): string => `run/${run}`;
export const laneAccount = (run: string, lane: string): string => `run/${run}/lane/${lane}`;
