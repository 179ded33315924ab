import { spawnSync } from 'node:child_process';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { returnBenchmark } from '../../shared/benchmarks/return/benchmark.ts';
import { parseJudgeReply } from '../../shared/benchmarks/return/judge-reply.ts';
import { readRelease, selectTasks } from '../../shared/benchmarks/return/read.ts';
import { verdicts } from '../../shared/benchmarks/return/release-format.ts';
import { scoreByRule } from '../../shared/benchmarks/return/score-reply.ts';
import { callCostMicroUsd, type Price, reservationMicroUsd } from '../../shared/domain/cost.ts';
import type { CallOutcome, Usage } from '../../shared/domain/outcome.ts';
import * as chat from '../../shared/providers/chat-completions/response.ts';
import { readUsage as readChatUsage } from '../../shared/providers/chat-completions/usage.ts';
import * as gemini from '../../shared/providers/gemini/response.ts';
import { readUsage as readGeminiUsage } from '../../shared/providers/gemini/usage.ts';
import { commonProfile } from '../../shared/providers/openai-compatible/provider.ts';
import { createTransport } from '../../shared/providers/transport.ts';
import { chunk, lastChunk, startRawServer, streamHead } from '../shared/providers/raw-server.ts';
import { buildRelease } from '../support/return-release-builder.ts';

/**
 * Cases are this many times more with TURNSWEEP_FUZZ=10; a failure prints the seed and the path of its case, and
 * TURNSWEEP_SEED repeats them all.
 */
const times = Number(process.env.TURNSWEEP_FUZZ ?? 1);
const seed = Number(process.env.TURNSWEEP_SEED ?? Date.now() % 2 ** 31);
const cases = (count: number) => ({ numRuns: Math.round(count * times), seed });
console.info(`fuzz: seed ${seed}`);

const steering = /[\p{Cc}\p{Zl}\p{Zp}]/u;

