import type { EvidenceType, MemoryOperation } from '../../../shared/benchmarks/voxmem/format.ts';

/**
 * The example's questions and sessions (voxmem-protocol §7): who says what, how, and with what around them. Every
 * sentence is our own. Clips, histories and rows are made from this alone.
 */

/** A fixed voice for each persona. flite's voices are recorded people, espeak-ng's are computed. */
export const voices = {
  nora: { engine: 'flite', voice: 'slt', sounds: 'woman' },
  ben: { engine: 'flite', voice: 'rms', sounds: 'man' },
  graham: { engine: 'flite', voice: 'awb', sounds: 'man' },
  ida: { engine: 'espeak-ng', voice: 'en-us+steph', sounds: 'woman' },
  otto: { engine: 'espeak-ng', voice: 'en-us', sounds: 'man' },
} as const;
export type Persona = keyof typeof voices;

/** How something is said, where it is not said neutrally. `hurried` is for flite, the others for espeak-ng. */
export type Cue = 'whispered' | 'hurried' | 'high';
/** What is heard behind somebody. */
export type Sound = 'rain' | 'siren' | 'bell' | 'dripping';

export interface Utterance {
  who: Persona;
  text: string;
  cue: Cue | null;
  sound: Sound | null;
  /** A word that noise covers at the end of the sentence; the voice never says it. */
  lost: boolean;
}

export interface Session {
  timestamp: string;
  role: 'evidence' | 'samekey_haystack' | 'filler';
  turns: { user: Utterance; assistant: string }[];
}

export const lengths = ['8K', '16K', '32K', '64K'] as const;
export type Length = (typeof lengths)[number];

export type AnswerType = 'yes_no' | 'categorical' | 'number' | 'ordered_list' | 'free_text';

export interface Question {
  id: string;
  family: string;
  evidenceType: EvidenceType;
  operation: MemoryOperation;
  subtype: string;
  ask: Utterance;
  timestamp: string;
  answerType: AnswerType;
  normalization: string;
  /** Named in the question; empty where the answer is not one of a list. */
  options: readonly string[];
  /** Null where the evidence does not suffice. */
  gold: string | number | boolean | readonly string[] | null;
  /** What was done to the answerable question of the family; null for that one itself. */
  refusalRule: 'obscure' | 'unbind' | 'neutralize' | 'remove' | null;
  /** Sessions that a length has more than the next shorter one; a history is in order of time. */
  adds: Record<Length, readonly Session[]>;
}

interface Manner {
  cue?: Cue;
  sound?: Sound;
  lost?: true;
}

const says = (who: Persona, text: string, { cue, sound, lost }: Manner = {}): Utterance => ({
  who,
  text,
  cue: cue ?? null,
  sound: sound ?? null,
  lost: lost ?? false,
});

type Pair = readonly [user: Utterance, assistant: string];
const session =
  (role: Session['role']) =>
  (timestamp: string, ...pairs: Pair[]): Session => ({
    timestamp,
    role,
    turns: pairs.map(([user, assistant]) => ({ user, assistant })),
  });
const evidence = session('evidence');
const haystack = session('samekey_haystack');
const filler = session('filler');

