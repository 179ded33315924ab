import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { FingerprintMessage } from '../../../mock/fingerprint.ts';
import { requestFingerprint } from '../../../mock/fingerprint.ts';
import type { ScenarioInput } from '../../../mock/scenario.ts';
import { parseMediaDigests } from '../../../shared/benchmarks/return/media-digests.ts';
import type { InputRow, Interface } from '../../../shared/benchmarks/return/release-format.ts';
import { buildRelease, letterOf, type Situation } from './build-tasks.ts';
import type { Answer, EvidenceRoot, TaskRoot } from './items.ts';

/** Three simulated models. None of them sees a clip: each answers by a rule from what the request asks for. */
export const personas = ['persona-attentive', 'persona-current-clip', 'persona-forgetful'] as const;
export type Persona = (typeof personas)[number];

export interface PersonaReply {
  text: string;
  /** Whether the reply is meant to be right; null for a question of the history, which has no answer key. */
  right: boolean | null;
}

type Final = Extract<Situation, { kind: 'final' }>;
type Root = TaskRoot | EvidenceRoot;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** One answer in the wordings of real replies; `variant` 0…3, where 3 is one that no rule can read. */
const word = (root: Root, answer: Answer, name: Interface, variant: number): string => {
  if (name === 'openqa') {
    return [answer.text, `${capital(answer.text)}.`, answer.aliases?.[0] ?? answer.text, answer.sentence][
      variant
    ]!;
  }
  const letter = letterOf(root, answer);
  return [letter, `${letter}. ${answer.text}`, `Answer: ${letter}`, `**${letter}**`][variant]!;
};

/** An option that neither the target clip nor the misleading one supports. */
const guess = (root: Root): Answer => {
  const option = root.options.find((text) => text !== root.gold.text && text !== root.other.text)!;
  return { text: option, sentence: `Perhaps ${option}.` };
};

type Choice = { say: Answer; variant?: number } | { text: string; right: boolean };

const gold = (final: Final): Choice => ({ say: final.root.gold });
const other = (final: Final): Choice => ({ say: final.root.other });
const lost: Choice = { text: 'Which options do you mean? I only have the new clip.', right: false };

const finalReplies: Record<Persona, (final: Final) => Choice> = {
  /** Follows the whole conversation; two slips at the long horizon. */
  'persona-attentive': (final) => {
    const { operation, horizon, root } = final;
    const slips =
      horizon === 'long' &&
      ((operation === 'revise' && root.family === 'language') ||
        (operation === 'rebind' && root.family === 'vehicle'));
    return slips ? other(final) : gold(final);
  },
  /** Always looks at the clip of the last turn; where that one shows nothing, it still recalls one clip back. */
  'persona-current-clip': (final) => {
    if (final.root.side === 'task') return gold(final);
    if (final.operation === 'rebind') return other(final);
    if (final.horizon === 'short') return gold(final);
    return final.interface === 'mcq'
      ? { say: guess(final.root) }
      : { text: (final.root as EvidenceRoot).nothing, right: false };
  },
  /** Loses options and instructions of earlier turns, and at the long horizon the clips themselves. */
  'persona-forgetful': (final) => {
    const { operation, horizon, root } = final;
    if (operation === 'retrieve') return gold(final);
    if (operation === 'rebind') return horizon === 'short' ? gold(final) : other(final);
    if (final.interface === 'openqa') {
      return operation === 'revise' && horizon === 'long' ? other(final) : gold(final);
    }
    if (operation === 'preserve')
      return horizon === 'short' ? { text: root.gold.sentence, right: true } : lost;
    return horizon === 'short' ? other(final) : lost;
  },
};

/** Reply of a persona to a request: a function of the two alone. */
export const personaReply = (persona: Persona, situation: Situation, fingerprint: string): PersonaReply => {
  if (situation.kind === 'aside') return { text: situation.aside.answer, right: null };
  const { root } = situation;
  let choice: Choice;
  if (situation.kind === 'final') choice = finalReplies[persona](situation);
  else {
    // One question is too hard for the attentive model alone and easy once it has been asked before.
    const misses =
      persona === 'persona-attentive' && root.family === 'motion' && situation.answer === root.gold;
    choice = { say: misses ? guess(root) : situation.answer };
  }
  if ('text' in choice) return choice;
  const drawn = createHash('sha256').update(`${persona} ${fingerprint}`).digest()[0]!;
  // The attentive model is the talkative one: half of its replies need a judge.
  const variant = persona === 'persona-attentive' ? [0, 1, 3, 3][drawn % 4]! : drawn % 3;
  const text = word(root, choice.say, situation.interface, variant);
  return { text, right: choice.say === root.gold };
};

