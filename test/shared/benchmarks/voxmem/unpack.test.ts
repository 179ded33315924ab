import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFolder } from '../../../../shared/adapters/local/file-byte-source.ts';
import type { UnpackProgress, UnpackSink } from '../../../../shared/benchmarks/benchmark.ts';
import {
  type AnswerRow,
  answerRow,
  itemRow,
  mediaManifest,
  type SessionRow,
  sessionRow,
  transcriptRow,
} from '../../../../shared/benchmarks/voxmem/format.ts';
import { openJsonlRows } from '../../../../shared/benchmarks/voxmem/unpack/jsonl-rows.ts';
import { openParquetRows } from '../../../../shared/benchmarks/voxmem/unpack/parquet-rows.ts';
import { type UnpackSelection, unpack } from '../../../../shared/benchmarks/voxmem/unpack/unpack.ts';
import { wavFacts } from '../../../../shared/benchmarks/voxmem/unpack/wav.ts';
import type { Problem } from '../../../../shared/errors.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import {
  audioOf,
  type DataSetRow,
  fixtureRows,
  refusalOf,
  rowOf,
  sessionOf,
  wavOf,
  writeJsonl,
  writeParquet,
} from '../../../support/voxmem-data-set.ts';

const fixtures = path.join(import.meta.dirname, '..', '..', '..', 'fixtures', 'voxmem-parquet');

interface MemorySink extends UnpackSink {
  texts: Map<string, string>;
  clips: Map<string, Buffer>;
}

const memorySink = (): MemorySink => {
  const texts = new Map<string, string>();
  const clips = new Map<string, Buffer>();
  return {
    texts,
    clips,
    async appendLine(file, line) {
      texts.set(file, `${texts.get(file) ?? ''}${line}\n`);
    },
    async putClipIfAbsent(file, bytes) {
      if (clips.has(file)) throw new Error(`${file} was written before`);
      clips.set(file, Buffer.from(bytes));
    },
  };
};

type Form = 'parquet' | 'jsonl';
const forms: Form[] = ['parquet', 'jsonl'];

/** Unpacks rows in one of the two forms; `change` may alter the files first. */
const unpacked = async (
  rows: readonly DataSetRow[],
  options: {
    form?: Form;
    selection?: UnpackSelection;
    maxProblems?: number;
    leaveOut?: string;
    change?: (folder: string) => void;
  } = {},
) => {
  const folder = temporaryDirectory();
  const { form = 'jsonl' } = options;
  const name = form === 'jsonl' ? 'items.jsonl' : 'items.parquet';
  if (form === 'jsonl') writeJsonl(folder, rows, name);
  else writeParquet(path.join(folder, name), rows, { leaveOut: options.leaveOut });
  options.change?.(folder);
  const files = await openFolder(folder, { shown: (file) => path.basename(file) });
  const bytes = await files.open(name);
  const sink = memorySink();
  const progress: UnpackProgress[] = [];
  try {
    const source = form === 'jsonl' ? openJsonlRows(bytes, files) : await openParquetRows(bytes);
    const counts = await unpack({
      sources: [source],
      selection: options.selection,
      maxProblems: options.maxProblems,
      sink,
      onProgress: (step) => progress.push(step),
    });
    return { sink, counts, progress };
  } finally {
    await bytes.close();
  }
};

const problemsOf = async (...args: Parameters<typeof unpacked>): Promise<Problem[]> => {
  const error = await unpacked(...args).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'BenchmarkInvalid', message: 'the data set has problems' });
  return (error as { problems: Problem[] }).problems;
};

const messagesOf = async (...args: Parameters<typeof unpacked>): Promise<string[]> =>
  (await problemsOf(...args)).map(({ message }) => message);

const jsonLines = <Row>(sink: MemorySink, file: string): Row[] =>
  sink.texts
    .get(file)!
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Row);

const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');