describe('the release reader', () => {
  const names = ['tasks', 'inputs', 'answers'] as const;
  const valid = Object.fromEntries(
    names.map((name) => [name, buildRelease({ roots: 1 }).files[`data/tasks/${name}.jsonl`]!]),
  ) as Record<(typeof names)[number], string>;
  const hostileIds = ['__proto__', 'constructor', 'toString', '../../x', '\u202e', '\u001b[2J', '', '=1+1'];
  const deep = '['.repeat(20_000) + ']'.repeat(20_000);

  type Mutation = { file: (typeof names)[number]; kind: string; line: number; at: number; text: string };
  const mutation: fc.Arbitrary<Mutation> = fc.record({
    file: fc.constantFrom(...names),
    kind: fc.constantFrom(
      ...['drop line', 'double line', 'swap lines', 'cut line', 'insert', 'delete', 'replace value'],
      ...['replace id', 'nest', 'member'],
    ),
    line: fc.nat(),
    at: fc.nat(),
    text: fc.oneof(fc.string({ unit: 'binary', maxLength: 8 }), fc.json({ maxDepth: 3 })),
  });
  const values = /"(?:[^"\\]|\\.)*"(?!:)|\b(?:true|false|null)\b/g;

  const mutated = (text: string, { kind, line, at, text: given }: Mutation): string => {
    const lines = text.split('\n');
    const index = line % lines.length;
    const old = lines[index]!;
    const place = at % (old.length + 1);
    const value = (replacement: string): string => {
      const found = [...old.matchAll(values)];
      const one = found[at % Math.max(1, found.length)];
      return one === undefined
        ? old
        : old.slice(0, one.index) + replacement + old.slice(one.index + one[0].length);
    };
    const changed = {
      'drop line': () => [],
      'double line': () => [old, old],
      'swap lines': () => [old],
      'cut line': () => [old.slice(0, place)],
      insert: () => [old.slice(0, place) + given + old.slice(place)],
      delete: () => [old.slice(0, place) + old.slice(place + 1 + (given.length % 5))],
      'replace value': () => [value(given)],
      'replace id': () => [value(JSON.stringify(hostileIds[at % hostileIds.length]))],
      nest: () => [value(deep)],
      member: () => [
        old.replace('{', `{${JSON.stringify(hostileIds[at % hostileIds.length])}:${given || 1},`),
      ],
    }[kind]!();
    lines.splice(index, 1, ...changed);
    if (kind === 'swap lines') {
      const other = at % lines.length;
      [lines[index], lines[other]] = [lines[other]!, lines[index]!];
    }
    return lines.join('\n');
  };

  it('gives problems with places for whatever became of a valid release, and what it finds sound can be planned', async () => {
    let sound = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 5 }), async (mutations) => {
        const files = { ...valid };
        for (const one of mutations) files[one.file] = mutated(files[one.file], one);
        const linesOf = (name: (typeof names)[number]) => ({ file: name, lines: files[name].split('\n') });

        const release = await readRelease({
          tasks: linesOf('tasks'),
          inputs: linesOf('inputs'),
          answers: linesOf('answers'),
        });

        for (const { file, line, message } of release.problems) {
          expect(names).toContain(file);
          expect(message).not.toBe('');
          expect(message).not.toMatch(steering);
          if (line === null) continue;
          expect(line).toBeGreaterThan(0);
          expect(line).toBeLessThanOrEqual(linesOf(file as 'tasks').lines.length);
        }
        if (release.problems.length > 0) return;
        sound += 1;
        const taskIds = release.tasks.map((task) => task.task_id);
        const plan = returnBenchmark.planLane(release as never, {
          taskIds,
          modalities: ['V', 'A'],
          interfaces: ['openqa', 'mcq'],
        });
        expect(plan.views).toHaveLength(2 * taskIds.length);
        expect(plan.groups.flatMap((group) => group.viewIds).sort()).toEqual(
          plan.views.map((view) => view.viewId).sort(),
        );
      }),
      cases(2_500),
    );
    // Some mutations are harmless (a blank, a label): else nothing of the second half was tried.
    expect(sound).toBeGreaterThan(0);
  }, 300_000);

  it('takes any text for a manifest without throwing, and chooses only tasks that there are', async () => {
    const { tasks } = await readRelease({
      tasks: { file: 'tasks', lines: valid.tasks.split('\n') },
      inputs: { file: 'inputs', lines: valid.inputs.split('\n') },
      answers: null,
    });
    const known = tasks.map((task) => task.task_id);
    const ids = fc.array(fc.oneof(fc.constantFrom(...known), fc.constantFrom(...hostileIds), fc.jsonValue()));
    const manifest = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      ids.map((task_ids) => JSON.stringify({ task_ids, note: '' })),
      fc.constant(`{"task_ids":${deep}}`),
    );
    fc.assert(
      fc.property(manifest, (text) => {
        const chosen = selectTasks(tasks, { manifest: { file: 'm', text } });

        for (const { task_id } of chosen.tasks) expect(known).toContain(task_id);
        if (chosen.problems.length === 0) expect(chosen.tasks.length).toBeGreaterThan(0);
        for (const { message } of chosen.problems) expect(message).not.toMatch(steering);
      }),
      cases(2_000),
    );
  });
});