/** Small talk that no question is about, spoken neutrally and in silence. */
const fillers: Record<Persona, readonly [Session, Session, Session, Session]> = {
  nora: [
    filler('2026-02-03 09:10', [says('nora', 'The bus was late again.'), 'That is a pity.']),
    filler(
      '2026-02-14 18:40',
      [says('nora', 'What goes well with lentils?'), 'Carrots and a little vinegar.'],
      [says('nora', 'I will try that.'), 'Enjoy your meal.'],
    ),
    filler('2026-03-01 08:05', [says('nora', 'I slept very well.'), 'Good to hear.']),
    filler('2026-03-09 20:15', [says('nora', 'Please tell me a riddle.'), 'What has hands and cannot clap?']),
  ],
  ben: [
    filler('2026-02-04 07:30', [says('ben', 'My coffee is cold.'), 'A new cup may help.']),
    filler('2026-02-16 12:20', [says('ben', 'How high is Ben Nevis?'), 'It is 1,345 metres high.']),
    filler(
      '2026-03-02 19:00',
      [says('ben', 'I finished my book.'), 'How did you like it?'],
      [says('ben', 'The end was too short.'), 'Perhaps there is a sequel.'],
    ),
    filler('2026-03-10 21:45', [says('ben', 'Wake me at seven.'), 'I will.']),
  ],
  graham: [
    filler('2026-02-05 10:00', [says('graham', 'I lost a glove.'), 'It may be in your coat.']),
    filler('2026-02-17 16:30', [says('graham', 'Is a whale a fish?'), 'No, it is a mammal.']),
    filler('2026-03-03 11:25', [says('graham', 'My tea needs honey.'), 'One spoon is enough.']),
    filler(
      '2026-03-11 17:50',
      [says('graham', 'Name a river in France.'), 'The Loire.'],
      [says('graham', 'And one in Spain?'), 'The Ebro.'],
    ),
  ],
  ida: [
    filler('2026-02-06 13:35', [says('ida', 'The milk is empty.'), 'I put it on your list.']),
    filler(
      '2026-02-18 08:50',
      [says('ida', 'Spell the word rhythm.'), 'R, H, Y, T, H, M.'],
      [says('ida', 'Thank you.'), 'You are welcome.'],
    ),
    filler('2026-03-04 15:15', [says('ida', 'I watered the roses.'), 'They will like that.']),
    filler('2026-03-12 22:05', [says('ida', 'It is late already.'), 'Sleep well.']),
  ],
  otto: [
    filler('2026-02-07 06:55', [says('otto', 'My shoes are too small.'), 'A larger size may help.']),
    filler('2026-02-19 14:45', [says('otto', 'Who wrote Emma?'), 'Jane Austen.']),
    filler(
      '2026-03-05 09:35',
      [says('otto', 'I need a longer rope.'), 'How long should it be?'],
      [says('otto', 'Ten metres.'), 'I made a note.'],
    ),
    filler('2026-03-13 19:20', [says('otto', 'The soup was good.'), 'What was in it?']),
  ],
};

/** Histories of 3, 4, 5 and 7 sessions. */
const grows = (
  shortest: readonly [Session, Session, Session],
  at16K: Session,
  at32K: Session,
  at64K: readonly [Session, Session],
): Question['adds'] => ({ '8K': shortest, '16K': [at16K], '32K': [at32K], '64K': at64K });

const [nora1, nora2, nora3, nora4] = fillers.nora;
const [ben1, ben2, ben3, ben4] = fillers.ben;
const [graham1, graham2, graham3, graham4] = fillers.graham;
const [ida1, ida2, ida3, ida4] = fillers.ida;
const [otto1, otto2, otto3, otto4] = fillers.otto;

const meeting = {
  first: evidence('2026-02-09 10:30', [says('ben', 'The meeting is in the library.'), 'I made a note.']),
  moved: evidence('2026-02-23 15:00', [says('ben', 'The meeting has moved to the station.'), 'Noted.']),
  unheard: evidence('2026-02-23 15:00', [
    says('ben', 'The meeting has moved to the', { lost: true }),
    'Sorry, there was a noise on the line.',
  ]),
  day: haystack('2026-03-06 09:00', [says('ben', 'The meeting is on Friday.'), 'Friday it is.']),
  ask: says('ben', 'Where will the meeting be?'),
};

const piano = {
  his: evidence('2026-02-08 17:10', [says('graham', 'The old piano is mine.'), 'A fine instrument.']),
  hers: evidence('2026-02-26 18:30', [says('ida', 'I have bought the old piano.'), 'Congratulations.']),
  somebodys: evidence('2026-02-26 18:30', [
    says('graham', 'Somebody has bought the old piano.'),
    'I hope that it is played.',
  ]),
  tuned: haystack('2026-03-07 10:40', [says('otto', 'A piano must be tuned each year.'), 'That is so.']),
  ask: says('graham', 'Who has the old piano now, a man or a woman?'),
  options: ['a man', 'a woman'],
};