describe('an unpacked data set', () => {
  it('holds of an item what models are asked, and nothing else', async () => {
    const { sink } = await unpacked([rowOf(1)]);

    const [item] = jsonLines<Record<string, unknown>>(sink, 'data/items.jsonl');
    const sessions = jsonLines<SessionRow>(sink, 'data/sessions.jsonl');
    const clip = (seed: number) => `media/${sha256(wavOf(seed))}.wav`;
    expect(item).toEqual({
      item_id: 'q_00001_8k',
      question_id: 'q_00001',
      context_length: '8k',
      session_keys: sessions.map(({ session_key }) => session_key),
      query_timestamp: '2025-04-01 10:00',
      question_audio: clip(5001),
    });
    // Question 1 has the sessions 20 and 21; the second one ends with a user turn.
    expect(sessions.map(({ timestamp, turns }) => ({ timestamp, turns }))).toEqual([
      {
        timestamp: '2025-03-21 09:20',
        turns: [
          { role: 'user', audio: clip(20) },
          { role: 'assistant', text: 'reply 20' },
          { role: 'user', audio: clip(1020) },
          { role: 'assistant', text: 'more 20' },
        ],
      },
      {
        timestamp: '2025-03-22 09:21',
        turns: [
          { role: 'user', audio: clip(21) },
          { role: 'assistant', text: 'reply 21' },
          { role: 'user', audio: clip(1021) },
        ],
      },
    ]);
  });

  it('keys a session by its timestamp and turns', async () => {
    const { sink } = await unpacked([rowOf(1)]);

    const [{ session_key, timestamp, turns }] = jsonLines<SessionRow>(sink, 'data/sessions.jsonl') as [
      SessionRow,
    ];
    // Sorted keys, no spaces.
    const text = turns.map((turn) =>
      'audio' in turn
        ? `{"audio":${JSON.stringify(turn.audio)},"role":"user"}`
        : `{"role":"assistant","text":${JSON.stringify(turn.text)}}`,
    );
    expect(session_key).toBe(sha256(`{"timestamp":"${timestamp}","turns":[${text.join(',')}]}`));
  });

  it('keeps gold, questions and what users said apart from what models are shown', async () => {
    const { sink } = await unpacked(fixtureRows());

    const shown = ['data/items.jsonl', 'data/sessions.jsonl', 'data/media.json'].map(
      (file) => sink.texts.get(file)!,
    );
    const secrets = [
      'Who said',
      'speaker ',
      'said 20',
      'also said',
      'answer_refusal',
      'information_extraction',
      'insufficient',
      'environmental_sound',
      'family-',
      'rain',
    ];
    for (const secret of secrets) expect(shown.join('\n')).not.toContain(secret);
    expect(sink.texts.get('data/transcripts.jsonl')).toContain('also said 20');
    expect(sink.texts.get('data/answers.jsonl')).not.toContain('said 20');
  });

  it('holds answers with gold parsed, lengths in lower case and what is missing as nothing', async () => {
    const { sink } = await unpacked([
      rowOf(1, '8k', { context_length: '8k', gold_json: '{"answer":["rain",2],"options":["rain","hail"]}' }),
      refusalOf(2, '16k', {
        gold_json: '"no"',
        family_id: null,
        subtype: null,
        samekey_haystack_session_count: null,
      }),
      rowOf(3, '8k', { gold_json: '"b"', answer_normalization: '{"options":["a","b"],"case":"ignored"}' }),
    ]);

    const answers = jsonLines<AnswerRow>(sink, 'data/answers.jsonl');

    expect(answers.map(({ item_id }) => item_id)).toEqual(['q_00001_8k', 'q_00003_8k', 'q_00002_16k']);
    expect(answers[0]).toEqual({
      item_id: 'q_00001_8k',
      question_id: 'q_00001',
      context_length: '8k',
      family_id: 'family-1',
      evidence_type: 'speaker_information',
      memory_operation: 'information_extraction',
      subtype: 'who',
      question_text: 'Who said 1?',
      expected_response: 'answer',
      gold: { answer: ['rain', 2], options: ['rain', 'hail'] },
      answer_type: 'categorical',
      answer_normalization: 'lowercase',
      options: ['rain', 'hail'],
      session_count: 2,
      evidence_session_count: 1,
      samekey_haystack_session_count: 1,
    });
    expect(answers[1]).toMatchObject({ gold: 'b', options: ['a', 'b'] });
    expect(answers[2]).toMatchObject({
      context_length: '16k',
      gold: null,
      options: [],
      family_id: '',
      subtype: '',
      samekey_haystack_session_count: 0,
    });
  });

  it('holds transcripts of sessions, missing texts of users as empty', async () => {
    const { sink } = await unpacked([rowOf(1)]);

    const [, second] = jsonLines<Record<string, unknown>>(sink, 'data/transcripts.jsonl');

    expect(second).toMatchObject({
      timestamp: '2025-03-22 09:21',
      turns: [
        { role: 'user', text: 'said 21' },
        { role: 'assistant', text: 'reply 21' },
        { role: 'user', text: '' },
      ],
    });
  });

  it('holds each distinct clip once, with its true length', async () => {
    const long = audioOf(77, 12_000);
    const shared = sessionOf(5);
    const { sink, counts } = await unpacked([
      rowOf(1, '8k', { question_audio: long, sessions: [shared, shared], session_count: 2 }),
      rowOf(2, '8k', { question_audio: long, sessions: [shared, sessionOf(6)] }),
    ]);

    const manifest = mediaManifest.parse(JSON.parse(sink.texts.get('data/media.json')!));
    const longPath = `media/${sha256(long.bytes!)}.wav`;
    expect(counts).toEqual({ items: 2, sessions: 2, clips: 5, clipBytes: 12_044 + 4 * 84 });
    expect(Object.keys(manifest)).toEqual([...sink.clips.keys()].sort());
    // 12,000 samples at 8,000 a second.
    expect(manifest[longPath]).toEqual({ sha256: sha256(long.bytes!), bytes: 12_044, seconds: 1.5 });
    for (const [file, clip] of sink.clips) expect(file).toBe(`media/${sha256(clip)}.wav`);
  });

  it('is of the form that readers expect', async () => {
    const { sink } = await unpacked(fixtureRows());

    const parsed = (
      [
        ['data/items.jsonl', itemRow],
        ['data/sessions.jsonl', sessionRow],
        ['data/answers.jsonl', answerRow],
        ['data/transcripts.jsonl', transcriptRow],
      ] as const
    ).map(([file, schema]) => jsonLines(sink, file).map((row) => schema.parse(row)).length);

    // Questions 1 and 2 have four sessions at 16k, the two of 8k among them; questions 3 and 4 have two.
    expect(parsed).toEqual([6, 12, 6, 12]);
  });

  it('is the same from JSON lines and from whatever Parquet', async () => {
    const { sink } = await unpacked(fixtureRows());
    const names = readdirSync(fixtures).filter((name) => name.endsWith('.parquet'));
    const folder = await openFolder(fixtures);

    for (const name of names) {
      const bytes = await folder.open(name);
      const fromParquet = memorySink();
      await unpack({ sources: [await openParquetRows(bytes)], sink: fromParquet });
      await bytes.close();

      expect(fromParquet.texts, name).toEqual(sink.texts);
      expect(fromParquet.clips, name).toEqual(sink.clips);
    }
    expect(names.length).toBeGreaterThan(10);
  });

  it('tells how far it is', async () => {
    const { progress } = await unpacked([rowOf(1), rowOf(2)]);

    // An item has a question and two clips in each of two sessions, of 84 bytes each.
    expect(progress).toEqual([
      { file: 'items.jsonl', itemsDone: 1, items: 2, clips: 5, clipBytes: 5 * 84 },
      { file: 'items.jsonl', itemsDone: 2, items: 2, clips: 10, clipBytes: 10 * 84 },
    ]);
  });
});

