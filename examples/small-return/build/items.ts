/**
 * Everything that the example asks, in one place. `build-tasks.ts` turns it into the three files of a release,
 * `build-scenario.ts` into the replies of three simulated models. Every answer was found by looking at the
 * frames of the clip or from the known text of its sound.
 */

export type Modality = 'V' | 'A';

/** What a clip shows and what is heard in it; films are silent, the sound is the companion WAV. */
export const clips = {
  'clip-01': {
    shows: 'face of a tabby cat',
    heard: '"The night train to Lisbon leaves from platform seven." (man)',
  },
  'clip-02': { shows: 'a cat walks, then runs to the right (1887)', heard: '"ten of clubs" (man)' },
  'clip-03': { shows: 'rocket on its pad at dusk', heard: 'electric guitar' },
  'clip-04': { shows: 'silhouette of a horse', heard: 'drum roll' },
  'clip-05': { shows: 'sheep on a field (1888)', heard: '"My sister moved to Chicago last spring." (woman)' },
  'clip-06': { shows: 'cockatoo comes up to the lens', heard: 'crow, three calls' },
  'clip-07': {
    shows: 'cockatoo turns aside and shows its crest',
    heard: '"Guten Morgen, heute ist es leider sehr kalt."',
  },
  'clip-08': { shows: 'racing car drives up to the camera (1906)', heard: 'drum kit' },
  'clip-09': { shows: 'the same film backwards', heard: '"We sent you a postcard from Lisbon." (man)' },
  'clip-10': { shows: 'cup on a red saucer', heard: '"He was not an ill-disposed young man." (woman)' },
  'clip-11': { shows: 'the same cup and saucer in blue', heard: 'one stroke of a bell' },
  'clip-12': { shows: 'biplane from above (1914–29)', heard: '"seven of clubs" (man)' },
  'clip-13': { shows: 'boats on a river (1865)', heard: 'cash register' },
  'clip-14': {
    shows: 'boat on the bank of a river (1871)',
    heard: '"Bonjour, où se trouve la gare, s’il vous plaît ?"',
  },
  'clip-15': { shows: 'deserted hut on a plain', heard: 'nothing: digital silence' },
  'clip-16': { shows: 'fir trees and snowy mountains', heard: '"Das Wetter wird morgen wieder besser."' },
  'clip-17': { shows: 'a flower head, close', heard: 'piano chord' },
  'clip-18': {
    shows: 'thorny plant, close',
    heard: '"He might even have been made amiable himself." (woman)',
  },
} as const;
export type Clip = keyof typeof clips;

/** A question of the history that is not the one of the task; its answer is for the simulated models only. */
export interface Aside {
  clip: Clip;
  question: string;
  answer: string;
}

export interface Answer {
  text: string;
  aliases?: string[];
  /** The answer in a model's words, as free text. */
  sentence: string;
}

interface Root {
  id: string;
  family: string;
  modality: Modality;
  question: string;
  options: readonly [string, string, string, string];
  gold: Answer;
  /** The answer of the clip that misleads: always one of the options. */
  other: Answer;
}

/** The history carries the task: the first turn asks, the last one shows another clip. */
export interface TaskRoot extends Root {
  side: 'task';
  horizon: 'short' | 'long';
  target: Clip;
  /** Clip of the first turn: with the same answer in the reference, with another one in the conflict task. */
  first: { reference: Clip; conflict: Clip };
  /** None for the short horizon, three for the long one. */
  between: Aside[];
}

/** The history carries the evidence: the last turn asks about an earlier clip. Short and long horizon. */
export interface EvidenceRoot extends Root {
  side: 'evidence';
  target: Aside;
  /** The four turns before the last one at the long horizon; `target` is one of them. */
  long: (Aside | 'target')[];
  /** Clip of the last turn: without any answer in the reference, with another answer in the conflict task. */
  last: { reference: Clip; conflict: Clip };
  /** What a model says that looks for the answer in the reference's last clip. */
  nothing: string;
}

const aside = (clip: Clip, question: string, answer: string): Aside => ({ clip, question, answer });

const eyes = aside('clip-01', 'What colour are the eyes?', 'Green.');
const crest = aside('clip-06', 'Is the picture taken indoors?', 'Yes, inside a room.');
const cup = aside('clip-10', 'What is in the cup?', 'Coffee.');
const wings = aside(
  'clip-12',
  'What is painted on the wings?',
  'A ring with a dot in the middle, on both sides.',
);
const hut = aside('clip-15', 'Is anybody standing at the hut?', 'No.');
const peaks = aside('clip-16', 'What lies on the mountains?', 'Snow.');
const thorns = aside('clip-18', 'Does the plant have thorns?', 'Yes.');

