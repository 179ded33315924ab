import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readRelease, selectTasks } from '../../../../shared/benchmarks/return/read.ts';
import type { BuiltRelease } from '../../../support/return-release-builder.ts';
import { buildRelease, toJsonl } from '../../../support/return-release-builder.ts';
import { releaseTexts } from './release-files.ts';

const released = resolve(import.meta.dirname, '../../../../../shared/reference/return-release');

type Rows = BuiltRelease['rows'];
// biome-ignore lint/suspicious/noExplicitAny: the tests break rows in ways that their types forbid
type Loose = any;

/** Problems of a built release of one root after a change to its rows, as `file:line message`. */
async function problemsAfter(change: (rows: Rows & Record<string, Loose>) => void): Promise<string[]> {
  const { rows } = buildRelease({ roots: 1 });
  change(rows);
  return problemsOf({
    'data/tasks/tasks.jsonl': toJsonl(rows.tasks),
    'data/tasks/inputs.jsonl': toJsonl(rows.inputs),
    'data/tasks/answers.jsonl': toJsonl(rows.answers),
  });
}

async function problemsOf(files: Record<string, string>): Promise<string[]> {
  const { problems } = await readRelease(releaseTexts(files));
  return problems.map(({ file, line, message }) => `${file}:${line} ${message}`);
}

const taskAt = (rows: Rows, id: string): Loose => rows.tasks.find((task) => task.task_id === id)!;
const lineOf = (rows: { request_id: string }[], id: string): number =>
  rows.findIndex((row) => row.request_id === id) + 1;

describe('a sound release', () => {
  it('is read whole, in file order, without problems', async () => {
    const built = buildRelease({ roots: 2 });

    const release = await readRelease(releaseTexts(built.files));

    expect(release.problems).toEqual([]);
    expect(release.tasks).toEqual(built.rows.tasks);
    expect([...release.inputs.values()]).toEqual(built.rows.inputs);
    expect([...release.answers!.values()]).toEqual(built.rows.answers);
  });

  it('can be read without answers', async () => {
    const built = buildRelease({ roots: 1 });

    const release = await readRelease(releaseTexts(built.files, { answers: false }));

    expect(release).toMatchObject({ problems: [], answers: null });
    expect(JSON.stringify([...release.inputs.values()])).not.toContain('"gold"');
  });

  it('can be read without the requests, by who only scores', async () => {
    const built = buildRelease({ roots: 1 });

    const release = await readRelease({ ...releaseTexts(built.files), inputs: null });

    expect(release).toMatchObject({ problems: [], tasks: built.rows.tasks });
    expect([...release.inputs]).toEqual([]);
    expect([...release.answers!.values()]).toEqual(built.rows.answers);
  });

  it('needs an answer to every request of a task also where the requests are not read', async () => {
    const { rows, files } = buildRelease({ roots: 1 });
    const lost = rows.tasks[1]!.views.mcq.history_request_id;
    const answers = toJsonl(rows.answers.filter((row) => row.request_id !== lost));

    const { problems } = await readRelease({
      ...releaseTexts({ ...files, 'data/tasks/answers.jsonl': answers }),
      inputs: null,
    });

    expect(problems).toEqual([
      { file: 'tasks.jsonl', line: 2, message: `request "${lost}" has no answer in answers.jsonl` },
    ]);
  });

  it('may come as an asynchronous stream with carriage returns and blank lines', async () => {
    const built = buildRelease({ roots: 1 });
    const stream = async function* (name: string) {
      for (const line of built.files[`data/tasks/${name}.jsonl`]!.split('\n')) {
        yield `${line}\r`;
        yield '';
      }
    };

    const release = await readRelease({
      tasks: { file: 't', lines: stream('tasks') },
      inputs: { file: 'i', lines: stream('inputs') },
      answers: { file: 'a', lines: stream('answers') },
    });

    expect(release.problems).toEqual([]);
    expect(release.inputs.size).toBe(47);
  });

  it('takes a reader error as it is', async () => {
    const broken = async function* (): AsyncGenerator<string> {
      yield '';
      throw new Error('disk gone');
    };
    const texts = releaseTexts(buildRelease({ roots: 1 }).files);

    const reading = readRelease({ ...texts, inputs: { file: 'i', lines: broken() } });

    await expect(reading).rejects.toThrow('disk gone');
  });
});