/** Fingerprint of a frozen request, from the digests of its clips. */
export const frozenFingerprint = (row: InputRow, digests: ReadonlyMap<string, string>): string =>
  requestFingerprint(
    row.messages.map((message): FingerprintMessage => {
      if (message.role === 'assistant') return { role: 'assistant' };
      const content = message.content.map((part) => {
        if (part.type === 'text') return part;
        const path = part.type === 'audio' ? part.audio : part.video;
        return { type: part.type, sha256: digests.get(path) ?? null };
      });
      return { role: 'user', content };
    }),
  );

export const readDigests = (): ReadonlyMap<string, string> => {
  const file = new URL('../release/data/media_sha256.txt', import.meta.url);
  return parseMediaDigests('data/media_sha256.txt', readFileSync(file, 'utf8')).sha256ByPath;
};

/** Every persona's reply to every request of the release. */
export const buildReplies = (digests = readDigests()) => {
  const { inputs, situations } = buildRelease();
  return personas.flatMap((persona) =>
    inputs.map((row) => {
      const fingerprint = frozenFingerprint(row, digests);
      const reply = personaReply(persona, situations.get(row.request_id)!, fingerprint);
      return { persona, requestId: row.request_id, fingerprint, ...reply };
    }),
  );
};

export const scenarioFiles = (): Record<string, string> => {
  const persona = { reply: { table: 'replies.jsonl' }, latencyMs: 5, capacity: 64 };
  const scenario: ScenarioInput = {
    seed: 1,
    models: {
      ...Object.fromEntries(personas.map((name) => [name, persona])),
      'simulated-judge': { reply: { judge: 'aliases' }, latencyMs: 5, capacity: 64 },
    },
  };
  // Requests with the same content have one row: the mock cannot tell them apart either.
  const rows = new Map<string, string>();
  for (const { persona: model, fingerprint, text } of buildReplies()) {
    rows.set(`${model} ${fingerprint}`, JSON.stringify({ model, fingerprint, reply: text }));
  }
  return {
    'scenario.json': `${JSON.stringify(scenario, null, 2)}\n`,
    'replies.jsonl': `${[...rows.values()].join('\n')}\n`,
  };
};

export interface Ladder {
  persona: Persona;
  interface: Interface;
  side: 'task' | 'evidence';
  n: number;
  single: number;
  reference: number;
  conflict: number;
}

/** The ladders that the personas are built to give: right answers of `n` pairs. */
export const expectedLadders = (): Ladder[] => {
  const { tasks } = buildRelease();
  const right = new Map(buildReplies().map((reply) => [`${reply.persona} ${reply.requestId}`, reply.right]));
  return personas.flatMap((persona) =>
    (['openqa', 'mcq'] as const).flatMap((name) =>
      (['task', 'evidence'] as const).map((side) => {
        const rows = tasks.filter((task) => task.history_side === side);
        const count = (operation: string | null, key: 'control_request_id' | 'history_request_id') =>
          rows.filter(
            (task) =>
              (operation === null || task.operation === operation) &&
              right.get(`${persona} ${task.views[name][key]}`) === true,
          ).length;
        const [reference, conflict] = side === 'task' ? ['preserve', 'revise'] : ['retrieve', 'rebind'];
        return {
          persona,
          interface: name,
          side,
          n: rows.length / 2,
          single: count(null, 'control_request_id') / 2,
          reference: count(reference!, 'history_request_id'),
          conflict: count(conflict!, 'history_request_id'),
        };
      }),
    ),
  );
};

if (import.meta.main) {
  for (const [path, text] of Object.entries(scenarioFiles())) {
    writeFileSync(new URL(`../${path}`, import.meta.url), text);
  }
  console.table(expectedLadders());
}
