import type { Length } from './plan.ts';

/** Two simulated models. Neither hears anything: what each replies is written down here. */
export const personas = ['persona-listener', 'persona-wordbound'] as const;
export type Persona = (typeof personas)[number];

/**
 * What an item is meant to come to (voxmem-protocol §4).
 *
 * - `right`, `wrong`: as the judge is to find.
 * - `ungraded`: the simulated judge answers with prose each time it sees the reply.
 * - `empty`, `failed`, `rejected`: no text; stopped by a filter in the middle of the reply; history too long for the
 *   provider, which turns the request away.
 */
export type Meant = 'right' | 'wrong' | 'ungraded' | 'empty' | 'failed' | 'rejected';

export interface Reply {
  meant: Meant;
  text: string;
}

const right = (text: string): Reply => ({ meant: 'right', text });
const wrong = (text: string): Reply => ({ meant: 'wrong', text });
const [ungraded, empty, failed, rejected] = (['ungraded', 'empty', 'failed', 'rejected'] as const).map(
  (meant) => (text: string) => ({ meant, text }),
) as [typeof right, typeof right, typeof right, typeof right];

type Four = readonly [Reply, Reply, Reply, Reply];
const always = (reply: Reply): Four => [reply, reply, reply, reply];

const abstains = right('Insufficient evidence.');

/** Hears words, voices and sounds; loses them as histories grow. */
const listener: Record<string, Four> = {
  q_00001: [
    right('7'),
    right('Seven.'),
    right('You bought seven tomato plants: four at first and three later.'),
    wrong('16'),
  ],
  q_00002: [
    right('The station.'),
    right('At the station.'),
    right('**the station**'),
    right('It was planned for another place at first, but it will be at the station.'),
  ],
  q_00003: [
    abstains,
    right('There is not enough evidence: a noise covered the new place.'),
    abstains,
    wrong('The library.'),
  ],
  q_00004: [right('No.'), right('no'), right('No, that was somebody else.'), empty('No.')],
  q_00005: [right('2'), right('Two people.'), right('Two.'), wrong('Three.')],
  q_00006: [right('A woman.'), right('a woman'), wrong('A man or a woman.'), wrong('A man.')],
  q_00007: [abstains, abstains, wrong('A man.'), wrong('A woman.')],
  q_00008: [
    right('The gift.'),
    right('the gift'),
    right('You whispered about the gift.'),
    right('I think it was the gift.'),
  ],
  q_00009: [right('2'), right('Two times.'), wrong('Three times.'), rejected('2')],
  q_00010: [
    right('Whisper, normal, high.'),
    right('First a whisper, then your normal voice, then a high one.'),
    wrong('Normal, whisper, high.'),
    wrong('High, normal, whisper.'),
  ],
  q_00011: [
    abstains,
    abstains,
    wrong('Insufficient evidence, but I guess that it was the gift.'),
    wrong('The gift.'),
  ],
  q_00012: [right('Rain.'), right('rain'), right('I heard rain.'), ungraded('It was rain that I heard.')],
  q_00013: [right('Yes.'), right('yes'), right('Yes, a siren both times.'), failed('Yes, it was the same.')],
  q_00014: [
    right('Dripping water.'),
    right('There was dripping water.'),
    wrong('Insufficient evidence.'),
    wrong('A siren.'),
  ],
  q_00015: [abstains, abstains, abstains, abstains],
};

/** Knows the words alone, takes every voice for one, and answers whatever it is asked. */
const wordbound: Record<string, Four> = {
  q_00001: [right('7'), right('seven'), right('7'), right('Seven plants.')],
  q_00002: always(right('The station.')),
  q_00003: always(wrong('The library.')),
  q_00004: always(wrong('Yes.')),
  q_00005: always(wrong('One.')),
  q_00006: [wrong('A man.'), wrong('A man.'), right('A woman.'), wrong('A man.')],
  q_00007: always(wrong('A man.')),
  q_00008: [wrong('The bill.'), right('The gift.'), wrong('The train.'), wrong('The bill.')],
  q_00009: always(wrong('0')),
  q_00010: always(wrong('High, normal, whisper.')),
  q_00011: [wrong('The bill.'), wrong('The bill.'), wrong('The bill.'), wrong('I do not know.')],
  q_00012: [wrong('A bell.'), right('Rain.'), wrong('A siren.'), wrong('A siren.')],
  q_00013: [right('Yes.'), wrong('No.'), right('Yes.'), wrong('No.')],
  q_00014: always(wrong('I cannot process audio.')),
  q_00015: [
    wrong('I cannot process audio.'),
    wrong('I cannot process audio.'),
    wrong('I cannot process audio.'),
    right('The conversation does not hold enough evidence.'),
  ],
};

const order: readonly Length[] = ['8K', '16K', '32K', '64K'];

/** What a persona replies to a question at a length. */
export const replyOf = (persona: Persona, questionId: string, length: Length): Reply => {
  const replies = persona === 'persona-listener' ? listener : wordbound;
  const reply = replies[questionId]?.[order.indexOf(length)];
  if (reply === undefined) throw new Error(`${persona} has no reply to ${questionId} at ${length}`);
  return reply;
};