const guitar = aside('clip-03', 'Is the music slow or fast?', 'Slow.');
const crow = aside('clip-06', 'Which bird calls?', 'A crow.');
const card = aside('clip-02', 'Is the voice that of a man or of a woman?', 'A man.');
const weather = aside('clip-07', 'Does the speaker greet the listener?', 'Yes.');
const novel = aside('clip-10', 'Is the reader a man or a woman?', 'A woman.');
const bell = aside('clip-11', 'How often is the bell struck?', 'Once.');
const till = aside('clip-13', 'Does anybody speak?', 'No.');
const silence = aside('clip-15', 'Can anything be heard?', 'No, it is silent.');

export const taskRoots: TaskRoot[] = [
  {
    side: 'task',
    id: 'example-task-v-animal',
    family: 'animal',
    modality: 'V',
    horizon: 'short',
    question: 'Which animal does this clip show?',
    options: ['horse', 'cat', 'sheep', 'rabbit'],
    gold: { text: 'cat', aliases: ['a cat', 'tabby cat', 'house cat'], sentence: 'It is a cat, I think.' },
    other: { text: 'horse', sentence: 'That looks like a horse to me.' },
    target: 'clip-01',
    first: { reference: 'clip-02', conflict: 'clip-04' },
    between: [],
  },
  {
    side: 'task',
    id: 'example-task-v-saucer',
    family: 'colour',
    modality: 'V',
    horizon: 'short',
    question: 'What colour is the saucer in this clip?',
    options: ['white', 'green', 'blue', 'red'],
    gold: { text: 'red', aliases: ['dark red', 'brick red'], sentence: 'The saucer under the cup is red.' },
    other: { text: 'blue', sentence: 'The saucer is a deep blue.' },
    target: 'clip-10',
    first: { reference: 'clip-10', conflict: 'clip-11' },
    between: [],
  },
  {
    side: 'task',
    id: 'example-task-v-motion',
    family: 'motion',
    modality: 'V',
    horizon: 'long',
    question: 'How does the main subject of this clip move, seen from the camera?',
    options: ['towards the camera', 'away from the camera', 'only sideways', 'not at all'],
    gold: {
      text: 'towards the camera',
      aliases: ['toward the camera', 'towards the viewer', 'it comes closer'],
      sentence: 'It comes steadily towards the camera.',
    },
    other: { text: 'away from the camera', sentence: 'It gets smaller, so it moves away from the camera.' },
    target: 'clip-08',
    first: { reference: 'clip-06', conflict: 'clip-09' },
    between: [wings, hut, thorns],
  },
  {
    side: 'task',
    id: 'example-task-v-vehicle',
    family: 'vehicle',
    modality: 'V',
    horizon: 'long',
    question: 'What kind of vehicle does this clip show?',
    options: ['car', 'train', 'boat', 'aeroplane'],
    gold: {
      text: 'boat',
      aliases: ['boats', 'a boat', 'sailing boat', 'ship'],
      sentence: 'I can see a boat on the water.',
    },
    other: { text: 'car', aliases: ['racing car'], sentence: 'It is an old racing car.' },
    target: 'clip-13',
    first: { reference: 'clip-14', conflict: 'clip-08' },
    between: [eyes, peaks, thorns],
  },
  {
    side: 'task',
    id: 'example-task-a-city',
    family: 'spoken_city',
    modality: 'A',
    horizon: 'short',
    question: 'Which city does the speaker name in this clip?',
    options: ['Madrid', 'Chicago', 'Berlin', 'Lisbon'],
    gold: { text: 'Lisbon', sentence: 'The speaker mentions Lisbon.' },
    other: { text: 'Chicago', sentence: 'The city named is Chicago.' },
    target: 'clip-01',
    first: { reference: 'clip-09', conflict: 'clip-05' },
    between: [],
  },
  {
    side: 'task',
    id: 'example-task-a-card',
    family: 'playing_card',
    modality: 'A',
    horizon: 'short',
    question: 'Which playing card does the speaker name in this clip?',
    options: ['ten of clubs', 'ten of hearts', 'queen of spades', 'seven of clubs'],
    gold: { text: 'ten of clubs', aliases: ['10 of clubs'], sentence: 'I hear "ten of clubs".' },
    other: { text: 'seven of clubs', aliases: ['7 of clubs'], sentence: 'The man says "seven of clubs".' },
    target: 'clip-02',
    first: { reference: 'clip-02', conflict: 'clip-12' },
    between: [],
  },
  {
    side: 'task',
    id: 'example-task-a-instrument',
    family: 'instrument',
    modality: 'A',
    horizon: 'long',
    question: 'Which instrument is played in this clip?',
    options: ['violin', 'drums', 'guitar', 'flute'],
    gold: {
      text: 'drums',
      aliases: ['drum', 'a drum', 'snare drum', 'drum roll'],
      sentence: 'Somebody plays the drums.',
    },
    other: { text: 'guitar', aliases: ['electric guitar'], sentence: 'It is a guitar, played slowly.' },
    target: 'clip-04',
    first: { reference: 'clip-08', conflict: 'clip-03' },
    between: [novel, till, silence],
  },
  {
    side: 'task',
    id: 'example-task-a-language',
    family: 'language',
    modality: 'A',
    horizon: 'long',
    question: 'Which language is spoken in this clip?',
    options: ['French', 'Italian', 'German', 'Polish'],
    gold: { text: 'German', aliases: ['Deutsch'], sentence: 'The voice speaks German.' },
    other: { text: 'French', sentence: 'That is French, a polite question.' },
    target: 'clip-16',
    first: { reference: 'clip-07', conflict: 'clip-14' },
    between: [guitar, crow, till],
  },
];

