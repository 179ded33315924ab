import { writeFileSync } from 'node:fs';
import {
  type FingerprintMessage,
  type FingerprintPart,
  requestFingerprint,
} from '../../../mock/fingerprint.ts';
import type { ScenarioInput } from '../../../mock/scenario.ts';
import { clipName, readClipFacts } from './build-clips.ts';
import { itemId } from './build-data.ts';
import { historyOf, type Length, lengths, type Question, questions, type Utterance } from './plan.ts';
import { type Meant, type Persona, personas, replyOf } from './replies.ts';

/** Fingerprint of the request of an item, built by voxmem-protocol §3 and not by the program under test. */
export const itemFingerprint = (question: Question, length: Length): string => {
  const digests = new Map(readClipFacts().map(({ path, sha256 }) => [path, sha256]));
  const clip = (utterance: Utterance): FingerprintPart => {
    const sha256 = digests.get(`clips/${clipName(utterance)}.wav`);
    if (sha256 === undefined) throw new Error(`no clip of "${utterance.text}"`);
    return { type: 'audio', sha256 };
  };
  const stamp = (timestamp: string): FingerprintPart => ({
    type: 'text',
    text: `Session timestamp: ${timestamp}`,
  });
  return requestFingerprint([
    ...historyOf(question, length).flatMap(({ timestamp, turns }) =>
      turns.map(
        ({ user }, index): FingerprintMessage => ({
          role: 'user',
          content: index === 0 ? [stamp(timestamp), clip(user)] : [clip(user)],
        }),
      ),
    ),
    { role: 'user', content: [stamp(question.timestamp), clip(question.ask)] },
  ]);
};

export interface ScriptedReply {
  model: Persona;
  itemId: string;
  fingerprint: string;
  text: string;
  meant: Meant;
}

/** Every persona's reply to every item. */
export const scriptedReplies = (): ScriptedReply[] =>
  lengths.flatMap((length) =>
    questions.flatMap((question) => {
      const fingerprint = itemFingerprint(question, length);
      return personas.map((model) => ({
        model,
        itemId: itemId(question, length),
        fingerprint,
        ...replyOf(model, question.id, length),
      }));
    }),
  );

const kinds: Partial<Record<Meant, string>> = {
  empty: 'empty',
  failed: 'content_filter',
  rejected: 'http_400',
};

export const scenarioFiles = (): Record<string, string> => {
  const replies = scriptedReplies();
  const persona = (name: Persona) => ({
    reply: { table: 'replies.jsonl' },
    latencyMs: 5,
    capacity: 64,
    faults: replies.flatMap(({ model, meant, fingerprint }) => {
      const kind = kinds[meant];
      if (model !== name || kind === undefined) return [];
      const code = kind === 'http_400' ? { code: 'context_length_exceeded' } : {};
      return { kind, firstAttempts: 1_000_000, ...code, match: { fingerprint } };
    }),
  });
  const scenario: ScenarioInput = {
    seed: 1,
    models: {
      ...Object.fromEntries(personas.map((name) => [name, persona(name)])),
      'simulated-judge': {
        reply: { judge: 'verdict' },
        latencyMs: 5,
        capacity: 64,
        faults: replies
          .filter(({ meant }) => meant === 'ungraded')
          .map(({ text }) => ({ kind: 'rubbish', firstAttempts: 1_000_000, match: { lastText: text } })),
      },
    },
  };
  const rows = replies.map(({ model, fingerprint, text }) =>
    JSON.stringify({ model, fingerprint, reply: text }),
  );
  return {
    'scenario.json': `${JSON.stringify(scenario, null, 2)}\n`,
    'replies.jsonl': `${rows.join('\n')}\n`,
  };
};

if (import.meta.main) {
  for (const [path, text] of Object.entries(scenarioFiles())) {
    writeFileSync(new URL(`../${path}`, import.meta.url), text);
  }
}