const whisper = {
  gift: evidence('2026-02-10 20:30', [
    says('otto', 'The gift is in the blue box.', { cue: 'whispered' }),
    'I will keep it in mind.',
  ]),
  giftSaidPlainly: evidence('2026-02-10 20:30', [
    says('otto', 'The gift is in the blue box.'),
    'I will keep it in mind.',
  ]),
  bill: haystack('2026-02-20 11:00', [says('otto', 'The bill is on the table.'), 'Do not forget to pay it.']),
  train: haystack('2026-03-08 07:15', [says('otto', 'The train leaves at nine.'), 'Leave home at eight.']),
  ask: says('otto', 'What did I whisper about, the bill, the gift or the train?'),
  options: ['the bill', 'the gift', 'the train'],
};

const cake = {
  ordered: evidence('2026-02-11 16:05', [
    says('ben', 'Please order a chocolate cake.', { sound: 'rain' }),
    'For when?',
  ]),
  forWhom: haystack('2026-02-21 13:30', [
    says('ben', 'My sister does not like cake.', { sound: 'bell' }),
    'Perhaps she likes pie.',
  ]),
  pans: haystack('2026-03-06 18:20', [says('ben', 'I washed the cake tin.'), 'Well done.']),
  ask: says('ben', 'What was to be heard when I ordered the cake, rain, a siren, a bell or dripping water?'),
  options: ['rain', 'a siren', 'a bell', 'dripping water'],
};

const oneWord = 'Compare without case, punctuation and articles.';
const asNumber = 'Compare as numbers; words and digits are the same.';
const oneOption = 'Exactly one of the options that the question names.';
const inOrder = 'All elements, in this order.';
const yesOrNo = 'Yes or no.';