describe('a selection', () => {
  const rows = fixtureRows();
  it.each<[string, UnpackSelection, string[]]>([
    ['all', {}, ['1_8k', '2_8k', '3_8k', '4_8k', '1_16k', '2_16k']],
    ['a length', { lengths: ['16k'] }, ['1_16k', '2_16k']],
    ['types of evidence', { evidenceTypes: ['environmental_sound', 'speech_semantics'] }, ['3_8k', '4_8k']],
    ['an item and a question', { ids: ['q_00003_8k', 'q_00002'] }, ['2_8k', '3_8k', '2_16k']],
    ['the first few', { limit: 3 }, ['1_8k', '2_8k', '3_8k']],
    ['the first of a length', { lengths: ['16k', '32k'], limit: 1 }, ['1_16k']],
  ])('may be %s', async (_, selection, ids) => {
    for (const form of forms) {
      const { sink } = await unpacked(rows, { selection, form });

      const items = jsonLines<{ item_id: string }>(sink, 'data/items.jsonl');
      expect(items.map(({ item_id }) => item_id)).toEqual(ids.map((id) => `q_0000${id}`));
    }
  });

  it('reads no audio of what is left out', async () => {
    const withBadAudio = [
      ...rows,
      rowOf(9, '64k', { question_audio: { bytes: Buffer.from('no clip'), path: 'bad.wav' } }),
    ];

    for (const form of forms) {
      const { counts } = await unpacked(withBadAudio, { selection: { lengths: ['8k'] }, form });

      expect(counts.items).toBe(4);
    }
  });

  it.each<[UnpackSelection, string]>([
    [{ ids: ['q_00001', 'q_7'] }, 'no item or question has the id "q_7"'],
    [{ lengths: ['64k'] }, 'the selection holds no item'],
  ])('that names nothing there is refused: %j', async (selection, message) => {
    await expect(unpacked(rows, { selection })).rejects.toThrow(message);
  });
});

