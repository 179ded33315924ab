import { describe, expect, it } from 'vitest';
import type { ContextLength } from '../../../../shared/benchmarks/voxmem/format.ts';
import { mediaDigests, readRelease, selectItems } from '../../../../shared/benchmarks/voxmem/read.ts';
import { anAnswer, anItem, aRefusal, aSession, clip, files, type Rows, textsOf } from './release-builders.ts';

const sound = (): Rows & { sessions: object[]; items: object[]; answers: object[]; media: string[] } => ({
  sessions: [
    aSession('s1', '2025-05-25 09:05', 'u:one', 'a:Indeed.', 'u:two'),
    aSession('s2', '2025-06-01 10:00', 'u:three', 'a:I see.'),
  ],
  items: [anItem('q1', '8k'), anItem('q1', '16k', { session_keys: ['s1', 's2'] }), anItem('q2', '8k')],
  answers: [anAnswer('q1', '8k'), anAnswer('q1', '16k'), aRefusal('q2', '8k')],
  media: ['one', 'two', 'three', 'ask-q1', 'ask-q2'].map(clip),
});

const problemsOf = async (rows: Rows): Promise<string[]> =>
  (await readRelease(textsOf(rows))).problems.map(
    ({ file, line, message }) => `${file}:${line ?? '-'} ${message}`,
  );

