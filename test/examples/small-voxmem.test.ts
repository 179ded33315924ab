import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSweepFile } from '../../cli/read-sweep.ts';
import { readClipFacts } from '../../examples/small-voxmem/build/build-clips.ts';
import {
  clipsOf,
  type ItemColumns,
  parquetFile,
  parquetOf,
  readParquet,
  rows,
  writeJsonl,
} from '../../examples/small-voxmem/build/build-data.ts';
import { scenarioFiles, scriptedReplies } from '../../examples/small-voxmem/build/build-scenario.ts';
import { questions } from '../../examples/small-voxmem/build/plan.ts';
import { soundOf } from '../../examples/small-voxmem/build/sounds.ts';
import { decodeWav, encodeWav, rms, toDecibels } from '../../examples/small-voxmem/build/wav.ts';
import { requestFingerprint } from '../../mock/fingerprint.ts';
import { verdictReply } from '../../mock/judge.ts';
import { loadScenario, loadTable } from '../../mock/scenario.ts';
import type { ItemRow } from '../../shared/benchmarks/voxmem/format.ts';
import { buildRequest, parseVerdict, toVerdictItem } from '../../shared/benchmarks/voxmem/judge.ts';
import { frozenRequest } from '../../shared/benchmarks/voxmem/messages.ts';
import { readRelease } from '../../shared/benchmarks/voxmem/read.ts';
import { unpackedRelease } from '../support/unpacked-voxmem.ts';

const example = path.join(import.meta.dirname, '../../examples/small-voxmem');
const text = (...parts: string[]): string => readFileSync(path.join(example, ...parts), 'utf8');
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const expected = JSON.parse(text('expected.json'));
const lengths = ['8K', '16K', '32K', '64K'] as const;

/** Rows of the data set, with the digest of each clip in place of its bytes. */
let found: ItemColumns[];
let clips: Map<string, Uint8Array>;
let folder: string;

type Heard = { path: string; bytes: string };
const light = (row: ItemColumns): ItemColumns => {
  const digest = (audio: { path: string; bytes?: Uint8Array }): Heard => ({
    path: audio.path,
    bytes: sha256(audio.bytes!),
  });
  return {
    ...row,
    question_audio: digest(row.question_audio) as never,
    sessions: row.sessions.map((session) => ({
      ...session,
      turns: session.turns.map((turn) => ({ ...turn, audio: turn.audio && (digest(turn.audio) as never) })),
    })),
  };
};