describe('faults of rows', () => {
  const at8k = 'item "q_00001_8k": ';

  it.each<[Partial<DataSetRow>, string]>([
    [{ question_text: '' }, 'question_text "": Too small: expected string to have >=1 characters'],
    [{ evidence_type: 'smell' }, 'evidence_type "smell": not one of speech_semantics, speaker_information'],
    [{ memory_operation: 'IE' }, 'memory_operation "IE": not one of information_extraction'],
    [{ context_length: '128K' }, 'context_length "128K": not one of 8k, 16k, 32k, 64k'],
    [{ expected_response: 'refuse' }, 'expected_response "refuse": not one of answer, insufficient_evidence'],
    [
      { expected_response: 'insufficient_evidence' },
      'expected_response "insufficient_evidence" does not belong to memory_operation "information_extraction"',
    ],
    [
      { evidence_type: 'speech_semantics' },
      'memory_operation: information_extraction has no items of speech_semantics',
    ],
    [{ gold_json: "{'answer': 1}" }, 'gold_json is not valid JSON: '],
    [{ gold_json: null }, 'gold_json is missing'],
    [{ gold_json: '{"options":[1]}' }, 'gold_json.options is no list of texts'],
    [{ evidence_session_count: 3 }, 'evidence_session_count 3 is larger than session_count 2'],
    [{ session_count: 3 }, 'session_count is 3, there are 2 sessions'],
    [{ question_audio: null }, 'question_audio is missing'],
    [{ question_audio: { bytes: Buffer.from('RIFF'), path: 'x.wav' } }, 'question_audio: '],
    [
      { sessions: [], session_count: 0, evidence_session_count: 0, samekey_haystack_session_count: 0 },
      'sessions is empty',
    ],
  ])('are told with item and field: %j', async (changes, message) => {
    for (const form of forms) {
      const problems = await problemsOf([rowOf(5), rowOf(1, '8k', changes)], { form });

      expect(problems, form).toHaveLength(1);
      expect(problems[0]).toMatchObject({ file: `items.${form}`, line: 2 });
      expect(problems[0]!.message.startsWith(at8k + message), problems[0]!.message).toBe(true);
    }
  });

  const user = { role: 'user', text: 'u', audio: audioOf(1) };
  const assistant = { role: 'assistant', text: 'a', audio: null };
  it.each<[string, DataSetRow['sessions'][number], string]>([
    ['no timestamp', { timestamp: '', turns: [user] }, 'sessions[1].timestamp "" is no text'],
    ['no turns', { timestamp: 't', turns: [] }, 'sessions[1].turns has no turns'],
    [
      'the assistant first',
      { timestamp: 't', turns: [assistant] },
      'sessions[1].turns[0].role "assistant": user and assistant take turns, the user first',
    ],
    [
      'the user twice',
      { timestamp: 't', turns: [user, user] },
      'sessions[1].turns[1].role "user": user and assistant take turns, the user first',
    ],
    [
      'another role',
      { timestamp: 't', turns: [user, { ...assistant, role: 'system' }] },
      'sessions[1].turns[1].role "system": not one of user, assistant',
    ],
    [
      'a user without audio',
      { timestamp: 't', turns: [{ ...user, audio: null }] },
      'sessions[1].turns[0].audio is missing',
    ],
    [
      'an assistant with audio',
      { timestamp: 't', turns: [user, { ...assistant, audio: audioOf(2) }] },
      'sessions[1].turns[1].audio: assistant turns are text alone',
    ],
    [
      'an assistant without text',
      { timestamp: 't', turns: [user, { ...assistant, text: null }] },
      'sessions[1].turns[1].text is missing',
    ],
  ])('are told with their turn: %s', async (_, session, message) => {
    const row = rowOf(1, '8k', { sessions: [sessionOf(3), session] });

    for (const form of forms) {
      expect(await messagesOf([row], { form }), form).toEqual([at8k + message]);
    }
  });

  it('come all at once, in the order of rows, up to a limit', async () => {
    const rows = Array.from({ length: 30 }, (_, at) =>
      rowOf(at + 1, '8k', { evidence_type: 'smell', answer_type: '' }),
    );

    const problems = await problemsOf(rows, { maxProblems: 10 });

    expect(problems.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null]);
    expect(problems.at(-1)!.message).toBe('… and 20 more');
  });

  it('of questions are told before any audio is read', async () => {
    const messages = await messagesOf([
      rowOf(1, '8k', { question_audio: null }),
      rowOf(2, '8k', { question_text: '' }),
    ]);

    expect(messages).toEqual([expect.stringContaining('question_text')]);
  });

  it('are items that are there twice', async () => {
    const messages = await messagesOf([rowOf(1), rowOf(1), rowOf(1, '8k', { item_id: 'another' })]);

    expect(messages).toEqual([
      `${at8k}there is one in items.jsonl, row 1; give each item once`,
      'item "another": question "q_00001" has an item of 8k in items.jsonl, row 1',
    ]);
  });

  it('are columns that are missing from Parquet', async () => {
    const lacking = async (leaveOut: string) => problemsOf([rowOf(1)], { form: 'parquet', leaveOut });

    expect(await lacking('question_text')).toEqual([
      { file: 'items.parquet', line: null, message: 'column question_text is missing' },
    ]);
    expect((await lacking('sessions'))[0]!.message).toContain('column sessions is missing');
    expect((await lacking('question_audio'))[0]!.message).toContain('column question_audio is missing');
  });

  it('are not columns that rows can do without', async () => {
    for (const leaveOut of [
      'family_id',
      'subtype',
      'answer_normalization',
      'samekey_haystack_session_count',
    ]) {
      const { counts } = await unpacked([rowOf(1)], { form: 'parquet', leaveOut });

      expect(counts.items).toBe(1);
    }
  });

  it('are bytes that are missing from Parquet', async () => {
    const messages = await messagesOf(
      [rowOf(1, '8k', { question_audio: { bytes: null, path: 'far/away.wav' } })],
      {
        form: 'parquet',
      },
    );

    expect(messages).toEqual([`${at8k}question_audio has no content (only the path "far/away.wav")`]);
  });
});