describe('faults of form', () => {
  const inFirstInput: [string, (row: Loose) => void, string][] = [
    ['an unknown key', (row) => (row.horizn = row.horizon), 'unknown key "horizn"; did you mean "horizon"?'],
    ['a far-off unknown key', (row) => (row.zzzzzz = 1), 'unknown key "zzzzzz"'],
    ['a missing key', (row) => delete row.condition, 'missing key "condition"'],
    [
      'a wrong type',
      (row) => (row.request_id = 7),
      'request_id 7: Invalid input: expected string, received number',
    ],
    [
      'a control character in an id',
      (row) => (row.request_id = 'a\u0007b'),
      'request_id "a\\u0007b": must be a non-empty id without control or invisible characters',
    ],
    [
      'an invisible character in an id',
      (row) => (row.request_id = 'a\u200bb'),
      'request_id "a\\u{200b}b": must be a non-empty id without control or invisible characters',
    ],
    [
      'a label that could steer a terminal',
      (row) => (row.operation = 'x\u001b[2J'),
      'operation "x\\u001b[2J": must not hold control or invisible characters',
    ],
    [
      'a user message without parts',
      (row) => (row.messages[0].content = []),
      'messages[0].content []: is empty; a user message needs at least one part',
    ],
    ['gold among the inputs', (row) => (row.gold = 'x'), 'unknown key "gold"'],
    [
      'assistant text instead of a binding',
      (row) => row.messages.push({ role: 'assistant', content: 'x' }),
      'missing key "messages[1].content_binding"',
    ],
  ];
  it.each(inFirstInput)('finds %s', async (_, change, message) => {
    const problems = await problemsAfter((rows) => change(rows.inputs[0]));

    expect(problems).toContain(`inputs.jsonl:1 ${message}`);
  });

  const badPaths: [string, string][] = [
    ['/data/clip.mp4', 'is an absolute path'],
    ['C:/clip.mp4', 'is an absolute path'],
    ['https://example.org/clip.mp4', 'is an absolute path'],
    ['data/../../clip.mp4', 'is a path with ".."'],
    ['..', 'is a path with ".."'],
    ['data\\clip.mp4', 'is a path with a backslash'],
    ['data/clip\0.mp4', 'is a path with a control character'],
    ['data/clip\u0085.mp4', 'is a path with a control character'],
    ['', 'is an empty path'],
  ];
  it.each(badPaths)('refuses the media path %j', async (path, message) => {
    const problems = await problemsAfter(
      (rows: Loose) => (rows.inputs[0].messages[0].content[1].video = path),
    );

    expect(problems).toEqual([
      `inputs.jsonl:1 messages[0].content[1].video ${JSON.stringify(path).replace('\u0085', '\\u{85}')}: ${message}; media paths are relative to the release`,
    ]);
  });

  it('takes names with two dots inside for what they are', async () => {
    const problems = await problemsAfter(
      (rows: Loose) => (rows.inputs[0].messages[0].content[1].video = 'data/a..b/..c.mp4'),
    );

    expect(problems).toEqual([]);
  });

  it('tells where JSON is broken and reads on', async () => {
    const { files } = buildRelease({ roots: 1 });
    const lines = files['data/tasks/answers.jsonl']!.split('\n');
    lines.splice(2, 0, '{"request_id": "x",');

    const problems = await problemsOf({ ...files, 'data/tasks/answers.jsonl': lines.join('\n') });

    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^answers\.jsonl:3 not valid JSON/);
  });

  it('reports a byte order mark and reads the line behind it', async () => {
    const { files } = buildRelease({ roots: 1 });

    const problems = await problemsOf({
      ...files,
      'data/tasks/tasks.jsonl': `\uFEFF${files['data/tasks/tasks.jsonl']}`,
    });

    expect(problems).toEqual(['tasks.jsonl:1 starts with a byte order mark; save it without']);
  });

  it('refuses a line over the limit without parsing it', async () => {
    const { files } = buildRelease({ roots: 1 });
    const lines = ['x'.repeat(5_001), ...files['data/tasks/tasks.jsonl']!.split('\n')];

    const { problems } = await readRelease(
      { ...releaseTexts(files), tasks: { file: 'tasks.jsonl', lines } },
      { maxLineLength: 5_000 },
    );

    expect(problems).toEqual([
      { file: 'tasks.jsonl', line: 1, message: 'line has 5001 characters; the limit is 5000' },
    ]);
  });

  it('lets no prototype key through', async () => {
    const { files } = buildRelease({ roots: 1 });
    const lines = files['data/tasks/tasks.jsonl']!.split('\n');
    lines[0] = lines[0]!.replace('{', '{"__proto__":{"polluted":true},"constructor":1,');

    const problems = await problemsOf({ ...files, 'data/tasks/tasks.jsonl': lines.join('\n') });

    expect(problems).toEqual([
      'tasks.jsonl:1 unknown key "__proto__"',
      'tasks.jsonl:1 unknown key "constructor"',
    ]);
    expect(({} as Loose).polluted).toBeUndefined();
  });

  it('treats "__proto__" as an id like any other', async () => {
    const { files } = buildRelease({ roots: 1 });
    const renamed = Object.fromEntries(
      Object.entries(files).map(([path, text]) => [
        path,
        text.replaceAll('root-001::evidence::short::N0', '__proto__'),
      ]),
    );

    const release = await readRelease(releaseTexts(renamed));

    expect(release.problems).toEqual([]);
    expect(release.inputs.get('__proto__')?.condition).toBe('AUX');
  });

  it('prints nothing of a value that is nested without end', async () => {
    const { files } = buildRelease({ roots: 1 });
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    const lines = [`{"task_id":${deep}}`, ...files['data/tasks/tasks.jsonl']!.split('\n')];

    const problems = await problemsOf({ ...files, 'data/tasks/tasks.jsonl': lines.join('\n') });

    expect(problems).toContain('tasks.jsonl:1 task_id […]: Invalid input: expected string, received array');
  });

  it('does not report what only follows from a row that could not be read', async () => {
    const problems = await problemsAfter((rows: Loose) => {
      rows.tasks[0].split = 5;
      rows.inputs.find((row: Loose) => row.condition === 'AUX').operation = null;
    });

    expect(problems).toEqual([
      'tasks.jsonl:1 split 5: Invalid input: expected string, received number',
      'inputs.jsonl:3 operation null: Invalid input: expected string, received null',
    ]);
  });

  it('lists the first problems and counts the rest', async () => {
    const lines = Array.from({ length: 1_205 }, () => '{');
    const empty = { file: 'inputs.jsonl', lines: [] };

    const { problems } = await readRelease({
      tasks: { file: 'tasks.jsonl', lines },
      inputs: empty,
      answers: null,
    });

    expect(problems).toHaveLength(1_001);
    expect(problems[999]).toMatchObject({ file: 'tasks.jsonl', line: 1_000 });
    expect(problems[1_000]).toEqual({ file: 'tasks.jsonl', line: null, message: '… and 205 more' });
  });
});

