import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Cue, type Utterance, utteranceKey, utterances, voices } from './plan.ts';
import { hiss, soundOf } from './sounds.ts';
import { decodeWav, encodeWav, fromDecibels, levelled, rms } from './wav.ts';

export const rate = 8_000;
/** Speech goes before what is heard behind it (voxmem-protocol §7). */
export const signalToNoiseDecibels = 10;
const speechDecibels = -23;
const whisperDecibels = -29;
const lostWordSeconds = 0.6;

/** A row of `clips.jsonl`. */
export interface ClipFacts extends Utterance {
  /** As in the data set. Names the recipe by its hash: a path must not tell what is said. */
  path: string;
  sha256: string;
  seconds: number;
  /** The speech without the sound behind it, in `stems/`; null where there is no sound. */
  clean: string | null;
  /** The same words in the same voice without the cue, in `stems/`; null where there is no cue. */
  neutral: string | null;
}

/** Short name of an utterance: the first hex digits of the hash of its recipe. */
export const clipName = (utterance: Utterance): string =>
  createHash('sha256').update(utteranceKey(utterance)).digest('hex').slice(0, 10);

const synthesizer = ({ who, text, cue }: Utterance, file: string): [command: string, args: string[]] => {
  const { engine, voice } = voices[who];
  const fits: Record<typeof engine, readonly (Cue | null)[]> = {
    flite: [null, 'hurried'],
    'espeak-ng': [null, 'whispered', 'high'],
  };
  if (!fits[engine].includes(cue)) throw new Error(`${engine} has no recipe for ${cue} speech`);
  if (engine === 'flite') {
    const stretch = cue === 'hurried' ? 0.6 : 1;
    return [engine, ['-voice', voice, '--setf', `duration_stretch=${stretch}`, '-t', text, '-o', file]];
  }
  const spoken = cue === 'whispered' ? `${voice}+whisper` : voice;
  return [engine, ['-v', spoken, '-s', '130', '-p', cue === 'high' ? '95' : '50', '-w', file, text]];
};

/** Speech alone, at the rate and level of the example. */
const speak = (utterance: Utterance, scratch: string): Float64Array => {
  const spoken = path.join(scratch, 'spoken.wav');
  const resampled = path.join(scratch, 'resampled.wav');
  execFileSync(...synthesizer(utterance, spoken));
  execFileSync('sox', ['-V1', '-D', spoken, '-b', '16', resampled, 'gain', '-3', 'rate', '-v', `${rate}`]);
  const level = utterance.cue === 'whispered' ? whisperDecibels : speechDecibels;
  const speech = levelled(decodeWav(readFileSync(resampled)).samples, level);
  if (!utterance.lost) return speech;
  const noise = levelled(hiss(Math.round(lostWordSeconds * rate), 1, 0.2), speechDecibels + 3);
  return Float64Array.from([...speech, ...noise]);
};

/** The speech with the sound behind it, at the ratio of RMS over the whole clip. */
const mix = (speech: Float64Array, { sound, text }: Utterance): Float64Array => {
  if (sound === null) return speech;
  const seed = Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 8), 16);
  const noise = soundOf(sound, speech.length, rate, seed);
  const gain = rms(speech) / rms(noise) / fromDecibels(signalToNoiseDecibels);
  return speech.map((sample, index) => sample + gain * noise[index]!);
};

export interface BuiltClips {
  facts: ClipFacts[];
  /** By path in the data set, `clips/<name>.wav`. */
  clips: Map<string, Buffer>;
  /** By name in `stems/`. */
  stems: Map<string, Buffer>;
}

/** Synthesizes every clip of the plan. Needs flite, espeak-ng and sox. */
export const buildClips = (): BuiltClips => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'small-voxmem-'));
  const built: BuiltClips = { facts: [], clips: new Map(), stems: new Map() };
  try {
    for (const utterance of utterances()) {
      const name = clipName(utterance);
      const speech = speak(utterance, scratch);
      const wav = encodeWav({ rate, samples: mix(speech, utterance) });
      const fact: ClipFacts = {
        ...utterance,
        path: `clips/${name}.wav`,
        sha256: createHash('sha256').update(wav).digest('hex'),
        seconds: speech.length / rate,
        clean: utterance.sound === null ? null : `${name}-clean.wav`,
        neutral: utterance.cue === null ? null : `${name}-neutral.wav`,
      };
      built.clips.set(fact.path, wav);
      if (fact.clean !== null) built.stems.set(fact.clean, encodeWav({ rate, samples: speech }));
      if (fact.neutral !== null) {
        const plainly = mix(speak({ ...utterance, cue: null }, scratch), utterance);
        built.stems.set(fact.neutral, encodeWav({ rate, samples: plainly }));
      }
      built.facts.push(fact);
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
  return built;
};

/** What is known of the clips, as it stands in `clips.jsonl`. */
export const clipsText = (facts: readonly ClipFacts[]): string =>
  facts.map((fact) => `${JSON.stringify(fact)}\n`).join('');

export const readClipFacts = (): ClipFacts[] =>
  readFileSync(new URL('../clips.jsonl', import.meta.url), 'utf8')
    .split('\n')
    .flatMap((line) => (line === '' ? [] : JSON.parse(line)));

/** Writes `clips.jsonl` and `stems/` below a folder. */
export const writeClips = ({ facts, stems }: BuiltClips, folder: string): void => {
  mkdirSync(path.join(folder, 'stems'), { recursive: true });
  writeFileSync(path.join(folder, 'clips.jsonl'), clipsText(facts));
  for (const [name, wav] of stems) writeFileSync(path.join(folder, 'stems', name), wav);
};