describe('histories of several lengths', () => {
  it('nest', async () => {
    const lengths = ['64k', '8k', '32k', '16k'] as const;

    const { counts } = await unpacked(lengths.map((length) => rowOf(1, length)));

    // 64k has nine sessions, the others some of them.
    expect(counts).toMatchObject({ items: 4, sessions: 9 });
  });

  it('lack nothing of a shorter one', async () => {
    const longer = rowOf(1, '32k');
    longer.sessions[1] = sessionOf(900);

    const problems = await problemsOf([rowOf(1, '16k'), longer, rowOf(1, '8k')]);

    expect(problems).toEqual([
      {
        file: 'items.jsonl',
        line: 2,
        message:
          'item "q_00001_32k": sessions lacks sessions[1] of the shorter "q_00001_16k" (items.jsonl, row 1); histories nest',
      },
    ]);
  });

  it('ask the same question with the same answer', async () => {
    const changes: Partial<DataSetRow> = {
      question_text: 'Another?',
      gold_json: '"another"',
      question_audio: audioOf(9999),
      evidence_session_count: 2,
    };

    const messages = await messagesOf([rowOf(1, '8k'), rowOf(1, '64k', changes)]);

    const than = 'differs from "q_00001_8k" (items.jsonl, row 1)';
    expect(messages).toEqual(
      ['question_text', 'gold_json', 'evidence_session_count', 'question_audio'].map(
        (member) => `item "q_00001_64k": ${member} ${than}`,
      ),
    );
  });

  it('may write equal gold in different ways', async () => {
    const { counts } = await unpacked([
      rowOf(1, '8k', { gold_json: '{"a": 1, "b": [2]}' }),
      rowOf(1, '16k', { gold_json: '{"b":[2],"a":1}' }),
    ]);

    expect(counts.items).toBe(2);
  });

  it('have one transcript for one session', async () => {
    const longer = rowOf(1, '16k');
    longer.sessions[0]!.turns[0]!.text = 'other words';

    const messages = await messagesOf([rowOf(1, '8k'), longer]);

    expect(messages).toEqual([
      'item "q_00001_16k": sessions[0] has other texts of user turns than an earlier session with the same audio',
    ]);
  });
});