const chatContext = { apiKey: null, now: 0, profile: commonProfile };
const dialects = {
  'chat-completions': {
    read: (reply: Parameters<typeof chat.replyOutcome>[0]) => chat.replyOutcome(reply, chatContext),
    failed: (failure: Parameters<typeof chat.failureOutcome>[0]) => chat.failureOutcome(failure, chatContext),
    events: (pieces: readonly string[]) => [
      ...pieces.map((content) => ({
        id: 'x',
        choices: [{ index: 0, delta: { content }, finish_reason: null }],
      })),
      { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { id: 'x', choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } },
    ],
    end: 'data: [DONE]\n\n',
    wrap: (json: string) =>
      `{"choices":[{"message":${json},"delta":${json},"finish_reason":${json}}],"usage":${json},"error":null}`,
  },
  gemini: {
    read: (reply: Parameters<typeof gemini.replyOutcome>[0]) =>
      gemini.replyOutcome(reply, { apiKey: null, now: 0 }),
    failed: (failure: Parameters<typeof gemini.failureOutcome>[0]) =>
      gemini.failureOutcome(failure, { apiKey: null, now: 0 }),
    events: (pieces: readonly string[]) => [
      ...pieces.map((text) => ({
        responseId: 'x',
        candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }],
      })),
      {
        responseId: 'x',
        candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3 },
      },
    ],
    end: '',
    wrap: (json: string) =>
      `{"candidates":[{"content":${json},"finishReason":${json}}],"usageMetadata":${json}}`,
  },
};

