import { createHash } from 'node:crypto';
import type { QueuedOutcome } from './control.ts';
import type { createCounts } from './counts.ts';
import type { Dialect, Profile, ReadRequest } from './dialects/dialect.ts';
import { Refused } from './dialects/dialect.ts';
import type { Outcome } from './faults.ts';
import { makeOutcome } from './faults.ts';
import { requestFingerprint, systemTextOf } from './fingerprint.ts';
import { judgeReply, verdictReply } from './judge.ts';
import { digestReply } from './replies.ts';
import type { ReplyTable, Scenario, ScenarioFault, ScenarioInput, ScenarioModel } from './scenario.ts';
import { loadTable, parseScenario, tableKey } from './scenario.ts';
import { BadRequest } from './wire.ts';

/** Uniform number in [0, 1) that depends on the text alone (FNV-1a with a final mix of its bits). */
const hashedShare = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
};

/** Every model answers the same word, at once: enough to try a sweep's plumbing. */
const plainScenario: ScenarioInput = { models: { '*': { reply: { text: 'ok' } } } };
/** Models of the providers without a scenario: a reply that shows what arrived. */
const digestModel = parseScenario({ models: { '*': { reply: { digest: true } } } }).models['*']!;

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

const fits = (match: NonNullable<ScenarioFault['match']>, { model, lastText }: ReadRequest, key: string) =>
  'lastText' in match ? lastText.includes(match.lastText) : key === `${model} ${match.fingerprint}`;

/** What happens to a request that was accepted. */
export interface Decision {
  outcome: Outcome;
  name: string;
  /** `<model> <fingerprint>`. */
  key: string;
  latencyMs: number;
}