describe('JSON lines', () => {
  const questionAudio = (audio: unknown) => (folder: string) => {
    const file = path.join(folder, 'items.jsonl');
    const row = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, `${JSON.stringify({ ...row, question_audio: audio })}\n`);
  };

  it.each<[string, unknown, string]>([
    ['out of the folder', { path: '../secret.wav' }, 'a path must stay inside its folder'],
    ['from the root', { path: '/etc/hostname' }, 'a path must stay inside its folder'],
    ['through a link', { path: 'link.wav' }, 'a path must not lead through a link'],
    ['through a linked folder', { path: 'linked/clip-5001.wav' }, 'a path must not lead through a link'],
    ['to nothing', { path: 'audio/none.wav' }, 'there is no such file'],
    ['to a folder', { path: 'audio' }, 'there is no such file'],
    ['with a number', { path: 7 }, 'its path is no text'],
    ['to bytes inside', { path: 'audio/clip-5001.wav', bytes: 'UklGRg==' }, 'JSON lines hold no bytes'],
    ['to what claims to be a clip', { bytes: { clip: 'media/x.wav' } }, 'JSON lines hold no bytes'],
    ['with no path', {}, 'question_audio has no content'],
    ['as a text', 'audio/clip-5001.wav', 'question_audio "audio/clip-5001.wav" is no audio'],
  ])('lead to audio beside them, not %s', async (_, audio, message) => {
    const messages = await messagesOf([rowOf(1)], {
      change(folder) {
        symlinkSync('audio/clip-5001.wav', path.join(folder, 'link.wav'));
        symlinkSync('audio', path.join(folder, 'linked'));
        questionAudio(audio)(folder);
      },
    });

    expect(messages).toHaveLength(1);
    expect(messages[0]).toContain('item "q_00001_8k": question_audio');
    expect(messages[0]).toContain(message);
  });

  it('tell the file of a clip that is none', async () => {
    const messages = await messagesOf([rowOf(1)], {
      change: (folder) => writeFileSync(path.join(folder, 'audio', 'clip-5001.wav'), 'ID3 something else'),
    });

    expect(messages).toEqual([
      'item "q_00001_8k": question_audio: "audio/clip-5001.wav": not a WAV file (no RIFF/WAVE header)',
    ]);
  });

  it('may have blank lines, other line ends and no end', async () => {
    const { counts } = await unpacked([rowOf(1), rowOf(2)], {
      change(folder) {
        const file = path.join(folder, 'items.jsonl');
        const [first, second] = readFileSync(file, 'utf8').split('\n');
        writeFileSync(file, `\n${first}\r\n \n${second}`);
      },
    });

    expect(counts.items).toBe(2);
  });

  it('are objects of JSON, each in a line of its own', async () => {
    const problems = await problemsOf([rowOf(1)], {
      change(folder) {
        const file = path.join(folder, 'items.jsonl');
        writeFileSync(file, `${readFileSync(file, 'utf8')}[1]\n{"item_id": \n{"item_id":"x"}\n`);
      },
    });

    expect(problems.map(({ line }) => line).slice(0, 3)).toEqual([2, 3, 4]);
    expect(problems[0]!.message).toBe('not a JSON object');
    expect(problems[1]!.message).toContain('not valid JSON');
    expect(problems[2]!.message).toBe('item "x": question_id is missing');
  });

  it('are UTF-8', async () => {
    const reading = unpacked([rowOf(1)], {
      change(folder) {
        const file = path.join(folder, 'items.jsonl');
        writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.from([0x22, 0xff, 0x0a])]));
      },
    });

    await expect(reading).rejects.toThrow('line 2 is not UTF-8 text (items.jsonl)');
  });

  it('begin without a byte order mark', async () => {
    const messages = await messagesOf([rowOf(1)], {
      change(folder) {
        const file = path.join(folder, 'items.jsonl');
        writeFileSync(file, `\uFEFF${readFileSync(file, 'utf8')}`);
      },
    });

    expect(messages).toEqual(['starts with a byte order mark; save it without']);
  });
});