describe.each(Object.entries(dialects))('the %s reader', (_, { read, failed, events, end, wrap }) => {
  const streamType = 'text/event-stream; charset=utf-8';
  const outcomeOf = (body: string | Buffer, type = streamType): CallOutcome =>
    read({ status: 200, headers: type === '' ? {} : { 'content-type': type }, body: Buffer.from(body) });
  const text = fc
    .string({
      unit: fc.oneof(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
        fc.constantFrom(...['\n', '\r\n', '\u2028', 'data: ', '\n\n', '"', '[DONE]', '\u001b[2J', '🔵', ':']),
      ),
      minLength: 1,
      maxLength: 30,
    })
    .filter((words) => words.trim() !== '' && words.isWellFormed());
  const cutAt = (whole: string, cuts: readonly number[]): string[] => {
    const letters = [...whole];
    const places = [...new Set(cuts.map((cut) => cut % (letters.length + 1)))].sort((a, b) => a - b);
    return [0, ...places].map((from, index) => letters.slice(from, places[index]).join(''));
  };
  const plain = (pieces: readonly string[]): string[] => [
    ...events(pieces).map((event) => `data: ${JSON.stringify(event)}\n\n`),
    ...(end === '' ? [] : [end]),
  ];
  const cutsOf = fc.array(fc.nat(), { maxLength: 8 });

  it('gives the same outcome however the words are split and the events are written', () => {
    const style = fc.record({
      lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
      space: fc.constantFrom('', ' '),
      mark: fc.boolean(),
      between: fc.constantFrom('', ': ping\n', ': \n\n', 'event: message\n', 'id: 7\n', 'retry: 10\n'),
      type: fc.constantFrom(streamType, ''),
      indent: fc.boolean(),
    });
    fc.assert(
      fc.property(text, cutsOf, style, (words, cuts, { lineEnd, space, mark, between, type, indent }) => {
        const written = [
          ...events(cutAt(words, cuts)).map((event) => JSON.stringify(event, null, indent ? 1 : 0)),
          ...(end === '' ? [] : ['[DONE]']),
        ].map((data) => {
          const lines = data.split('\n').map((line) => `data:${space}${line}\n`);
          return `${between}${lines.join('')}\n`;
        });
        const body = (mark && type !== '' ? '\ufeff' : '') + written.join('').replaceAll('\n', lineEnd);

        expect(outcomeOf(body, type)).toEqual(outcomeOf(plain([words]).join('')));
        expect(outcomeOf(body, type)).toMatchObject({ status: 'ok', text: words });
      }),
      cases(4_000),
    );
  });

  it('never takes a part for the whole, nor more than was sent', () => {
    fc.assert(
      fc.property(text, cutsOf, fc.nat(), fc.boolean(), (words, cuts, at, isRegular) => {
        const bytes = Buffer.from(plain(cutAt(words, cuts)).join(''));
        const body = bytes.subarray(0, at % bytes.length);

        const headers = { 'content-type': streamType };
        const outcome = isRegular
          ? outcomeOf(body)
          : failed({ kind: 'connection_reset', message: 'reset', partial: { status: 200, headers, body } });

        if (outcome.status === 'ok') expect(outcome.text).toBe(words);
        else expect(outcome.status).toBe('retry');
      }),
      cases(4_000),
    );
  });

  it('gives the whole text or none where something else stands between the events', () => {
    const rubbish = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.json({ maxDepth: 2 }).map((json) => `data: ${json}\n\n`),
      fc.constantFrom(
        '<html>\n\n',
        'error: {"code":500}\n\n',
        'data: {"error":{"message":"x"}}\n\n',
        'data\n\n',
      ),
    );
    fc.assert(
      fc.property(text, cutsOf, rubbish, fc.nat(), (words, cuts, inserted, at) => {
        const parts = plain(cutAt(words, cuts));
        parts.splice(at % (parts.length + 1), 0, inserted);

        const outcome = outcomeOf(parts.join(''));

        if (outcome.status === 'ok' || outcome.status === 'length') expect(outcome.text).toBe(words);
      }),
      cases(4_000),
    );
  });

  it('ends in an outcome that is no reply, whatever bytes come', () => {
    const deep = '[{"a":'.repeat(5_000);
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
      fc.string({ unit: 'binary', maxLength: 300 }).map((words) => Buffer.from(words)),
      fc.json().map((json) => Buffer.from(json)),
      fc.json().map((json) => Buffer.from(`data: ${json}\n\n`)),
      fc.json().map((json) => Buffer.from(wrap(json))),
      fc.json().map((json) => Buffer.from(`data: ${wrap(json)}\n\n`)),
      fc.constant(Buffer.from(deep)),
    );
    fc.assert(
      fc.property(
        body,
        fc.constantFrom('application/json', streamType, '', 'text/html', 'image/png', 'text/plain'),
        fc.constantFrom(200, 200, 201, 204, 206, 301, 400, 404, 429, 500, 503, 599),
        (bytes, type, status) => {
          const outcome = read({ status, headers: { 'content-type': type }, body: bytes });

          expect(['retry', 'refused', 'failed', 'stop_lane']).toContain(outcome.status);
          const { message } = outcome as { message: string };
          expect(message.length).toBeLessThan(2_000);
          expect(message).not.toMatch(/[\p{Cc}]/u);
          for (const count of Object.values(outcome.usage)) {
            if (count !== null) expect(count).toBeGreaterThanOrEqual(0);
          }
        },
      ),
      cases(4_000),
    );
  });

  it('gives the same outcome however the bytes arrive', async () => {
    let pieces: Buffer[] = [];
    const server = await startRawServer(async (socket: Socket) => {
      socket.write(streamHead);
      for (const piece of pieces) {
        socket.write(chunk(piece));
        await new Promise(setImmediate);
      }
      socket.write(lastChunk);
    });
    const transport = createTransport({ url: server.url, headers: {}, connections: 1 });
    onTestFinished(async () => {
      await transport.close();
      await server.close();
    });
    await fc.assert(
      fc.asyncProperty(text, cutsOf, cutsOf, async (words, cuts, byteCuts) => {
        const bytes = Buffer.from(plain(cutAt(words, cuts)).join(''));
        const places = [...new Set(byteCuts.map((cut) => 1 + (cut % (bytes.length - 1))))].sort(
          (a, b) => a - b,
        );
        pieces = [0, ...places].map((from, index) => bytes.subarray(from, places[index]));

        const result = await transport.post(Buffer.from('{}'), { deadlineMs: 20_000 });

        if (!('reply' in result)) throw new Error(result.failure.message);
        expect(read(result.reply)).toMatchObject({ status: 'ok', text: words });
      }),
      cases(400),
    );
  });
});

