import type { Modality } from './composition.ts';
import { type Draw, pick, shuffled } from './draw.ts';

/** An answer: its name, a further accepted wording, and a wording that only a judge recognises. */
interface Term {
  name: string;
  alias: string;
  paraphrase: string;
}

interface Domain {
  family: string;
  modality: Modality;
  /** With `%` where the place or moment goes. */
  questions: readonly string[];
  terms: readonly Term[];
}

const terms = (...rows: [name: string, alias: string, paraphrase: string][]): Term[] =>
  rows.map(([name, alias, paraphrase]) => ({ name, alias, paraphrase }));

const domains: readonly Domain[] = [
  {
    family: 'tool',
    modality: 'V',
    questions: ['Which tool lies %?', 'What tool can be seen %?', 'Which tool does a hand pick up %?'],
    terms: terms(
      ['hammer', 'a hammer', 'the thing you drive nails with'],
      ['chisel', 'a chisel', 'a blade for carving wood'],
      ['wrench', 'spanner', 'what one turns a bolt with'],
      ['pliers', 'a pair of pliers', 'gripping tongs for wire'],
      ['handsaw', 'hand saw', 'something with teeth for cutting planks'],
      ['spirit level', 'bubble level', 'the instrument that shows if a shelf is horizontal'],
    ),
  },
  {
    family: 'object_colour',
    modality: 'V',
    questions: ['What colour is the vehicle %?', 'Which color does the jacket have %?'],
    terms: terms(
      ['red', 'red one', 'scarlet'],
      ['blue', 'blue one', 'navy'],
      ['green', 'green one', 'olive'],
      ['yellow', 'yellow one', 'lemon'],
      ['purple', 'purple one', 'violet'],
      ['white', 'white one', 'ivory'],
    ),
  },
  {
    family: 'animal',
    modality: 'V',
    questions: ['Which animal walks %?', 'What animal is shown %?'],
    terms: terms(
      ['giraffe', 'a giraffe', 'the tall spotted one with the long neck'],
      ['penguin', 'a penguin', 'a bird in tails that swims'],
      ['hedgehog', 'a hedgehog', 'the small one covered in spines'],
      ['kangaroo', 'roo', 'the hopper with a pouch'],
      ['flamingo', 'a flamingo', 'the pink wader on one leg'],
      ['tortoise', 'a tortoise', 'the slow one in a shell'],
    ),
  },
  {
    family: 'vehicle_count',
    modality: 'V',
    questions: ['How many bicycles stand %?', 'How many balloons float %?'],
    terms: terms(
      ['two', '2', 'a couple'],
      ['three', '3', 'a trio'],
      ['seven', '7', 'one more than half a dozen'],
      ['nine', '9', 'three times as many as a trio'],
      ['twelve', '12', 'a dozen'],
      ['fifteen', '15', 'a score less five'],
    ),
  },
  {
    family: 'spoken_town',
    modality: 'A',
    questions: ['Which town does the voice name %?', 'What town is mentioned %?'],
    terms: terms(
      ['Lisbon', 'Lisboa', 'the Portuguese capital'],
      ['Bergen', 'Bergen in Norway', 'the Norwegian port of the seven mountains'],
      ['Trieste', 'Triest', 'the Adriatic port near Slovenia'],
      ['Malmö', 'Malmo', 'the Swedish end of the Øresund bridge'],
      ['Kyoto', 'Kyōto', 'the old seat of the Japanese court'],
      ['Quito', 'San Francisco de Quito', 'the seat of government of Ecuador'],
    ),
  },
  {
    family: 'instrument',
    modality: 'A',
    questions: ['Which instrument plays %?', 'What instrument is heard %?'],
    terms: terms(
      ['violin', 'fiddle', 'the smallest of the orchestral strings'],
      ['trumpet', 'a trumpet', 'the bright brass with three valves'],
      ['marimba', 'a marimba', 'wooden bars struck with mallets'],
      ['bagpipes', 'pipes', 'the Highland reed pipes with an air sack'],
      ['harpsichord', 'cembalo', 'the plucked keyboard of the baroque'],
      ['accordion', 'squeezebox', 'the bellows with buttons'],
    ),
  },
  {
    family: 'spoken_ingredient',
    modality: 'A',
    questions: ['Which ingredient does the cook name %?', 'What ingredient is asked for %?'],
    terms: terms(
      ['butter', 'some butter', 'churned cream'],
      ['cinnamon', 'ground cinnamon', 'the brown bark spice'],
      ['garlic', 'garlic cloves', 'the pungent bulb that keeps vampires off'],
      ['saffron', 'saffron threads', 'the costly crocus stigmas'],
      ['flour', 'wheat flour', 'milled grain'],
      ['vinegar', 'wine vinegar', 'soured wine'],
    ),
  },
];

const moments = [
  'at the start',
  'near the end',
  'in the middle of the clip',
  'before the cut',
  'after the pause',
  'while somebody laughs',
  'next to the window',
  'beside the door',
  'on the left',
  'on the right',
  'in the background',
  'under the lamp',
  'right after the bell',
  'when it rains',
  'behind the counter',
  'in front of the wall',
];

export interface Question {
  family: string;
  text: string;
  /** Names of the four options, the right one among them. */
  options: readonly string[];
  /** Index of the right option. */
  gold: number;
  /** Accepted wordings of the right one, its name first. */
  aliases: readonly string[];
  /** Right to a judge only. */
  paraphrase: string;
  /** The option that a history suggests instead. */
  rival: number;
}

export const makeQuestion = (modality: Modality, draw: Draw): Question => {
  const domain = pick(
    domains.filter((one) => one.modality === modality),
    draw,
  );
  const text = pick(domain.questions, draw).replace('%', pick(moments, draw));
  const chosen = shuffled(domain.terms, draw).slice(0, 4);
  const gold = Math.floor(draw() * 4);
  const right = chosen[gold]!;
  return {
    family: domain.family,
    text,
    options: chosen.map(({ name }) => name),
    gold,
    aliases: [right.name, right.alias],
    paraphrase: right.paraphrase,
    rival: (gold + 1 + Math.floor(draw() * 3)) % 4,
  };
};

const closings = { openqa: 'Answer briefly.', mcq: 'Answer with only the option letter.' };
export const closingOf = (name: 'openqa' | 'mcq'): string => closings[name];

/** A turn of small talk about a clip, asked for a history and never scored. */
export const makeSideQuestion = (draw: Draw): string =>
  `${pick(
    [
      'What happens %?',
      'Who is there %?',
      'Where could this be, judging by what is %?',
      'What catches the attention %?',
      'What would you title the scene %?',
    ],
    draw,
  ).replace('%', pick(moments, draw))}\n${closings.openqa}`;

export const sideAnswers = [
  'Two people talk',
  'A street market, it seems.',
  'Somebody cooks',
  'A quiet office',
  'Rain on a roof.',
  'An interview between two guests',
  'A dog chases a ball across the lawn.',
  'The camera pans over a harbour',
] as const;

/** What a judge knows of words: the answer that each paraphrase stands for. */
export const meaningOf: ReadonlyMap<string, string> = new Map(
  domains.flatMap((domain) =>
    domain.terms.map(({ name, paraphrase }): [string, string] => [paraphrase.toLowerCase(), name]),
  ),
);