describe('references', () => {
  it('finds ids given twice', async () => {
    const problems = await problemsAfter((rows: Loose) => {
      rows.tasks.push({ ...rows.tasks[0] });
      rows.inputs.push({ ...rows.inputs[0] });
      rows.answers.push({ ...rows.answers[1] });
      rows.tasks[1].views.mcq.view_id = rows.tasks[0].views.openqa.view_id;
    });

    expect(problems).toEqual([
      'tasks.jsonl:2 view_id "root-001::evidence::short::retrieve::openqa::view::openqa" is already used by task "root-001-short-retrieve"',
      'tasks.jsonl:9 task_id "root-001-short-retrieve" is already on line 1',
      'inputs.jsonl:48 request_id "root-001::evidence::C::openqa" is already on line 1',
      'answers.jsonl:23 request_id "root-001::evidence::C::mcq" is already on line 2',
    ]);
  });

  it('finds views of requests that are not there', async () => {
    const problems = await problemsAfter((rows) => {
      const view = taskAt(rows, 'root-001-short-retrieve').views.mcq;
      view.history_request_id = 'gone';
      view.native_dependency_request_ids = ['gone too'];
    });

    expect(problems).toEqual([
      'tasks.jsonl:1 views.mcq: history request "gone" is not in inputs.jsonl',
      'tasks.jsonl:1 views.mcq: native dependency request "gone too" is not in inputs.jsonl',
    ]);
  });

  it('finds a control and a history that were swapped', async () => {
    const problems = await problemsAfter((rows) => {
      const view = taskAt(rows, 'root-001-short-preserve').views.openqa;
      [view.control_request_id, view.history_request_id] = [view.history_request_id, view.control_request_id];
    });

    const [task, control, history] = [
      'tasks.jsonl:3 views.openqa:',
      'request "root-001::task::short::preserve::openqa::H0"',
      'request "root-001::task::short::C::openqa"',
    ];
    expect(problems).toContain(`${task} ${control} has condition "H0", not C`);
    expect(problems).toContain(`${task} ${history} has condition "C", not H0`);
    expect(problems).toContain(`${task} ${history} has operation "paired_control", not preserve`);
  });

  it('finds requests of another interface, horizon, modality or operation', async () => {
    const problems = await problemsAfter((rows) => {
      const long = taskAt(rows, 'root-001-long-preserve');
      const short = taskAt(rows, 'root-001-short-preserve');
      short.views.openqa = { ...long.views.mcq, view_id: 'v1' };
      taskAt(rows, 'root-001-short-retrieve').required_modality = 'A';
    });

    const preserve = 'tasks.jsonl:3 views.openqa: request "root-001::task::long::preserve::mcq::H0" has';
    expect(problems).toContain(`${preserve} interface "mcq", not openqa`);
    expect(problems).toContain(`${preserve} horizon "long", not short`);
    expect(problems).toContain(
      'tasks.jsonl:1 views.mcq: request "root-001::evidence::C::mcq" has required_modality "V", not A',
    );
    expect(problems).toContain(
      'tasks.jsonl:2 pair "root-001::evidence::short": required_modality differs: "A" and "V"',
    );
  });

  it('finds native dependencies in another order than the bindings', async () => {
    const problems = await problemsAfter((rows) => {
      taskAt(rows, 'root-001-long-retrieve').views.openqa.native_dependency_request_ids.reverse();
    });

    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(
      /^tasks\.jsonl:5 views\.openqa: native_dependency_request_ids .* are not what the history request is bound to/,
    );
  });

  it('finds a missing native dependency', async () => {
    const problems = await problemsAfter((rows) => {
      taskAt(rows, 'root-001-short-retrieve').views.openqa.native_dependency_request_ids = [];
    });

    expect(problems).toEqual([
      'tasks.jsonl:1 views.openqa: native_dependency_request_ids [] are not what the history request is bound to, ["root-001::evidence::short::N0"]',
    ]);
  });

  it('finds bindings that dangle', async () => {
    const id = 'root-001::evidence::short::retrieve::openqa';
    let line = 0;

    const problems = await problemsAfter((rows: Loose) => {
      line = lineOf(rows.inputs, id);
      rows.inputs[line - 1].messages[1].content_binding.request_id = 'nowhere';
    });

    expect(problems).toEqual([`inputs.jsonl:${line} request "${id}": bound to unknown request "nowhere"`]);
  });

  it('finds bindings that form a cycle, once', async () => {
    const [first, second] = ['root-001::evidence::long::N1', 'root-001::evidence::long::N2'];
    let line = 0;

    const problems = await problemsAfter((rows: Loose) => {
      line = lineOf(rows.inputs, first!);
      rows.inputs[line - 1].messages[1].content_binding.request_id = second;
    });

    expect(problems).toEqual([
      `inputs.jsonl:${line} bindings form a cycle: "${first} → ${second} → ${first}"`,
    ]);
  });

  it('survives a chain of bindings of any length', async () => {
    const template: Loose = buildRelease({ roots: 1 }).rows.inputs.find(
      (row) => row.request_id === 'root-001::evidence::long::N1',
    );
    const chain = Array.from({ length: 20_000 }, (_, index) => ({
      ...template,
      request_id: `n${index}`,
      messages: [
        template.messages[0],
        {
          role: 'assistant',
          content_binding: { kind: 'REQUEST_RAW', request_id: `n${(index + 1) % 20_000}` },
        },
        template.messages[2],
      ],
    }));

    const { problems } = await readRelease({
      tasks: { file: 't', lines: [] },
      inputs: { file: 'i', lines: toJsonl(chain).split('\n') },
      answers: null,
    });

    expect(problems).toEqual([
      { file: 'i', line: 1, message: 'bindings form a cycle: "n0 → n1 → n2 → n3 → n4 → … → n0"' },
    ]);
  });
});