describe('a WAV file', () => {
  const changed = (change: (wav: Buffer) => Buffer | undefined): Buffer => {
    const wav = wavOf(3, 80);
    return change(wav) ?? wav;
  };

  it('is as long as its samples', () => {
    const stereo = changed((wav) => {
      wav.writeUInt16LE(2, 22);
      wav.writeUInt32LE(4 * 16_000, 28);
      wav.writeUInt32LE(16_000, 24);
      wav.writeUInt16LE(4, 32);
      wav.writeUInt16LE(16, 34);
    });
    const list = Buffer.from('LIST\x03\0\0\0abc\0', 'latin1');
    const withTags = changed((wav) => {
      const whole = Buffer.concat([wav.subarray(0, 36), list, wav.subarray(36)]);
      whole.writeUInt32LE(whole.length - 8, 4);
      return whole;
    });

    // 80 bytes: 80 samples at 8,000 a second, or 20 of two channels and 16 bits at 16,000.
    expect(wavFacts(wavOf(3, 80))).toEqual({ seconds: 0.01 });
    expect(wavFacts(stereo)).toEqual({ seconds: 20 / 16_000 });
    expect(wavFacts(withTags)).toEqual({ seconds: 0.01 });
  });

  it.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'the clip is empty'],
    [
      'something else',
      Buffer.from('OggS and so on, for long enough'),
      'not a WAV file (no RIFF/WAVE header)',
    ],
    ['its beginning', wavOf(1).subarray(0, 60), 'its WAV header promises 84 bytes, there are 60'],
    [
      'more than it says',
      Buffer.concat([wavOf(1), Buffer.from('more')]),
      'its WAV header promises 84 bytes, there are 88',
    ],
    [
      'streamed, without sizes',
      changed((wav) => void wav.writeUInt32LE(0xffffffff, 4)),
      'its WAV header promises 4294967303 bytes, there are 124',
    ],
    [
      'less audio than it says',
      changed((wav) => void wav.writeUInt32LE(81, 40)),
      'its WAV chunk "data" promises 81 bytes, there are 80',
    ],
    ['no samples', wavOf(1, 0), 'the clip has no samples'],
    [
      'no sample rate',
      changed((wav) => void wav.writeUInt32LE(0, 24)),
      'its WAV header gives no possible sample rate',
    ],
    [
      'a wrong byte rate',
      changed((wav) => void wav.writeUInt32LE(1, 28)),
      'its WAV header gives no possible sample rate',
    ],
    [
      'half a sample at its end',
      changed((wav) => {
        wav.writeUInt16LE(3, 32);
        wav.writeUInt32LE(24_000, 28);
      }),
      'its last WAV sample is cut',
    ],
    ['no format', changed((wav) => void wav.write('junk', 12)), 'its WAV samples stand before their format'],
    ['no audio', changed((wav) => void wav.write('junk', 36)), 'the WAV file has no samples'],
  ])('is refused where it holds %s', (_, bytes, fault) => {
    expect(wavFacts(bytes)).toEqual({ fault });
  });
});