beforeAll(async () => {
  const whole = await readParquet();
  found = whole.map(light);
  clips = clipsOf(whole);
  folder = mkdtempSync(path.join(tmpdir(), 'small-voxmem-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const pcm = (bytes: Uint8Array): Float64Array => decodeWav(Buffer.from(bytes)).samples;
const stem = (name: string): Float64Array => pcm(readFileSync(path.join(example, 'stems', name)));
const decibels = (samples: Float64Array): number => toDecibels(rms(samples));

/**
 * Median pitch in Hz: of stretches of 40 ms, the lag of the highest autocorrelation from 60 to 400 Hz, where
 * the stretch is voiced (at least half as loud as the whole, with a correlation of 0.5).
 */
const medianPitch = (samples: Float64Array, rate = 8_000): number => {
  const size = 320;
  const loudness = rms(samples);
  const pitches: number[] = [];
  for (let at = 0; at + 2 * size < samples.length; at += size * 1.5) {
    const frame = samples.subarray(at, at + size);
    if (rms(frame) < loudness / 2) continue;
    const values: number[] = [];
    for (let lag = rate / 400; lag < rate / 60; lag += 1) {
      let product = 0;
      let power = 0;
      for (let index = 0; index < size; index += 1) {
        const later = samples[at + lag + index]!;
        product += frame[index]! * later;
        power += later * later;
      }
      values.push(product / (Math.sqrt(size * power) * rms(frame) || 1));
    }
    const highest = Math.max(...values);
    // The shortest lag that is nearly as good: its multiples fit as well.
    const lag = rate / 400 + values.findIndex((value) => value > 0.9 * highest);
    if (highest > 0.5) pitches.push(rate / lag);
  }
  return pitches.toSorted((one, other) => one - other)[Math.floor(pitches.length / 2)] ?? 0;
};

/** Share of samples after which the sign changes: high for breath, low for voices. */
const zeroCrossings = (samples: Float64Array): number =>
  samples.reduce((sum, sample, index) => sum + (sample * (samples[index - 1] ?? 0) < 0 ? 1 : 0), 0) /
  samples.length;

describe('files of the example', () => {
  it('are what the build writes from the plan, as far as that needs no synthesizer', () => {
    for (const [name, content] of Object.entries(scenarioFiles())) expect(text(name), name).toBe(content);
    expect(found).toEqual(rows((clip) => ({ bytes: clips.get(clip)!, path: clip })).map(light));
    expect(parquetOf(clips).equals(readFileSync(parquetFile))).toBe(true);
  });

  it('are under 4 MB in all', () => {
    const sizes = readdirSync(example, { recursive: true, withFileTypes: true }).map((entry) =>
      entry.isFile() ? statSync(path.join(entry.parentPath, entry.name)).size : 0,
    );

    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(4_000_000);
  });

  it('have one set of rows as Parquet and as JSON lines', async () => {
    const jsonl = path.join(folder, 'jsonl');
    writeJsonl(clips, jsonl);
    const unpacked = await Promise.all(
      [path.join(example, 'data'), jsonl].map((source) =>
        unpackedRelease({ source, cacheDirectory: path.join(folder, 'cache') }),
      ),
    );

    for (const name of ['items', 'sessions', 'answers', 'transcripts']) {
      const [ofParquet, ofJsonl] = unpacked.map((at) => readFileSync(path.join(at, `data/${name}.jsonl`)));
      expect(ofParquet!.equals(ofJsonl!), name).toBe(true);
    }
    expect(readdirSync(path.join(unpacked[0]!, 'media')).toSorted()).toEqual(
      readClipFacts()
        .map((clip) => `${clip.sha256}.wav`)
        .toSorted(),
    );
  });
});

describe('rows of the example', () => {
  it('fill the 15 cells at all four lengths', () => {
    const cells = new Map<string, number>();
    for (const row of found) {
      const cell = `${row.context_length} ${row.evidence_type} ${row.memory_operation}`;
      cells.set(cell, (cells.get(cell) ?? 0) + 1);
    }
    const operations = ['information_extraction', 'multi_session_reasoning', 'temporal_evolution_tracking'];
    const types = ['speech_semantics', 'speaker_information', 'paralinguistic_information'];
    const wanted = lengths.flatMap((length) =>
      [...types, 'environmental_sound'].flatMap((type) =>
        [...operations, 'answer_refusal'].map((operation) => `${length} ${type} ${operation}`),
      ),
    );

    expect(found.length).toBe(60);
    expect(Object.fromEntries(cells)).toEqual(
      Object.fromEntries(
        wanted
          .filter((cell) => !cell.endsWith('speech_semantics information_extraction'))
          .map((cell) => [cell, 1]),
      ),
    );
    expect(found.filter((row) => row.expected_response === 'answer').length).toBe(44);
    expect(new Set(found.map((row) => row.answer_type))).toEqual(
      new Set(['yes_no', 'categorical', 'number', 'ordered_list', 'free_text']),
    );
  });

  it('nest their histories of 3, 4, 5 and 7 sessions in order of time, and ask the same at each length', () => {
    for (const { id } of questions) {
      const ofQuestion = lengths.map(
        (length) => found.find((row) => row.item_id === `${id}_${length.toLowerCase()}`)!,
      );
      const sessions = ofQuestion.map((row) => row.sessions.map((session) => JSON.stringify(session)));

      expect(ofQuestion.map((row) => row.sessions.length)).toEqual([3, 4, 5, 7]);
      for (const [index, row] of ofQuestion.entries()) {
        const stamps = row.sessions.map(({ timestamp }) => timestamp);
        const { context_length, item_id, sessions: _, session_count, ...same } = row;
        const { samekey_haystack_session_count, ...asked } = same;
        const first = ofQuestion[0]!;

        expect(context_length).toBe(lengths[index]);
        expect(session_count).toBe(BigInt(row.sessions.length));
        expect(stamps).toEqual(stamps.toSorted());
        expect(new Set(stamps).size).toBe(stamps.length);
        expect(stamps.at(-1)! < row.query_timestamp).toBe(true);
        expect(first).toMatchObject(asked);
        expect(samekey_haystack_session_count).toBeGreaterThanOrEqual(first.samekey_haystack_session_count);
        if (index > 0) {
          // A subset in the same order.
          expect(sessions[index]!.filter((session) => sessions[index - 1]!.includes(session))).toEqual(
            sessions[index - 1],
          );
        }
      }
    }
  });

  it('have speech and transcript in each user turn, text alone in each of the assistant', () => {
    for (const { item_id, sessions } of found) {
      for (const { turns } of sessions) {
        expect(turns.map(({ role }) => role)).toEqual(
          turns.map((_, index) => (index % 2 === 0 ? 'user' : 'assistant')),
        );
        expect(turns.length % 2, item_id).toBe(0);
        for (const turn of turns) {
          expect(turn.text.length, item_id).toBeGreaterThan(2);
          expect(turn.audio === null, item_id).toBe(turn.role === 'assistant');
        }
      }
    }
    // Some sessions go on: only their first turn gets a timestamp.
    expect(found.some(({ sessions }) => sessions.some(({ turns }) => turns.length === 4))).toBe(true);
  });

  it('turn a question of the family into one to be refused by a change of its evidence alone', () => {
    const refused = questions.filter(({ refusalRule }) => refusalRule !== null);
    const of = (id: string) => found.find((row) => row.item_id === `${id}_8k`)!;

    expect(refused.map(({ refusalRule }) => refusalRule)).toEqual([
      'obscure',
      'unbind',
      'neutralize',
      'remove',
    ]);
    for (const question of refused) {
      const sibling = questions.find(
        ({ family, refusalRule }) => family === question.family && refusalRule === null,
      )!;
      const [changed, original] = [of(question.id), of(sibling.id)];
      const kept = original.sessions.filter((session) =>
        changed.sessions.some(
          ({ timestamp, turns }) =>
            JSON.stringify([timestamp, turns]) === JSON.stringify([session.timestamp, session.turns]),
        ),
      );

      expect(changed.question_audio).toEqual(original.question_audio);
      expect(changed.query_timestamp).toBe(original.query_timestamp);
      expect([changed.gold_json, original.gold_json === null]).toEqual([null, false]);
      expect(kept.length, question.id).toBe(2);
    }
  });
});

describe('clips of the example', () => {
  it('are those of clips.jsonl, each once: 16-bit mono at 8 kHz, 0.9 to 6 s, none clipped', () => {
    const facts = readClipFacts();

    expect(facts.map((clip) => clip.path).toSorted()).toEqual([...clips.keys()].toSorted());
    expect(new Set(facts.map((clip) => clip.sha256)).size).toBe(71);
    for (const fact of facts) {
      const wav = Buffer.from(clips.get(fact.path)!);
      const samples = pcm(wav);

      expect(sha256(wav), fact.text).toBe(fact.sha256);
      expect([wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34)], fact.text).toEqual([
        1, 8_000, 16,
      ]);
      expect(samples.length / 8_000, fact.text).toBeCloseTo(fact.seconds, 9);
      expect(fact.seconds, fact.text).toBeGreaterThan(0.9);
      expect(fact.seconds, fact.text).toBeLessThan(6);
      expect(Math.max(...samples.map(Math.abs)), fact.text).toBeLessThan(0.95);
    }
  });

  it('are named by nothing that tells what is said or how', () => {
    for (const clip of clips.keys()) expect(clip).toMatch(/^clips\/[0-9a-f]{10}\.wav$/);
  });

  it('have the sound 10 dB below the speech', () => {
    const mixed = readClipFacts().filter((clip) => clip.sound !== null);

    expect(new Set(mixed.map(({ sound }) => sound))).toEqual(new Set(['rain', 'siren', 'bell', 'dripping']));
    for (const { path: clip, clean, text: said } of mixed) {
      const speech = stem(clean!);
      const mixture = pcm(clips.get(clip)!);
      const behind = mixture.map((sample, index) => sample - speech[index]!);

      expect(mixture.length, said).toBe(speech.length);
      expect(Math.abs(decibels(speech) - decibels(behind) - 10), said).toBeLessThan(0.05);
    }
  });

  it('have a neutral twin of each cue, of the same words in the same voice', () => {
    const cued = readClipFacts().filter((clip) => clip.cue !== null);
    const pairs = cued.map((clip) => ({
      ...clip,
      said: pcm(clips.get(clip.path)!),
      twin: stem(clip.neutral!),
    }));
    const of = (cue: string) => pairs.filter((pair) => pair.cue === cue);

    expect([of('whispered').length, of('hurried').length, of('high').length]).toEqual([2, 2, 1]);
    for (const { said, twin } of of('hurried')) expect(said.length / twin.length).toBeLessThan(0.7);
    for (const { said, twin } of of('whispered')) {
      expect(zeroCrossings(said) / zeroCrossings(twin)).toBeGreaterThan(1.4);
      expect(decibels(twin) - decibels(said)).toBeCloseTo(6, 1);
    }
    for (const { said, twin } of of('high')) {
      expect(medianPitch(said) / medianPitch(twin)).toBeGreaterThan(1.25);
    }
    // The question that is to be refused uses the twin of the one that is to be answered.
    const neutral = readClipFacts().find((clip) => clip.text.includes('gift is in') && clip.cue === null)!;
    const whispered = of('whispered').find((clip) => clip.text === neutral.text)!;
    expect(whispered.who).toBe(neutral.who);
    expect(pcm(clips.get(neutral.path)!)).toEqual(whispered.twin);
  });

  it('let men and women be told apart by their pitch', () => {
    const plain = readClipFacts().filter(({ cue, sound, lost }) => cue === null && sound === null && !lost);
    const pitchOf = (who: string) => {
      const pitches = plain
        .filter((clip) => clip.who === who)
        .slice(0, 5)
        .map((clip) => medianPitch(pcm(clips.get(clip.path)!)));
      return pitches.toSorted((a, b) => a - b)[Math.floor(pitches.length / 2)]!;
    };

    for (const man of ['ben', 'graham', 'otto']) {
      for (const woman of ['nora', 'ida'])
        expect(pitchOf(woman) / pitchOf(man), `${woman} ${man}`).toBeGreaterThan(1.2);
    }
  });
});

describe('the way of making clips', () => {
  it('computes sounds that are the same for a seed and differ by seed and kind', () => {
    const kinds = ['rain', 'siren', 'bell', 'dripping'] as const;
    const made = kinds.map((kind) => soundOf(kind, 8_000, 8_000, 5));

    for (const [index, kind] of kinds.entries()) {
      expect(soundOf(kind, 8_000, 8_000, 5)).toEqual(made[index]);
      expect(rms(made[index]!), kind).toBeGreaterThan(0.01);
    }
    expect(soundOf('rain', 8_000, 8_000, 6)).not.toEqual(made[0]);
    expect(new Set(made.map((samples) => sha256(new Uint8Array(samples.buffer)))).size).toBe(4);
  });

  it('writes and reads WAV', () => {
    // 0.5 is 16384, -1 is -32768: by the definition of 16-bit PCM.
    const wav = encodeWav({ rate: 8_000, samples: Float64Array.of(0, 0.5, -1) });

    expect(wav.subarray(44).toString('hex')).toBe('000000400080');
    expect(wav.length).toBe(50);
    expect(decodeWav(wav)).toEqual({ rate: 8_000, samples: Float64Array.of(0, 0.5, -1) });
    expect(() => encodeWav({ rate: 8_000, samples: Float64Array.of(1) })).toThrow('does not fit');
    expect(() => decodeWav(Buffer.alloc(50))).toThrow('not a WAV');
  });
});

describe('simulated models', () => {
  const readUnpacked = async () => {
    const at = await unpackedRelease({
      source: path.join(example, 'data'),
      cacheDirectory: path.join(folder, 'cache'),
    });
    const file = (name: string) => ({
      file: name,
      lines: readFileSync(path.join(at, 'data', name), 'utf8').split('\n'),
    });
    return readRelease({
      items: file('items.jsonl'),
      sessions: file('sessions.jsonl'),
      answers: file('answers.jsonl'),
      transcripts: file('transcripts.jsonl'),
      media: { file: 'media.json', text: readFileSync(path.join(at, 'data/media.json'), 'utf8') },
    });
  };

  it('have a reply to every request that the program makes, and to no other', async () => {
    const release = await readUnpacked();
    const { byFingerprint } = loadTable(path.join(example, 'replies.jsonl'));
    const fingerprints = [...release.items.values()].map(({ item_id }: ItemRow) =>
      requestFingerprint(
        frozenRequest(release, item_id, 'a system prompt').messages.map((message) => {
          if (!('content' in message))
            return message.role === 'system' ? { role: 'system', text: message.text } : { role: 'assistant' };
          return {
            role: 'user',
            content: message.content.map((part) =>
              part.type === 'text' ? part : { type: part.type, sha256: path.basename(part.path, '.wav') },
            ),
          };
        }),
      ),
    );

    expect(release.problems).toEqual([]);
    expect(new Set(fingerprints).size).toBe(60);
    expect([...byFingerprint.keys()].toSorted()).toEqual(
      ['persona-listener', 'persona-wordbound']
        .flatMap((persona) => fingerprints.map((fingerprint) => `${persona}\n${fingerprint}`))
        .toSorted(),
    );
  });

  it('come to what is expected of each item, by the simulated judge where there is a reply', async () => {
    const { answers } = await readUnpacked();
    const names = { right: 'correct', wrong: 'incorrect' } as Record<string, string>;
    const prompts = { 'rubric-answerable': 'a rubric', 'rubric-refusal': 'another rubric' };

    for (const { model, itemId, text: response, meant } of scriptedReplies()) {
      const [, question, length] = /^(q_\d+)_(\d+k)$/.exec(itemId)!;
      const status = expected.items[model][question!][lengths.indexOf(length!.toUpperCase() as '8K')];
      expect(names[meant] ?? meant, `${model} ${itemId}`).toBe(status);
      if (names[meant] === undefined) continue;
      const { user } = buildRequest(toVerdictItem(answers!.get(itemId)!, response), prompts);
      expect(parseVerdict(verdictReply(user, null)), `${model} ${itemId}: ${response}`).toBe(status);
    }
  });

  it('are counted by hand as they are item by item', () => {
    const isRefused = (id: string) => ['q_00003', 'q_00007', 'q_00011', 'q_00015'].includes(id);
    const countOf = (of: Record<string, string[]>, index: number, chosen: (id: string) => boolean) => {
      const statuses = Object.keys(of)
        .filter(chosen)
        .map((id) => of[id]![index]!)
        .filter((status) => status !== 'rejected');
      return [statuses.filter((status) => status === 'correct').length, statuses.length];
    };
    const counted = (of: Record<string, string[]>) =>
      Object.fromEntries(
        lengths.map((length, index) => [
          length,
          {
            answerable: countOf(of, index, (id) => !isRefused(id)),
            refusal: countOf(of, index, isRefused),
            overall: countOf(of, index, () => true),
          },
        ]),
      );
    const { 'persona-listener': listener, 'persona-wordbound': wordbound } = expected.items;
    const { q_00009: _, ...atEveryLength } = listener;

    expect(counted(listener)).toEqual(expected.correctOf['persona-listener']);
    expect(counted(wordbound)).toEqual(expected.correctOf['persona-wordbound']);
    expect(counted(atEveryLength)).toEqual(
      expected.correctOfQuestionsThatCountAtEveryLength['persona-listener'],
    );
  });

  it('are the lanes of the sweep file, with a baseline and a judge beside them', async () => {
    vi.stubEnv('MOCK_BASE_URL', 'http://127.0.0.1:1/v1');
    const sweep = await readSweepFile(path.join(example, 'sweep.yaml')).finally(() => vi.unstubAllEnvs());
    const scenario = loadScenario(path.join(example, 'scenario.json'));

    expect(sweep.models.map(({ id, provider }) => [id, provider])).toEqual([
      ['persona-listener', 'openai-compatible'],
      ['persona-wordbound', 'openai-compatible'],
      ['always-abstains', 'fixed-reply'],
    ]);
    expect(Object.keys(scenario.models)).toEqual([
      'persona-listener',
      'persona-wordbound',
      sweep.judge?.model,
    ]);
  });
});