describe('pairs', () => {
  it('needs two members', async () => {
    const problems = await problemsAfter((rows) => rows.tasks.pop());

    expect(problems).toEqual([
      'tasks.jsonl:7 pair "root-001::task::long": 1 tasks; a pair is one reference and one conflict task',
    ]);
  });

  it('needs a reference and a conflict of one side', async () => {
    const problems = await problemsAfter((rows) => {
      taskAt(rows, 'root-001-short-rebind').pair_id = 'root-001::task::short';
      taskAt(rows, 'root-001-short-preserve').pair_id = 'root-001::evidence::short';
    });

    expect(problems).toContain(
      'tasks.jsonl:3 pair "root-001::evidence::short": operations retrieve and preserve; a pair is preserve and revise, or retrieve and rebind',
    );
    expect(problems).toContain(
      'tasks.jsonl:4 pair "root-001::task::short": operations rebind and revise; a pair is preserve and revise, or retrieve and rebind',
    );
  });

  it('shares horizon, source root and controls', async () => {
    const problems = await problemsAfter((rows) => {
      taskAt(rows, 'root-001-short-revise').source_root_id = 'root-009';
      taskAt(rows, 'root-001-short-revise').views.mcq.control_request_id = 'root-001::evidence::C::mcq';
      taskAt(rows, 'root-001-long-retrieve').pair_id = 'root-001::evidence::short';
      taskAt(rows, 'root-001-short-retrieve').pair_id = 'root-001::evidence::long';
    });

    const short = 'tasks.jsonl:4 pair "root-001::task::short":';
    expect(problems).toContain(`${short} source_root_id differs: "root-001" and "root-009"`);
    expect(problems).toContain(
      `${short} control requests of mcq differ: "root-001::task::short::C::mcq" and "root-001::evidence::C::mcq"`,
    );
    expect(problems).toContain(
      'tasks.jsonl:5 pair "root-001::evidence::short": history_horizon differs: "short" and "long"',
    );
  });

  it('stand on the side of their operation', async () => {
    const problems = await problemsAfter((rows) => {
      taskAt(rows, 'root-001-short-revise').history_side = 'evidence';
    });

    expect(problems).toEqual(['tasks.jsonl:4 history_side "evidence": operation revise belongs to "task"']);
  });
});