describe('the judge parser', () => {
  const id = (index: number) => `item-${String(index).padStart(6, '0')}`;
  const judgment = (itemId: fc.Arbitrary<string>) =>
    fc.record({
      id: itemId,
      verdict: fc.constantFrom(...verdicts),
      format_compliant: fc.boolean(),
      reason: fc.string({ unit: 'binary', maxLength: 20 }),
    });

  it('reads exactly what a sound reply says, whatever prose and fences are around it', () => {
    const prose = fc.constantFrom('', 'Here you are:\n', '[Note] all of {them} follow. ', '\u001b[ \u202e');
    const fence = fc.constantFrom<[string, string]>(['', ''], ['```json\n', '\n```'], ['```\n', '\n```']);
    const wrapper = fc.constantFrom('', 'judgments', '__proto__');
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(50), { minLength: 1, maxLength: 20 }),
        fc.infiniteStream(judgment(fc.constant(''))),
        prose,
        fence,
        wrapper,
        (numbers, rows, before, [open, close], name) => {
          const ids = numbers.map(id);
          const items = ids.map((itemId) => ({ ...rows.next().value!, id: itemId }));
          const json = JSON.stringify(items);
          const document = name === '' ? json : `{${JSON.stringify(name)}:${json}}`;

          const read = parseJudgeReply(`${before}${open}${document}${close}`, ids.toReversed());

          if (!read.ok) throw new Error(read.message);
          expect(
            Array.from(read.verdicts, ([itemId, { verdict, formatCompliant, reason }]) => ({
              id: itemId,
              verdict,
              format_compliant: formatCompliant,
              reason,
            })).sort((a, b) => (a.id < b.id ? -1 : 1)),
          ).toEqual(
            items
              .map(({ id: itemId, verdict, format_compliant, reason }) => ({
                id: itemId,
                verdict,
                format_compliant,
                reason,
              }))
              .sort((a, b) => (a.id < b.id ? -1 : 1)),
          );
        },
      ),
      cases(3_000),
    );
  });

  it('accepts nothing whose ids are not exactly those that were asked for', () => {
    const someId = fc.oneof(fc.nat(4).map(id), fc.constantFrom('__proto__', 'constructor', '', 'item-0'));
    fc.assert(
      fc.property(fc.array(judgment(someId), { maxLength: 6 }), fc.uniqueArray(someId), (items, ids) => {
        const read = parseJudgeReply(JSON.stringify({ judgments: items }), ids);

        const given = items.map((item) => item.id);
        const isExact =
          given.length === ids.length && given.toSorted().join('\n') === ids.toSorted().join('\n');
        expect(read.ok).toBe(isExact);
        if (!read.ok) expect(read.kind).toBe('judge_ids_differ');
      }),
      cases(4_000),
    );
  });

  it('accepts no reply that was damaged', () => {
    const ids = [id(0), id(1)];
    const whole = JSON.stringify(
      ids.map((itemId) => ({
        id: itemId,
        verdict: 'equivalent',
        format_compliant: true,
        reason: 'same',
      })),
    );
    const damage = fc.oneof(
      fc.nat(whole.length - 1).map((at) => whole.slice(0, at)),
      fc.nat(whole.length - 1).map((at) => whole.slice(at + 1)),
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc
        .json()
        .map((json) => `[{"id":${json},"verdict":${json},"format_compliant":${json},"reason":${json}}]`),
      fc.constant('[{"id":'.repeat(5_000)),
    );
    fc.assert(
      fc.property(damage, (reply) => {
        const read = parseJudgeReply(reply, ids);

        expect(read.ok).toBe(false);
        if (!read.ok) expect(read.message).not.toMatch(steering);
      }),
      cases(4_000),
    );
  });
});