export const evidenceRoots: EvidenceRoot[] = [
  {
    side: 'evidence',
    id: 'example-evidence-v-animal',
    family: 'animal',
    modality: 'V',
    question: 'Which kind of animal can be seen?',
    options: ['goat', 'horse', 'cow', 'sheep'],
    gold: {
      text: 'sheep',
      aliases: ['a sheep', 'sheep and lambs'],
      sentence: 'There are several sheep in it.',
    },
    other: { text: 'horse', sentence: 'It shows a horse from the side.' },
    target: aside('clip-05', 'Is there any grass?', 'Yes.'),
    long: [wings, cup, 'target', hut],
    last: { reference: 'clip-03', conflict: 'clip-04' },
    nothing: 'I cannot see any animal here.',
  },
  {
    side: 'evidence',
    id: 'example-evidence-v-vehicle',
    family: 'vehicle',
    modality: 'V',
    question: 'What kind of vehicle can be seen?',
    options: ['boat', 'aeroplane', 'bicycle', 'car'],
    gold: {
      text: 'aeroplane',
      aliases: ['airplane', 'plane', 'biplane', 'aircraft'],
      sentence: 'It is an aeroplane seen from above.',
    },
    other: { text: 'boat', sentence: 'A boat, with others behind it.' },
    target: aside('clip-12', 'Is the picture in colour or in black and white?', 'Black and white.'),
    long: ['target', crest, peaks, cup],
    last: { reference: 'clip-17', conflict: 'clip-13' },
    nothing: 'There is no vehicle, only a flower.',
  },
  {
    side: 'evidence',
    id: 'example-evidence-a-city',
    family: 'spoken_city',
    modality: 'A',
    question: 'Which city does the speaker name?',
    options: ['Chicago', 'Boston', 'Lisbon', 'Rome'],
    gold: { text: 'Chicago', sentence: 'She talks about Chicago.' },
    other: { text: 'Lisbon', sentence: 'He names Lisbon.' },
    target: aside('clip-05', 'Is the speaker a man or a woman?', 'A woman.'),
    long: [till, bell, 'target', card],
    last: { reference: 'clip-03', conflict: 'clip-01' },
    nothing: 'Nobody speaks, there is only music.',
  },
  {
    side: 'evidence',
    id: 'example-evidence-a-source',
    family: 'sound_source',
    modality: 'A',
    question: 'Which object makes the sound?',
    options: ['bell', 'typewriter', 'cash register', 'door'],
    gold: {
      text: 'cash register',
      aliases: ['a cash register', 'till', 'cash machine'],
      sentence: 'It sounds like a cash register.',
    },
    other: { text: 'bell', sentence: 'That is a bell.' },
    target: till,
    long: [card, weather, novel, 'target'],
    last: { reference: 'clip-15', conflict: 'clip-11' },
    nothing: 'There is no sound at all.',
  },
];