describe('messages', () => {
  const history = 'root-001::evidence::short::rebind::mcq';
  const control = 'root-001::evidence::C::mcq';
  const cases: [string, string, (row: Loose) => void, string][] = [
    [
      'a turn too few with media',
      history,
      (row) => row.messages[0].content.splice(0, 2),
      '1 user turns with media; horizon short has 2',
    ],
    [
      'a control with history',
      control,
      (row) => row.messages.push(row.messages[0]),
      'a C request is one user message, not 2 messages',
    ],
    [
      'two user messages in a row',
      history,
      (row) => row.messages.splice(1, 1),
      'messages[1]: user and assistant must alternate, the user first',
    ],
    [
      'an assistant at the end',
      'root-001::evidence::short::N0',
      (row) =>
        row.messages.push({
          role: 'assistant',
          content_binding: { kind: 'REQUEST_RAW', request_id: 'root-001::evidence::long::N0' },
        }),
      'messages must end with a user message',
    ],
    [
      'a history without horizon',
      history,
      (row) => (row.horizon = 'shared'),
      'horizon "shared": an H0 request is short or long',
    ],
  ];
  it.each(cases)('finds %s', async (_, id, change, message) => {
    let line = 0;

    const problems = await problemsAfter((rows) => {
      line = lineOf(rows.inputs, id);
      change(rows.inputs[line - 1]);
    });

    expect(problems).toContain(`inputs.jsonl:${line} request "${id}": ${message}`);
  });
});