/** The rules of return-protocol §5 in the language whose semantics they have. */
const oracle = `
import json, re, sys
norm = lambda x: re.sub(r'[^a-z0-9]+', ' ', x.casefold()).strip()
def score(raw, gold, aliases, choices, interface):
    if interface == 'openqa':
        accepted = [norm(a) for a in [gold] + aliases]
        strict = norm(raw) in accepted
        return [strict, strict]
    reply = raw.strip()
    if reply.upper() == gold.upper():
        return [True, True]
    letters = set()
    first = re.match(r'([A-D])(?:[.:)]|\\Z)', reply, re.I)
    if first: letters.add(first.group(1).upper())
    for found in re.finditer(r'\\b(?:answer|option|choice)\\s*(?:(?:is|:|=)\\s*)?\\b([A-D])\\b', reply, re.I):
        letters.add(found.group(1).upper())
    if len(letters) == 1:
        return [False, letters == {gold.upper()}]
    text = norm(raw)
    named = ['ABCD'[i] for i, choice in enumerate(choices) if norm(choice) and norm(choice) in text]
    return [False, named == [gold.upper()]]
for line in sys.stdin:
    print(json.dumps(score(*json.loads(line))))
`;
const python = spawnSync('python3', ['-c', 'print(1)']).status === 0;