describe('readRelease', () => {
  it('takes a sound release and keeps the order of its files', async () => {
    const release = await readRelease(textsOf(sound()));

    expect(release.problems).toEqual([]);
    expect([...release.items.keys()]).toEqual(['q1_8k', 'q1_16k', 'q2_8k']);
    expect([...release.sessions.keys()]).toEqual(['s1', 's2']);
    expect(release.items.get('q1_16k')!.session_keys).toEqual(['s1', 's2']);
    expect(release.answers!.get('q2_8k')!.memory_operation).toBe('answer_refusal');
    expect(release.transcripts).toBeNull();
  });

  it('neither reads nor wants answers, transcripts and the manifest where none are given', async () => {
    const { sessions, items } = sound();

    const release = await readRelease(textsOf({ sessions, items }));

    expect(release.problems).toEqual([]);
    expect([release.answers, release.transcripts]).toEqual([null, null]);
  });

  it('skips blank lines and counts them', async () => {
    const rows = sound();
    const broken = { ...rows, items: ['', JSON.stringify(rows.items[0]), ' ', '{"item_id":'] };

    const [first] = await problemsOf({ ...broken, answers: [rows.answers[0]!] as never });

    expect(first).toMatch(/^data\/items\.jsonl:4 not valid JSON/);
  });

  it.each<[string, (rows: ReturnType<typeof sound>) => void, string[]]>([
    [
      'an item twice',
      (rows) => rows.items.push(rows.items[0]!),
      [`${files.items}:4 item_id "q1_8k" is already on line 1`],
    ],
    [
      'a question twice at one length',
      (rows) => {
        rows.items.push(anItem('q1', '8k', { item_id: 'other' }));
        rows.answers.push(anAnswer('q1', '8k', { item_id: 'other' }));
      },
      [`${files.items}:4 item "other": question "q1" at 8k is already "q1_8k"`],
    ],
    [
      'a session twice',
      (rows) => rows.sessions.push(rows.sessions[0]!),
      [`${files.sessions}:3 session_key "s1" is already on line 1`],
    ],
    [
      'an unknown session, named twice',
      (rows) => {
        rows.items[2] = anItem('q2', '8k', { session_keys: ['s1', 's9', 's9'] });
      },
      [`${files.items}:3 item "q2_8k": session "s9" is not in data/sessions.jsonl`],
    ],
    [
      'a session in which nobody speaks',
      (rows) => {
        rows.sessions[1] = aSession('s2', 't', 'a:Hello?');
      },
      [`${files.sessions}:2 session "s2": no user turn, so nowhere to put its timestamp`],
    ],
    [
      'a clip that the manifest lacks',
      (rows) => rows.media.splice(2, 1),
      [`${files.sessions}:2 session "s2": clip "${clip('three')}" is not in data/media.json`],
    ],
    [
      'a spoken question that the manifest lacks',
      (rows) => rows.media.splice(4, 1),
      [`${files.items}:3 item "q2_8k": clip "${clip('ask-q2')}" is not in data/media.json`],
    ],
    [
      'an item without an answer',
      (rows) => rows.answers.pop(),
      [`${files.items}:3 item "q2_8k" has no answer in data/answers.jsonl`],
    ],
    [
      'an answer without an item',
      (rows) => rows.answers.push(anAnswer('q7', '8k')),
      [`${files.answers}:4 answer to "q7_8k": no such item in data/items.jsonl`],
    ],
    [
      'an answer to another question',
      (rows) => {
        rows.answers[2] = aRefusal('q2', '8k', { question_id: 'q3' });
      },
      [`${files.answers}:3 answer to "q2_8k": question_id "q3", but the item has "q2"`],
    ],
    [
      'an operation that does not go with what is expected',
      (rows) => {
        rows.answers[2] = aRefusal('q2', '8k', { memory_operation: 'multi_session_reasoning' });
      },
      [
        `${files.answers}:3 answer to "q2_8k": expected_response "insufficient_evidence" with memory_operation "multi_session_reasoning"`,
      ],
    ],
    [
      'an expected answer without gold',
      (rows) => {
        rows.answers[0] = anAnswer('q1', '8k', { gold: null });
        rows.answers[1] = anAnswer('q1', '16k', { gold: null });
      },
      [
        `${files.answers}:1 answer to "q1_8k": gold is null, but an answer is expected`,
        `${files.answers}:2 answer to "q1_16k": gold is null, but an answer is expected`,
      ],
    ],
    [
      'a gold that changes with the length',
      (rows) => {
        rows.answers[1] = anAnswer('q1', '16k', { gold: ['the sister'] });
      },
      [`${files.answers}:2 answer to "q1_16k": gold not as in "q1_8k"`],
    ],
    [
      'a misspelt key, and no second fault for the row that is missing thereby',
      (rows) => {
        const { question_audio, ...rest } = anItem('q2', '8k');
        rows.items[2] = { ...rest, question_audoi: question_audio };
      },
      [
        `${files.items}:3 missing key "question_audio"`,
        `${files.items}:3 unknown key "question_audoi"; did you mean "question_audio"?`,
      ],
    ],
    [
      'a length that is none',
      (rows) => {
        rows.items[2] = { ...anItem('q2', '8k'), context_length: '128k' };
      },
      [`${files.items}:3 context_length "128k": Invalid option: expected one of "8k"|"16k"|"32k"|"64k"`],
    ],
  ])('tells %s with its place', async (_, breakIt, expected) => {
    const rows = sound();
    breakIt(rows);

    expect(await problemsOf(rows)).toEqual(expected);
  });

  it('refuses a transcript in a user turn', async () => {
    const rows = sound();
    rows.sessions[1] = {
      session_key: 's2',
      timestamp: 't',
      turns: [{ role: 'user', audio: clip('three'), text: 'what was said' }],
    };

    const problems = await problemsOf(rows);

    expect(problems).toEqual([`${files.sessions}:2 unknown key "text" in turns[0]`]);
  });

  it.each(['../../etc/passwd', '/etc/passwd', 'media/../x.wav', 'media/short.wav', '__proto__'])(
    'refuses the clip path %s even without a manifest',
    async (path) => {
      const { sessions } = sound();

      const problems = await problemsOf({ sessions, items: [anItem('q1', '8k', { question_audio: path })] });

      expect(problems).toEqual([`${files.items}:1 item "q1_8k": clip "${path}" is not "media/<sha256>.wav"`]);
    },
  );

  it('checks transcripts against their sessions', async () => {
    const { sessions, items } = sound();
    const turns = [
      { role: 'user' as const, text: 'hi' },
      { role: 'assistant' as const, text: 'Indeed.' },
    ];

    const problems = await problemsOf({
      sessions,
      items,
      transcripts: [
        { session_key: 's1', timestamp: 'another day', turns },
        { session_key: 's9', timestamp: 't', turns },
      ],
    });

    expect(problems).toEqual([
      `${files.sessions}:2 session "s2" has no transcript in data/transcripts.jsonl`,
      `${files.transcripts}:1 transcript of "s1": timestamp "another day" differs from the session's`,
      `${files.transcripts}:1 transcript of "s1": its turns are not the session's`,
      `${files.transcripts}:2 transcript of "s9": no such session in data/sessions.jsonl`,
    ]);
  });

  it('lists at most a thousand problems, counts the rest and lets nothing control a terminal', async () => {
    const { sessions } = sound();
    const items = Array.from({ length: 1_500 }, (_, index) => `\u001b[2J{${index}`);

    const problems = await problemsOf({ sessions, items });

    expect(problems).toHaveLength(1_001);
    expect(problems.at(-1)).toBe(`${files.items}:- … and 500 more`);
    expect(problems.join('')).not.toContain('\u001b');
  });
});