export const questions: readonly Question[] = [
  {
    id: 'q_00001',
    family: 'f_01',
    evidenceType: 'speech_semantics',
    operation: 'multi_session_reasoning',
    subtype: 'sum',
    ask: says('nora', 'How many tomato plants have I bought in all?'),
    timestamp: '2026-03-20 09:00',
    answerType: 'number',
    normalization: asNumber,
    options: [],
    gold: 7,
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-08 10:00', [says('nora', 'I bought four tomato plants.'), 'They need sun.']),
        evidence('2026-02-25 17:20', [
          says('nora', 'I bought three more tomato plants.'),
          'Water them in the evening.',
        ]),
        nora1,
      ],
      haystack('2026-03-07 12:10', [
        says('nora', 'My neighbour has nine tomato plants.'),
        'That is a large garden.',
      ]),
      nora2,
      [nora3, nora4],
    ),
  },
  {
    id: 'q_00002',
    family: 'f_02',
    evidenceType: 'speech_semantics',
    operation: 'temporal_evolution_tracking',
    subtype: 'latest_state',
    ask: meeting.ask,
    timestamp: '2026-03-20 10:00',
    answerType: 'free_text',
    normalization: oneWord,
    options: [],
    gold: 'the station',
    refusalRule: null,
    adds: grows([meeting.first, meeting.moved, ben1], meeting.day, ben2, [ben3, ben4]),
  },
  {
    id: 'q_00003',
    family: 'f_02',
    evidenceType: 'speech_semantics',
    operation: 'answer_refusal',
    subtype: 'latest_state',
    ask: meeting.ask,
    timestamp: '2026-03-20 10:00',
    answerType: 'free_text',
    normalization: oneWord,
    options: [],
    gold: null,
    refusalRule: 'obscure',
    adds: grows([meeting.first, meeting.unheard, ben1], meeting.day, ben2, [ben3, ben4]),
  },
  {
    id: 'q_00004',
    family: 'f_03',
    evidenceType: 'speaker_information',
    operation: 'information_extraction',
    subtype: 'same_speaker',
    ask: says('ben', 'Was it I who told you about the broken lamp?'),
    timestamp: '2026-03-20 11:00',
    answerType: 'yes_no',
    normalization: yesOrNo,
    options: [],
    gold: false,
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-12 19:40', [
          says('ida', 'The lamp in the hall is broken.'),
          'A new bulb may be enough.',
        ]),
        haystack('2026-02-22 08:30', [says('ben', 'I bought a lamp for my desk.'), 'Is it bright?']),
        ida1,
      ],
      ben2,
      ida3,
      [ben1, ben4],
    ),
  },
  {
    id: 'q_00005',
    family: 'f_04',
    evidenceType: 'speaker_information',
    operation: 'multi_session_reasoning',
    subtype: 'count_speakers',
    ask: says('nora', 'How many different people spoke of the picnic?'),
    timestamp: '2026-03-20 12:00',
    answerType: 'number',
    normalization: asNumber,
    options: [],
    gold: 2,
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-09 12:00', [says('nora', 'I will bring bread to the picnic.'), 'Lovely.']),
        evidence('2026-02-20 14:10', [says('graham', 'I will bring apples to the picnic.'), 'Healthy, too.']),
        evidence('2026-02-28 16:50', [
          says('nora', 'I will bring cheese to the picnic, too.'),
          'Keep it cool.',
        ]),
      ],
      ida2,
      graham1,
      [nora1, otto2],
    ),
  },
  {
    id: 'q_00006',
    family: 'f_05',
    evidenceType: 'speaker_information',
    operation: 'temporal_evolution_tracking',
    subtype: 'latest_speaker',
    ask: piano.ask,
    timestamp: '2026-03-20 13:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: piano.options,
    gold: 'a woman',
    refusalRule: null,
    adds: grows([piano.his, piano.hers, graham2], piano.tuned, ida4, [graham3, graham4]),
  },
  {
    id: 'q_00007',
    family: 'f_05',
    evidenceType: 'speaker_information',
    operation: 'answer_refusal',
    subtype: 'latest_speaker',
    ask: piano.ask,
    timestamp: '2026-03-20 13:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: piano.options,
    gold: null,
    refusalRule: 'unbind',
    adds: grows([piano.his, piano.somebodys, graham2], piano.tuned, ida4, [graham3, graham4]),
  },
  {
    id: 'q_00008',
    family: 'f_06',
    evidenceType: 'paralinguistic_information',
    operation: 'information_extraction',
    subtype: 'delivery',
    ask: whisper.ask,
    timestamp: '2026-03-20 14:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: whisper.options,
    gold: 'the gift',
    refusalRule: null,
    adds: grows([whisper.gift, whisper.bill, otto1], whisper.train, otto2, [otto3, otto4]),
  },
  {
    id: 'q_00009',
    family: 'f_07',
    evidenceType: 'paralinguistic_information',
    operation: 'multi_session_reasoning',
    subtype: 'count_delivery',
    ask: says('nora', 'How many times was I in a hurry when I spoke?'),
    timestamp: '2026-03-20 15:00',
    answerType: 'number',
    normalization: asNumber,
    options: [],
    gold: 2,
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-10 08:20', [
          says('nora', 'I have to call the bank today.', { cue: 'hurried' }),
          'They open at nine.',
        ]),
        haystack('2026-02-19 10:10', [says('nora', 'I have to wash the car.'), 'Take warm water.']),
        evidence('2026-02-27 13:00', [
          says('nora', 'I have to send the letter.', { cue: 'hurried' }),
          'The box is emptied at five.',
        ]),
      ],
      nora3,
      nora1,
      [nora2, nora4],
    ),
  },
  {
    id: 'q_00010',
    family: 'f_08',
    evidenceType: 'paralinguistic_information',
    operation: 'temporal_evolution_tracking',
    subtype: 'order_of_delivery',
    ask: says('otto', 'In which order did I use a high, a normal and a whispering voice for the baby?'),
    timestamp: '2026-03-20 16:00',
    answerType: 'ordered_list',
    normalization: inOrder,
    options: [],
    gold: ['whisper', 'normal', 'high'],
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-08 21:00', [
          says('otto', 'The baby sleeps in my room.', { cue: 'whispered' }),
          'Sweet dreams.',
        ]),
        evidence('2026-02-18 12:30', [says('otto', 'The baby has eaten a pear.'), 'Very good.']),
        evidence('2026-02-28 17:40', [
          says('otto', 'The baby can stand alone.', { cue: 'high' }),
          'How wonderful.',
        ]),
      ],
      otto3,
      otto1,
      [otto2, otto4],
    ),
  },
  {
    id: 'q_00011',
    family: 'f_06',
    evidenceType: 'paralinguistic_information',
    operation: 'answer_refusal',
    subtype: 'delivery',
    ask: whisper.ask,
    timestamp: '2026-03-20 14:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: whisper.options,
    gold: null,
    refusalRule: 'neutralize',
    adds: grows([whisper.giftSaidPlainly, whisper.bill, otto1], whisper.train, otto2, [otto3, otto4]),
  },
  {
    id: 'q_00012',
    family: 'f_09',
    evidenceType: 'environmental_sound',
    operation: 'information_extraction',
    subtype: 'sound_of_event',
    ask: cake.ask,
    timestamp: '2026-03-20 17:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: cake.options,
    gold: 'rain',
    refusalRule: null,
    adds: grows([cake.ordered, cake.forWhom, ben4], cake.pans, ben1, [ben2, ben3]),
  },
  {
    id: 'q_00013',
    family: 'f_10',
    evidenceType: 'environmental_sound',
    operation: 'multi_session_reasoning',
    subtype: 'same_sound',
    ask: says('graham', 'Was the same sound to be heard when I sold the boat and when I bought the bicycle?'),
    timestamp: '2026-03-20 18:00',
    answerType: 'yes_no',
    normalization: yesOrNo,
    options: [],
    gold: true,
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-12 11:15', [
          says('graham', 'I have sold my boat.', { sound: 'siren' }),
          'Did you get a good price?',
        ]),
        evidence('2026-02-24 10:45', [
          says('graham', 'I have bought a bicycle.', { sound: 'siren' }),
          'Ride safely.',
        ]),
        graham4,
      ],
      haystack('2026-03-08 14:00', [
        says('graham', 'I have oiled the bicycle.', { sound: 'bell' }),
        'It will run well.',
      ]),
      graham1,
      [graham2, graham3],
    ),
  },
  {
    id: 'q_00014',
    family: 'f_11',
    evidenceType: 'environmental_sound',
    operation: 'temporal_evolution_tracking',
    subtype: 'latest_sound',
    ask: says('ida', 'What was to be heard the last time that I was in the attic?'),
    timestamp: '2026-03-20 19:00',
    answerType: 'free_text',
    normalization: oneWord,
    options: [],
    gold: 'dripping water',
    refusalRule: null,
    adds: grows(
      [
        evidence('2026-02-11 09:25', [
          says('ida', 'I am cleaning the attic.', { sound: 'siren' }),
          'Mind the dust.',
        ]),
        evidence('2026-02-27 15:35', [
          says('ida', 'I am in the attic again.', { sound: 'dripping' }),
          'Take a torch.',
        ]),
        ida3,
      ],
      haystack('2026-03-09 16:45', [
        says('ida', 'I am in the cellar now.', { sound: 'rain' }),
        'Mind the stairs.',
      ]),
      ida1,
      [ida2, ida4],
    ),
  },
  {
    id: 'q_00015',
    family: 'f_09',
    evidenceType: 'environmental_sound',
    operation: 'answer_refusal',
    subtype: 'sound_of_event',
    ask: cake.ask,
    timestamp: '2026-03-20 17:00',
    answerType: 'categorical',
    normalization: oneOption,
    options: cake.options,
    gold: null,
    refusalRule: 'remove',
    adds: grows([ben3, cake.forWhom, ben4], cake.pans, ben1, [ben2, nora3]),
  },
];

const byTime = (a: Session, b: Session): number =>
  a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0;

/** The history of a question at a length, in order of time. */
export const historyOf = ({ adds }: Question, length: Length): Session[] =>
  lengths
    .slice(0, lengths.indexOf(length) + 1)
    .flatMap((shorter) => adds[shorter])
    .toSorted(byTime);

/** Every utterance of the example once, questions included, in order of first use. */
export const utterances = (): Utterance[] => {
  const found = new Map<string, Utterance>();
  for (const question of questions) {
    const spoken = historyOf(question, '64K').flatMap(({ turns }) => turns.map(({ user }) => user));
    for (const utterance of [...spoken, question.ask]) found.set(utteranceKey(utterance), utterance);
  }
  return [...found.values()];
};

/** Equal for utterances that sound the same. */
export const utteranceKey = ({ who, text, cue, sound, lost }: Utterance): string =>
  JSON.stringify([who, text, cue, sound, lost]);