describe('the scoring rule', () => {
  const words = [
    ...[
      'A',
      'b',
      'C',
      'd',
      'B.',
      'A:',
      'c)',
      '(D)',
      '**B**',
      'answer',
      'Answer is',
      'option',
      'choice =',
      'is',
      ':',
    ],
    ...[
      'hammer',
      'a red hammer',
      'Hammer!',
      'two-part answer',
      'wrench',
      'blue',
      'straße',
      'STRASSE',
      'İs',
      'ıs',
    ],
    ...[
      'ﬁsh',
      'Ångström',
      'é',
      'e\u0301',
      'ß',
      'K',
      'ſ',
      'optıon',
      'choıce',
      'anſwer',
      '\u00a0',
      '\u2003',
      '\u0085',
    ],
    ...[
      '\u001c',
      '\u200b',
      '\n',
      '\t',
      '.',
      ',',
      '',
      ' ',
      '  ',
      '_',
      '1',
      '²',
      '蓝',
      '🔵',
      'Ω',
      'ώ',
      'я',
      'Ж',
      'ǅ',
    ],
  ];
  const phrase = fc
    .array(fc.tuple(fc.constantFrom(...words), fc.constantFrom('', ' ', '')), { maxLength: 6 })
    .map((parts) => parts.flat().join(''));
  const some = fc.oneof({ weight: 5, arbitrary: phrase }, fc.string({ maxLength: 12 }));
  const openqa = fc.record({
    raw: some,
    gold: some,
    aliases: fc.array(some, { maxLength: 3 }),
    choices: fc.constant<string[]>([]),
    interface: fc.constant('openqa'),
  });
  const mcq = fc.record({
    raw: some,
    gold: fc.constantFrom('A', 'B', 'C', 'D'),
    aliases: fc.constant<string[]>([]),
    choices: fc.array(some, { minLength: 4, maxLength: 4 }),
    interface: fc.constant('mcq'),
  });
  // Often what decides: the reply is made of the options and the gold.
  const near = fc.tuple(fc.oneof(openqa, mcq), fc.nat(4), phrase, phrase).map(([item, at, before, after]) => {
    const named = [item.gold, ...item.choices, ...item.aliases];
    return { ...item, raw: `${before}${named[at % named.length]}${after}` };
  });
  const items = fc.oneof(openqa, mcq, near);

  it.runIf(python)('is what Python makes of the same rules (needs python3)', () => {
    const count = Math.round(20_000 * times);
    const sample = fc.sample(items, { numRuns: count, seed });
    const input = sample.map((item) =>
      JSON.stringify([item.raw, item.gold, item.aliases, item.choices, item.interface]),
    );

    const { stdout, stderr } = spawnSync('python3', ['-c', oracle], {
      input: `${input.join('\n')}\n`,
      maxBuffer: 2 ** 28,
      encoding: 'utf8',
      env: { ...process.env, PYTHONIOENCODING: 'utf-8' },
    });

    expect(stderr).toBe('');
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as [boolean, boolean]);
    expect(told).toHaveLength(count);
    const differing = sample.flatMap((item, index) => {
      const { strictCorrect, ruleCorrect } = scoreByRule(item);
      const [strict, rule] = told[index]!;
      return strict === strictCorrect && rule === ruleCorrect ? [] : [{ item, told: told[index] }];
    });
    expect(differing).toEqual([]);
    // Else hardly anything was tried.
    expect(told.filter(([strict]) => strict).length).toBeGreaterThan(count / 50);
    expect(told.filter(([strict, rule]) => rule && !strict).length).toBeGreaterThan(count / 50);
  });

  it('is what a plain reading of the rules gives on ASCII text', () => {
    const ascii = fc.string({ unit: fc.constantFrom(...'aAbBcCdD .:)(=_-1ehmrx\n'), maxLength: 14 });
    const lettered = fc
      .tuple(ascii, fc.constantFrom('', 'answer', 'Option is', 'choice:', 'OPTION = '), ascii)
      .map((parts) => parts.join(''));
    const tokens = (line: string): string[] =>
      line
        .toLowerCase()
        .split(/[^a-z0-9]+/)
        .filter(Boolean);
    const isWord = (character: string | undefined) => character !== undefined && /[a-z0-9_]/i.test(character);
    const lettersOf = (reply: string): Set<string> => {
      const trimmed = reply.trim();
      const found = new Set<string>();
      if (/^[a-d]$/i.test(trimmed[0] ?? '') && ['.', ':', ')', undefined].includes(trimmed[1])) {
        found.add(trimmed[0]!.toUpperCase());
      }
      for (let at = 0; at < trimmed.length; at += 1) {
        for (const lead of ['answer', 'option', 'choice']) {
          if (trimmed.slice(at, at + 6).toLowerCase() !== lead || isWord(trimmed[at - 1])) continue;
          const skip = (from: number): number => {
            let next = from;
            while (/\s/.test(trimmed[next] ?? '')) next += 1;
            return next;
          };
          const afterLead = skip(at + 6);
          const starts = [afterLead];
          if (trimmed.slice(afterLead, afterLead + 2).toLowerCase() === 'is')
            starts.push(skip(afterLead + 2));
          if ([':', '='].includes(trimmed[afterLead] ?? '')) starts.push(skip(afterLead + 1));
          for (const start of starts) {
            const letter = trimmed[start];
            if (letter === undefined || !/[a-d]/i.test(letter)) continue;
            if (!isWord(trimmed[start - 1]) && !isWord(trimmed[start + 1])) found.add(letter.toUpperCase());
          }
        }
      }
      return found;
    };
    fc.assert(
      fc.property(
        lettered,
        fc.constantFrom('A', 'B', 'C', 'D'),
        fc.array(ascii, { minLength: 4, maxLength: 4 }),
        (raw, gold, choices) => {
          const letters = lettersOf(raw);
          const text = tokens(raw).join(' ');
          const named = choices.flatMap((choice, index) => {
            const option = tokens(choice).join(' ');
            return option !== '' && text.includes(option) ? ['ABCD'[index]] : [];
          });
          const strict = raw.trim().toUpperCase() === gold;
          const byRule = letters.size === 1 ? letters.has(gold) : named.length === 1 && named[0] === gold;

          expect(scoreByRule({ raw, gold, aliases: [], choices, interface: 'mcq' })).toEqual({
            strictCorrect: strict,
            ruleCorrect: strict || byRule,
          });
        },
      ),
      cases(10_000),
    );
    fc.assert(
      fc.property(ascii, ascii, fc.array(ascii, { maxLength: 3 }), (raw, gold, aliases) => {
        const isRight = [gold, ...aliases].some((answer) => tokens(answer).join() === tokens(raw).join());

        expect(scoreByRule({ raw, gold, aliases, choices: [], interface: 'openqa' })).toEqual({
          strictCorrect: isRight,
          ruleCorrect: isRight,
        });
      }),
      cases(5_000),
    );
  });
});