describe('answers', () => {
  const mcq = 'root-001::evidence::C::mcq';
  const openqa = 'root-001::evidence::C::openqa';
  const cases: [string, string, (row: Loose) => void, string][] = [
    [
      'a gold that is no letter',
      mcq,
      (row) => (row.gold = 'E'),
      'gold "E": must be one of the letters A, B, C, D',
    ],
    [
      'a lower-case letter',
      mcq,
      (row) => (row.gold = 'a'),
      'gold "a": must be one of the letters A, B, C, D',
    ],
    ['three options', mcq, (row) => row.choices.splice(0, 1), 'must be four options, not 3'],
    ['an empty gold', openqa, (row) => (row.gold = ' '), 'gold " ": is empty'],
    ['aliases without gold', openqa, (row) => (row.aliases = ['x']), 'aliases ["x"]: do not contain gold'],
    [
      'another condition',
      openqa,
      (row) => (row.condition = 'H0'),
      `answer to "${openqa}": condition H0, but`,
    ],
    [
      'another interface',
      mcq,
      (row) => Object.assign(row, { interface: 'openqa' }),
      `answer to "${mcq}": interface openqa, but the request has mcq`,
    ],
    [
      'an answer to an AUX request',
      openqa,
      (row) => (row.request_id = 'root-001::evidence::short::N0'),
      'answer to "root-001::evidence::short::N0": an AUX request has no answer',
    ],
    [
      'an answer to nothing',
      openqa,
      (row) => (row.request_id = 'z'),
      'answer to "z": no such request in inputs.jsonl',
    ],
  ];
  it.each(cases)('finds %s', async (_, id, change, message) => {
    let line = 0;

    const problems = await problemsAfter((rows) => {
      line = lineOf(rows.answers, id);
      change(rows.answers[line - 1]);
    });

    const onLine = problems.filter((problem) => problem.startsWith(`answers.jsonl:${line} `));
    expect(onLine.join('\n')).toContain(message);
  });

  it('finds a final request without one', async () => {
    const problems = await problemsAfter((rows) => rows.answers.shift());

    expect(problems).toEqual([`inputs.jsonl:1 request "${openqa}" has no answer in answers.jsonl`]);
  });
});

describe('selectTasks', () => {
  const { rows, taskIds } = buildRelease({ roots: 2 });
  const manifest = (value: unknown) => ({ file: 'm.json', text: JSON.stringify(value) });
  const select = (selection: Parameters<typeof selectTasks>[1]) => {
    const { tasks, problems } = selectTasks(rows.tasks, selection);
    return { ids: tasks.map((task) => task.task_id), problems: problems.map(({ message }) => message) };
  };

  it('takes all tasks in file order where nothing is asked', () => {
    expect(select({})).toEqual({ ids: taskIds, problems: [] });
  });

  it('follows the order of a manifest, whose other keys are free', () => {
    const ids = [taskIds[5]!, taskIds[0]!];

    const selected = select({ manifest: manifest({ task_ids: ids, coverage: 'two', base_tasks: 2 }) });

    expect(selected).toEqual({ ids, problems: [] });
  });

  it('limits after the modality filter', () => {
    const selected = select({ modalities: ['A'], limit: 3 });

    expect(selected.ids).toEqual(taskIds.filter((id) => id.startsWith('root-002')).slice(0, 3));
  });

  it.each([
    [
      { task_ids: ['gone', 'gone'] },
      ['task "gone" is not in the release', 'task "gone" is named more than once'],
    ],
    [{ task_ids: [taskIds[0], taskIds[0]] }, [`task "${taskIds[0]}" is named more than once`]],
    [{ task_ids: [] }, ['task_ids []: is empty; a manifest names at least one task']],
    [{ task_ids: 'x' }, ['task_ids "x": Invalid input: expected array, received string']],
    [{}, ['missing key "task_ids"']],
    [[], ['Invalid input: expected object, received array']],
  ])('refuses the manifest %j', (value, messages) => {
    expect(select({ manifest: manifest(value) }).problems).toEqual(messages);
  });

  it('refuses a manifest that is no JSON and a limit that is no number of tasks', () => {
    const broken = select({ manifest: { file: 'm.json', text: '{' } });
    const negative = select({ limit: -1 });

    expect(broken.problems[0]).toMatch(/^not valid JSON/);
    expect(negative.problems).toEqual(['-1 is not a whole number above 0']);
  });
});