describe('media.json', () => {
  it('gives digest and length of each clip', () => {
    const path = clip('one');
    const text = JSON.stringify({ [path]: { sha256: path.slice(6, 70), bytes: 44, seconds: 0.5 } });

    expect(mediaDigests(files.media, text)).toEqual({
      sha256ByPath: new Map([[path, path.slice(6, 70)]]),
      secondsByPath: new Map([[path, 0.5]]),
      problems: [],
    });
  });

  it.each([
    [{ sha256: 'a'.repeat(64), bytes: 44, seconds: 1 }, `has sha256 "${'a'.repeat(64)}"`],
    [{ sha256: clip('one').slice(6, 70), bytes: 0, seconds: 1 }, 'has no length'],
  ])('refuses %j', (entry, fault) => {
    const { problems } = mediaDigests(files.media, JSON.stringify({ [clip('one')]: entry }));

    expect(problems.map(({ message }) => message)).toEqual([`clip "${clip('one')}" ${fault}`]);
  });
});

describe('selectItems', () => {
  const lengths: ContextLength[] = ['8k', '16k'];
  const items = new Map(
    ['q1', 'q2', 'q3'].flatMap((question) =>
      lengths.map((length) => [`${question}_${length}`, anItem(question, length)] as const),
    ),
  );
  const answers = new Map(
    Array.from(items.values(), ({ item_id, question_id, context_length }) => [
      item_id,
      anAnswer(question_id, context_length, {
        evidence_type: question_id === 'q2' ? 'environmental_sound' : 'speaker_information',
      }),
    ]),
  );
  const manifest = (...ids: unknown[]) => ({ file: 'm.json', text: JSON.stringify({ item_ids: ids }) });

  it.each<[string, Parameters<typeof selectItems>[2], string[]]>([
    ['everything', {}, ['q1_8k', 'q1_16k', 'q2_8k', 'q2_16k', 'q3_8k', 'q3_16k']],
    ['a length', { lengths: ['16k'] }, ['q1_16k', 'q2_16k', 'q3_16k']],
    ['a kind of evidence', { evidenceTypes: ['environmental_sound'] }, ['q2_8k', 'q2_16k']],
    ['an item and a question', { ids: ['q3_16k', 'q1'] }, ['q1_8k', 'q1_16k', 'q3_16k']],
    ['the order of a manifest', { manifest: manifest('q3_8k', 'q1_8k') }, ['q3_8k', 'q1_8k']],
    ['what all filters leave', { ids: ['q1', 'q2'], lengths: ['8k'], limit: 1 }, ['q1_8k']],
    ['no more than there are', { limit: 99, lengths: ['8k'] }, ['q1_8k', 'q2_8k', 'q3_8k']],
  ])('takes %s', (_, selection, expected) => {
    expect(selectItems(items, answers, selection)).toEqual({ itemIds: expected, problems: [] });
  });

  it.each<[string, Parameters<typeof selectItems>[2], string[]]>([
    ['an unknown id', { ids: ['q1', 'q9'] }, ['"q9" is neither an item nor a question of the release']],
    [
      'a manifest with ids that are unknown or there twice',
      { manifest: manifest('q1_8k', 'q1_8k', 'q1') },
      ['item "q1_8k" is named more than once', 'item "q1" is not in the release'],
    ],
    [
      'an empty manifest',
      { manifest: manifest() },
      ['item_ids []: is empty; a manifest names at least one item'],
    ],
    ['a limit below 1', { limit: 0 }, ['0 is not a whole number above 0']],
    [
      'a selection that leaves nothing',
      { lengths: ['64k'] },
      ['no item of the release is left by lengths, evidenceTypes, ids and manifest'],
    ],
  ])('refuses %s', (_, selection, expected) => {
    expect(selectItems(items, answers, selection).problems.map(({ message }) => message)).toEqual(expected);
  });

  it('cannot tell evidence without the answers', () => {
    const { problems } = selectItems(items, null, { evidenceTypes: ['speech_semantics'] });

    expect(problems.map(({ message }) => message)).toEqual(['cannot be told without the answers']);
  });
});