describe('cost', () => {
  const rate = fc.option(
    fc.oneof(fc.constantFrom(0, 0.15, 1, 4), fc.double({ min: 0, max: 1000, noNaN: true })),
  );
  const rates = {
    inputPerMTok: rate,
    outputPerMTok: rate,
    audioInputPerMTok: rate,
    imageInputPerMTok: rate,
    videoInputPerMTok: rate,
    outputAfterMediaPerMTok: rate,
  };
  const tier = fc.record(
    { ...rates, aboveInputTokens: fc.nat(300_000) },
    { requiredKeys: ['aboveInputTokens', 'inputPerMTok', 'outputPerMTok'] },
  );
  const price = fc
    .record(
      {
        ...rates,
        cachedInputPerMTok: rate,
        tiers: fc.array(tier, { maxLength: 2 }),
        batchMultiplier: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      },
      { requiredKeys: ['inputPerMTok', 'outputPerMTok'] },
    )
    .map(
      (found): Price => ({
        ...found,
        tiers: found.tiers?.sort((a, b) => a.aboveInputTokens - b.aboveInputTokens),
      }),
    );
  const count = fc.option(fc.oneof(fc.nat(10), fc.nat(400_000), fc.maxSafeInteger().map(Math.abs)));
  const usage: fc.Arbitrary<Usage> = fc.record({
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count,
    reasoningTokens: count,
    audioInputTokens: count,
    videoInputTokens: count,
    imageInputTokens: count,
    textInputTokens: count,
  });
  const call = fc.record({ holdsMedia: fc.boolean(), batched: fc.boolean() }, { requiredKeys: [] });

  it('is never negative nor a fraction of nothing: a number of at least 0, or unknown', () => {
    fc.assert(
      fc.property(usage, price, call, (tokens, list, billed) => {
        const cost = callCostMicroUsd(tokens, list, billed);

        if (cost === null) return;
        expect(Number.isFinite(cost)).toBe(true);
        expect(cost).toBeGreaterThanOrEqual(0);
        const reserved = reservationMicroUsd(tokens.inputTokens!, tokens.outputTokens!, list, billed);
        expect(reserved).toBeGreaterThanOrEqual(0);
        const isDiscounted = (list.cachedInputPerMTok ?? 0) <= (list.inputPerMTok ?? 0);
        if (isDiscounted && (list.tiers ?? []).length === 0) {
          // A ten-billionth for the last digits of sums beyond what a double holds.
          expect(cost).toBeLessThanOrEqual(reserved * (1 + 1e-10));
        }
      }),
      cases(10_000),
    );
  });

  it('has token counts of whole numbers from 0, whatever a provider says of them', () => {
    const member = fc.oneof(
      fc.integer(),
      fc.double(),
      fc.jsonValue(),
      fc.constantFrom(-1, 1e300, '12', null, '__proto__'),
    );
    const said = fc.oneof(
      fc.jsonValue(),
      fc.record({
        prompt_tokens: member,
        completion_tokens: member,
        cached_tokens: member,
        prompt_tokens_details: fc.oneof(member, fc.record({ cached_tokens: member, audio_tokens: member })),
        completion_tokens_details: fc.oneof(member, fc.record({ reasoning_tokens: member })),
        promptTokenCount: member,
        candidatesTokenCount: member,
        thoughtsTokenCount: member,
        totalTokenCount: member,
        promptTokensDetails: fc.oneof(
          member,
          fc.array(fc.record({ modality: fc.constantFrom('AUDIO', 'TEXT'), tokenCount: member })),
        ),
      }),
    );
    fc.assert(
      fc.property(said, (value) => {
        for (const read of [readChatUsage, readGeminiUsage]) {
          for (const tokens of Object.values(read(value))) {
            if (tokens !== null) expect(Number.isInteger(tokens) && tokens >= 0).toBe(true);
          }
          const cost = callCostMicroUsd(read(value), { inputPerMTok: 1, outputPerMTok: 2 });
          if (cost !== null) expect(cost).toBeGreaterThanOrEqual(0);
        }
      }),
      cases(5_000),
    );
  });
});