describe('any input', () => {
  it('never makes the reader throw, however rows are mutated', async () => {
    const { rows } = buildRelease({ roots: 1 });
    const kinds = ['tasks', 'inputs', 'answers'] as const;
    const mutation = fc.record({
      kind: fc.constantFrom(...kinds),
      row: fc.nat(60),
      path: fc.array(fc.nat(12), { minLength: 1, maxLength: 6 }),
      value: fc.oneof(
        fc.jsonValue(),
        fc.constantFrom(
          'root-001::evidence::short::N0',
          'root-001::evidence::C::mcq',
          'C',
          'AUX',
          'mcq',
          'long',
        ),
      ),
      drop: fc.boolean(),
    });
    const mutate = (root: Loose, path: number[], value: unknown, drop: boolean) => {
      let target = root;
      for (const [depth, step] of path.entries()) {
        const keys = Object.keys(target);
        const key = keys[step % keys.length]!;
        const inner = target[key];
        if (
          depth === path.length - 1 ||
          typeof inner !== 'object' ||
          inner === null ||
          Object.keys(inner).length === 0
        ) {
          if (drop) delete target[key];
          else target[key] = value;
          return;
        }
        target = inner;
      }
    };

    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 8 }), async (mutations) => {
        const copy: Loose = structuredClone(rows);
        for (const { kind, row, path, value, drop } of mutations) {
          const target = copy[kind][row % copy[kind].length];
          if (Object.keys(target).length > 0) mutate(target, path, value, drop);
        }
        const release = await readRelease(
          releaseTexts({
            'data/tasks/tasks.jsonl': toJsonl(copy.tasks),
            'data/tasks/inputs.jsonl': toJsonl(copy.inputs),
            'data/tasks/answers.jsonl': toJsonl(copy.answers),
          }),
        );
        expect(release.problems.every((problem) => problem.message !== '')).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('never makes the reader throw, whatever the lines are, and reports each line that says something', async () => {
    const line = fc
      .oneof(fc.string({ unit: 'binary' }), fc.json())
      .filter((text) => text.trim() !== '' && !text.startsWith('\uFEFF'));

    await fc.assert(
      fc.asyncProperty(fc.array(line), async (lines) => {
        const text = (file: string) => ({ file, lines });

        const release = await readRelease({ tasks: text('t'), inputs: text('i'), answers: text('a') });

        expect([release.tasks, release.inputs.size, release.answers!.size]).toEqual([[], 0, 0]);
        const reported = release.problems.filter(({ file }) => file === 't').map((problem) => problem.line);
        expect([...new Set(reported)]).toEqual(lines.map((_, index) => index + 1));
      }),
      { numRuns: 300 },
    );
  });
});

describe.runIf(existsSync(released))('the real release (needs ../shared/reference/return-release)', () => {
  const files = () =>
    Object.fromEntries(
      ['tasks', 'inputs', 'answers'].map((name) => [
        `data/tasks/${name}.jsonl`,
        readFileSync(`${released}/data/tasks/${name}.jsonl`, 'utf8'),
      ]),
    );

  it('has no problems', async () => {
    const release = await readRelease(releaseTexts(files()));

    expect(release.problems).toEqual([]);
    expect([release.tasks.length, release.inputs.size, release.answers!.size]).toEqual([80, 490, 240]);
  });

  it.each([
    ['preview_manifest.json', 80],
    ['quickstart_manifest.json', 8],
    ['long_validation_manifest.json', 8],
    ['backend_validation_manifest.json', 8],
  ])('has a sound %s', async (name, count) => {
    const release = await readRelease(releaseTexts(files()));
    const text = readFileSync(`${released}/data/${name}`, 'utf8');

    const { tasks, problems } = selectTasks(release.tasks, { manifest: { file: name, text } });

    expect(problems).toEqual([]);
    expect(tasks).toHaveLength(count);
    expect(tasks.map((task) => task.task_id)).toEqual(JSON.parse(text).task_ids);
  });
});