/** What the server replies: the outcomes that a control queue names, else what the scenario says. */
export const createScript = (options: {
  scenario: Scenario | null;
  counts: ReturnType<typeof createCounts>;
  profileOf: (dialect: Dialect) => Profile;
  elsewhere: () => string;
}) => {
  const { counts } = options;
  const tables = new Map<string, ReplyTable>();
  const queues = new Map<string, QueuedOutcome[]>();
  let scenario: Scenario;
  let isScripted = options.scenario !== null;
  const use = (found: Scenario) => {
    for (const { reply } of Object.values(found.models)) {
      if ('table' in reply && !tables.has(reply.table)) tables.set(reply.table, loadTable(reply.table));
    }
    scenario = found;
  };
  use(options.scenario ?? parseScenario(plainScenario));

  /** Null for a model that is not there. */
  const modelOf = (dialect: Dialect, name: string): ScenarioModel | null => {
    if (dialect.name !== 'plain' && !isScripted) return dialect.knows(name) ? digestModel : null;
    // A model may be called `constructor`.
    return (Object.hasOwn(scenario.models, name) ? scenario.models[name] : scenario.models['*']) ?? null;
  };

  const faultOf = (
    model: ScenarioModel,
    request: ReadRequest,
    key: string,
    attempt: number,
  ): ScenarioFault | null =>
    model.faults.find((fault, index) => {
      if (fault.match && !fits(fault.match, request, key)) return false;
      if (
        fault.kind === 'length' &&
        (request.maxTokens ?? Infinity) >= (fault.succeedAtMaxTokens ?? Infinity)
      ) {
        return false;
      }
      if (fault.firstAttempts !== undefined) return attempt <= fault.firstAttempts;
      return hashedShare(`${scenario.seed} ${index} ${key} ${attempt}`) < fault.rate!;
    }) ?? null;

  const refusedBy = (dialect: Dialect, message: string, param: string | null): Refused =>
    new Refused(dialect.errors.badRequest(message, param));

  const replyText = (
    dialect: Dialect,
    { reply }: ScenarioModel,
    request: ReadRequest,
    fingerprint: string,
    fault: string,
  ): string => {
    if ('text' in reply) return reply.text;
    if ('echo' in reply) return request.lastText || '(no text)';
    if ('digest' in reply) {
      const digest = digestReply(request);
      if (digest === null) throw refusedBy(dialect, 'digest replies need the address of a provider', null);
      return digest;
    }
    if ('judge' in reply) {
      try {
        const play = reply.judge === 'verdict' ? verdictReply : judgeReply;
        return play(request.lastText, fault);
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error;
        throw refusedBy(dialect, error.message, error.param);
      }
    }
    const { byFingerprint, byLastText } = tables.get(reply.table)!;
    // A script may tell system texts apart, or leave them out.
    const exact =
      systemTextOf(request.messages) === null
        ? fingerprint
        : requestFingerprint(request.messages, { withSystem: true });
    const scripted =
      byLastText.get(tableKey(request.model, request.lastText)) ??
      byLastText.get(tableKey(null, request.lastText)) ??
      // Some requests have time stamps of frames in front of the question.
      byLastText.get(tableKey(request.model, request.lastPart)) ??
      byLastText.get(tableKey(null, request.lastPart)) ??
      byFingerprint.get(tableKey(request.model, exact)) ??
      byFingerprint.get(tableKey(null, exact)) ??
      byFingerprint.get(tableKey(request.model, fingerprint)) ??
      byFingerprint.get(tableKey(null, fingerprint)) ??
      reply.fallback;
    if (scripted === undefined) throw refusedBy(dialect, `no reply scripted for ${fingerprint}`, 'messages');
    return scripted;
  };

  const latencyOf = ({ latencyMs }: ScenarioModel, key: string, attempt: number): number =>
    typeof latencyMs === 'number'
      ? latencyMs
      : latencyMs.min +
        (latencyMs.max - latencyMs.min) * hashedShare(`${scenario.seed} latency ${key} ${attempt}`);

  return {
    modelOf,
    use: (next: unknown) => {
      use(parseScenario(next));
      isScripted = true;
    },
    batchPlan: () => scenario.batch ?? null,
    /** Models by name, `*` left out. */
    modelNames: (): string[] => Object.keys(scenario.models).filter((name) => name !== '*'),
    queue: (provider: string, outcomes: readonly QueuedOutcome[]) => {
      queues.set(provider, [...outcomes]);
    },
    clearQueues: () => queues.clear(),
    /** Chooses what happens: the queue's next outcome, a fault of the scenario, or ok. Throws `Refused`. */
    decide: (dialect: Dialect, model: ScenarioModel, request: ReadRequest): Decision => {
      const fingerprint = requestFingerprint(request.messages);
      const key = `${request.model} ${fingerprint}`;
      const attempt = counts.nextAttempt(key);
      const queue = queues.get(dialect.name);
      const queued = queue?.[0];
      const fault = queued ? null : faultOf(model, request, key, attempt);
      const name = queued?.outcome ?? fault?.kind ?? 'ok';
      // The fixed text of the vectors, unless something says what to reply.
      const isFixed =
        queued?.text === undefined && !isScripted && /^F-/.test(name) && dialect.name !== 'plain';
      const outcome = makeOutcome(name, {
        dialect,
        profile: options.profileOf(dialect),
        request,
        text: isFixed ? null : (queued?.text ?? replyText(dialect, model, request, fingerprint, name)),
        id: `mock-${fingerprint.slice(0, 16)}-${attempt}`,
        tokens: model.tokens,
        code: queued?.code ?? fault?.code,
        retryAfterSeconds: queued?.retryAfterSeconds ?? fault?.retryAfterSeconds,
        elsewhere: options.elsewhere(),
      });
      if (queued) queue!.shift();
      const system = systemTextOf(request.messages);
      counts.attempt(key, name, `${request.model} ${system === null ? 'none' : shortHash(system)}`);
      return { outcome, name, key, latencyMs: latencyOf(model, key, attempt) };
    },
  };
};
