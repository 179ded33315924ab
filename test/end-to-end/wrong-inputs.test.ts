import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type CommandResult, main, startCommand, turnsweep } from '../support/command-line.ts';
import { folderFingerprint } from '../support/folder-fingerprint.ts';
import { type KeyedProvider, startKeyedProvider } from '../support/keyed-provider.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { resultFiles } from '../support/result-files.ts';

const rightKey = 'sk-right-0123456789abcdef';
const wrongKey = 'sk-wrong-0123456789abcdef';
const isRoot = process.getuid?.() === 0;
const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};
const nobodyCanRun = spawnSync(process.execPath, [main, '--help'], nobody).status === 0;
if (!nobodyCanRun)
  console.warn('another user cannot read this checkout: folders without permission are not tried');

/** A small disk to fill; null where this user may not mount one. */
const mountSmallDisk = (folder: string): { unmount(): void } | null => {
  mkdirSync(folder);
  const mount = ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder];
  if (!isRoot || spawnSync('mount', mount).status !== 0) return null;
  return { unmount: () => void spawnSync('umount', [folder]) };
};

let scratch = '';
let provider: KeyedProvider;
/** A complete run of `goodSweep` with everything beside it, to copy. */
let finished = '';

const goodSweep = (extra: object = {}, lane: object = {}) => ({
  name: 'quick',
  benchmark: { kind: 'return', release: 'release' },
  interfaces: ['mcq'],
  models: [
    {
      id: 'lane-a',
      modalities: ['V', 'A'],
      provider: 'openai-compatible',
      model: 'm',
      baseUrl: provider.url,
      maxTokens: 64,
      ...lane,
    },
  ],
  ...extra,
});

const recordedSweep = (extra: object = {}) => ({
  name: 'replay',
  benchmark: { kind: 'return', release: 'release', verifyMedia: false },
  models: [{ id: 'a', modalities: ['V', 'A'], provider: 'recorded', model: 'm', recording: 'rec.jsonl' }],
  ...extra,
});

/** A folder of its own with a small release; texts are written as they are, other sweeps as YAML. */
const workplace = (sweep: unknown = goodSweep()): string => {
  const folder = mkdtempSync(path.join(scratch, 'case-'));
  cpSync(path.join(scratch, 'release'), path.join(folder, 'release'), { recursive: true });
  writeFileSync(path.join(folder, 'sweep.yaml'), typeof sweep === 'string' ? sweep : stringify(sweep));
  return folder;
};

const finishedWorkplace = (): string => {
  const folder = mkdtempSync(path.join(scratch, 'case-'));
  cpSync(finished, folder, { recursive: true });
  return folder;
};

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');
const controls = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Runs a command that must fail with exactly these lines, `error: ` left out, and change nothing. */
const expectRefusal = async (
  folder: string,
  args: readonly string[],
  lines: readonly (string | RegExp)[],
  env: Record<string, string> = {},
): Promise<void> => {
  const before = folderFingerprint(folder);

  const { code, stdout, stderr } = await turnsweep(args, { cwd: folder, env });

  const expected = lines.map((line) =>
    typeof line === 'string' ? `error: ${line}` : expect.stringMatching(new RegExp(`^error: ${line.source}`)),
  );
  expect(linesOf(stderr)).toEqual(expected);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).not.toMatch(controls);
  expect(folderFingerprint(folder)).toEqual(before);
};

const inRelease = (folder: string, file: string): string => path.join(folder, 'release', file);
const tasks = 'data/tasks/tasks.jsonl';
const inputs = 'data/tasks/inputs.jsonl';
const edit = (file: string, change: (lines: string[]) => string[]): void =>
  writeFileSync(file, change(readFileSync(file, 'utf8').split('\n')).join('\n'));
const replaceInLine = (file: string, line: number, from: string, to: string): void =>
  edit(file, (lines) => lines.map((text, index) => (index === line - 1 ? text.replace(from, to) : text)));

const summaryOf = (out: string) =>
  (
    JSON.parse(readFileSync(path.join(out, 'report/summary.json'), 'utf8')) as {
      counts: Record<string, number>;
    }
  ).counts;

beforeAll(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  chmodSync(scratch, 0o755);
  const { rows } = releaseOnDisk(path.join(scratch, 'release'), { roots: 1, seed: 1 });
  // The right letter needs no judge.
  const reply = rows.answers.find((row) => row.interface === 'mcq')!.gold;
  provider = await startKeyedProvider({ key: rightKey, reply });
  finished = workplace();
  const ran = await turnsweep(['run', 'sweep.yaml', '--out', 'out'], { cwd: finished });
  if (ran.code !== 0) throw new Error(`the good sweep does not run: ${ran.stdout}${ran.stderr}`);
});

afterAll(async () => {
  await provider.close();
  rmSync(scratch, { recursive: true, force: true });
});

describe.concurrent('a sweep file with faults of content', () => {
  it('has every fault told with its line', async () => {
    const folder = workplace(`name: a/b
benchmark:
  kind: voxmm
  release: release
  verifyMedia: false
  manifst: x
interfaces: [openqa]
budgett: { usd: 1 }
models:
  - id: a/b
    modalities: []
    provider: gemini
    model: m
    maxToken: 3
    settings: { temprature: 1, fps: fast }
  - id: lane
    modalities: [V, V]
    provider: opneai
    model: "m\\e[31m"
    maxTokens: '64'
    apiKeyEnv: sk-not-a-name
  - id: LANE
    provider: recorded
    model: m
  - id: third
    modalities: [A]
    provider: vllm
    model: m
    baseUrl: http://user:secret@host/v1
    maxTokens: 64
    retryMaxTokens: 64
judge:
  provider: sglang
  model: j
  reasoningEfort: low
budget: { usd: 5 }
seed: 1.5
`);

    await expectRefusal(
      folder,
      ['validate', 'sweep.yaml'],
      [
        'sweep.yaml:1: name: must be usable as the name of a folder: no slashes, no control characters, not "a/b"',
        'sweep.yaml:3: benchmark.kind: unknown benchmark "voxmm"; use one of return, voxmem (did you mean "voxmem"?)',
        'sweep.yaml:5: benchmark.verifyMedia: false is for models that nobody calls, and calls are made for models[0], models[3]; set it to true',
        'sweep.yaml:6: benchmark: unknown key "manifst" (did you mean "manifest"?)',
        'sweep.yaml:8: unknown key "budgett" (did you mean "budget"?)',
        /sweep\.yaml:10: models\[0\]\.id: must consist of letters, digits, .*, not "a\/b"$/,
        'sweep.yaml:11: models[0].modalities: must not be empty',
        'sweep.yaml:13: models[0]: a budget is set but the price of this model is unknown; add "price"',
        'sweep.yaml:14: models[0]: unknown key "maxToken" (did you mean "maxTokens"?)',
        'sweep.yaml:15: models[0].settings.fps: must be a number, not "fast"',
        'sweep.yaml:15: models[0].settings: unknown key "temprature" (did you mean "temperature"?)',
        'sweep.yaml:17: models[1].modalities[1]: "V" is named twice',
        /sweep\.yaml:18: models\[1\]\.provider: unknown provider "opneai"; use one of openai, .* \(did you mean "openai"\?\)$/,
        /sweep\.yaml:19: models\[1\]\.model: must not hold control or invisible characters/,
        'sweep.yaml:20: models[1].maxTokens: must be a number, not "64"',
        'sweep.yaml:21: models[1].apiKeyEnv: must be the name of an environment variable, not the key itself',
        'sweep.yaml:22: models[2]: missing key "modalities"',
        'sweep.yaml:22: models[2].id: "LANE" is already the id of models[1]; every lane needs its own',
        'sweep.yaml:23: models[2]: provider "recorded" needs "recording"',
        'sweep.yaml:28: models[3]: a budget is set but the price of this model is unknown; add "price"',
        'sweep.yaml:29: models[3].baseUrl: must not carry a user name or password; name the variable of the key in "apiKeyEnv"',
        'sweep.yaml:31: models[3].retryMaxTokens: 64 must be above maxTokens (64), or be left out',
        'sweep.yaml:33: judge: provider "sglang" needs "baseUrl"',
        'sweep.yaml:34: judge: a budget is set but the price of the judge is unknown; add "price"',
        'sweep.yaml:35: judge: unknown key "reasoningEfort" (did you mean "reasoningEffort"?)',
        'sweep.yaml:37: seed: must be a whole number, not 1.5',
      ],
    );
  });

  it('with an unknown interface and unverified media of a calling lane is refused for both', async () => {
    const folder = workplace(
      goodSweep({
        benchmark: { kind: 'return', release: 'release', verifyMedia: false },
        interfaces: ['mcq', 'opneqa', 'mcq'],
      }),
    );

    await expectRefusal(
      folder,
      ['run', 'sweep.yaml', '--out', 'out'],
      [
        'sweep.yaml:5: benchmark.verifyMedia: false is for models that nobody calls, and calls are made for models[0]; set it to true',
        'sweep.yaml:8: interfaces[1]: unknown interface "opneqa"; benchmark "return" has openqa, mcq',
        'sweep.yaml:9: interfaces[2]: "mcq" is named twice',
      ],
    );
  });

  it('names every variable that is not set, and no value', async () => {
    const folder = workplace(`name: x
benchmark: { kind: return, release: "\${TS_NO_RELEASE}" }
models:
  - id: a
    modalities: [V]
    provider: openai-compatible
    model: m
    baseUrl: "\${TS_NO_URL}"
    apiKeyEnv: "\${TS_SOME_KEY}"
`);

    await expectRefusal(
      folder,
      ['validate', 'sweep.yaml'],
      [
        'sweep.yaml:2: benchmark.release: environment variable TS_NO_RELEASE is not set; set it or put it into .env',
        'sweep.yaml:8: models[0].baseUrl: environment variable TS_NO_URL is not set; set it or put it into .env',
        'sweep.yaml:9: models[0].apiKeyEnv: write the name of the variable alone: TS_SOME_KEY',
      ],
      { TS_SOME_KEY: wrongKey },
    );
  });
});

const bomb = ['a: &a [x, x, x, x, x, x, x, x, x, x]']
  .concat([...'bcdefghi'].map((name, at) => `${name}: &${name} [${Array(10).fill(`*${'abcdefgh'[at]}`)}]`))
  .join('\n');

describe.concurrent('a sweep file that cannot be read', () => {
  it.each([
    ['an open bracket', 'name: [x\n', /sweep\.yaml:\d: not valid YAML: /],
    ['a nested mapping on one line', 'name: x: y\n', /sweep\.yaml:1: not valid YAML: /],
    ['an unknown tag', "name: !!js/function 'x'\n", /sweep\.yaml:1: not valid YAML: Unresolved tag/],
    [
      'a key twice',
      'name: x\nseed: 1\nname: y\n',
      'sweep.yaml:3: key "name" stands here a second time; remove one of them',
    ],
    [
      'tabs',
      'name: x\nbenchmark:\n\tkind: return\n',
      'sweep.yaml:3: a tab as indentation; YAML takes spaces only',
    ],
    [
      'aliases that explode',
      bomb,
      'sweep.yaml: YAML aliases refer to each other too often or in a circle; write the values out',
    ],
    [
      'an alias in a circle',
      'name: &x [*x]\n',
      'sweep.yaml: YAML aliases refer to each other too often or in a circle; write the values out',
    ],
    ['an alias of nothing', 'name: *x\n', 'sweep.yaml: alias *x has no anchor &x before it'],
    [
      'two documents',
      'name: x\n---\nname: y\n',
      'sweep.yaml:2: a second document begins here; a sweep file is one',
    ],
    [
      'nothing in it',
      '# nothing\n',
      'sweep.yaml: the file is empty; a sweep needs at least name, benchmark and models',
    ],
    ['a list', '- name: x\n', 'sweep.yaml:1: the file must be a mapping of keys to values, not a list'],
    [
      'no text',
      'name: \0',
      'the sweep file is not UTF-8 text (sweep.yaml); give a YAML or JSON file, saved as UTF-8',
    ],
  ])('for %s', async (_, text, line) => {
    await expectRefusal(workplace(text), ['validate', 'sweep.yaml'], [line]);
  });

  it.each([
    ['release', 'a folder, not a sweep file (release); give the path of a YAML or JSON sweep file'],
    ['nowhere.yaml', 'no such sweep file (nowhere.yaml); give the path of a YAML or JSON sweep file'],
  ])('as %s', async (file, line) => {
    await expectRefusal(workplace(), ['validate', file], [line]);
  });

  it('works with a byte order mark and the line ends of Windows', async () => {
    const folder = workplace(`\ufeff${stringify(goodSweep()).replaceAll('\n', '\r\n')}`);
    for (const file of [tasks, inputs, 'data/tasks/answers.jsonl', 'data/media_sha256.txt']) {
      edit(inRelease(folder, file), (lines) =>
        lines.map((line, at) => (at < lines.length - 1 ? `${line}\r` : line)),
      );
    }

    const { code, stdout, stderr } = await turnsweep(['validate', 'sweep.yaml'], { cwd: folder });

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe('sweep.yaml: sound (8 tasks, 1 lanes, 10 clips verified)\n');
  });
});

const manifestSweep = (file: string) =>
  goodSweep({ benchmark: { kind: 'return', release: 'release', manifest: file } });
const cacheSweep = () =>
  recordedSweep({
    judge: { provider: 'openai-compatible', model: 'j', baseUrl: provider.url, reviewCache: ['cache.jsonl'] },
  });
const missing = 'complete the release, or correct the path in the sweep file';
const insideOnly = 'put a copy of the file into the release and give its path inside it';
const wav = 'data/media/root-001-target.wav';

describe.concurrent('a release with faults', () => {
  const cases: [string, () => unknown, (folder: string) => void, (string | RegExp)[]][] = [
    [
      'no directory',
      goodSweep,
      (folder) => rmSync(path.join(folder, 'release'), { recursive: true }),
      [
        /no such release directory \(.*release\); set benchmark\.release to the directory that holds data\/tasks$/,
      ],
    ],
    [
      'files missing and a folder for a file',
      goodSweep,
      (folder) => {
        rmSync(inRelease(folder, tasks));
        rmSync(inRelease(folder, inputs));
        mkdirSync(inRelease(folder, inputs));
      },
      [
        `release/${tasks}: no such file in the release; ${missing}`,
        `release/${inputs}: not a file; put the file there that belongs to the release`,
      ],
    ],
    [
      'a line that is no JSON and an unknown key',
      goodSweep,
      (folder) => {
        replaceInLine(inRelease(folder, tasks), 2, '"family"', '"familly"');
        edit(inRelease(folder, inputs), (lines) => [...lines.slice(0, -1), '{"request_id": "x', '']);
      },
      [
        `release/${tasks}:2: missing key "family"`,
        `release/${tasks}:2: unknown key "familly"; did you mean "family"?`,
        /release\/data\/tasks\/inputs\.jsonl:\d+: not valid JSON: /,
      ],
    ],
    [
      'media paths that lead out',
      goodSweep,
      (folder) => {
        replaceInLine(inRelease(folder, inputs), 1, wav, '../x.wav');
        replaceInLine(inRelease(folder, inputs), 2, wav, '/etc/passwd');
      },
      [
        `release/${inputs}:1: messages[0].content[0].audio "../x.wav": is a path with ".."; media paths are relative to the release`,
        `release/${inputs}:2: messages[0].content[0].audio "/etc/passwd": is an absolute path; media paths are relative to the release`,
      ],
    ],
    [
      'media missing, altered, not listed and linked to elsewhere',
      goodSweep,
      (folder) => {
        const clip = (name: string) => inRelease(folder, `data/media/root-001-${name}`);
        rmSync(clip('past-0.mp4'));
        appendFileSync(clip('past-1.mp4'), 'x');
        edit(inRelease(folder, 'data/media_sha256.txt'), (lines) =>
          lines.filter((line) => !line.includes('past-2.wav')),
        );
        rmSync(clip('target.wav'));
        symlinkSync('/etc/passwd', clip('target.wav'));
      },
      [
        `release/data/media/root-001-past-0.mp4: no such file in the release (media); ${missing}`,
        /release\/data\/media\/root-001-past-1\.mp4: media altered: its sha256 begins [0-9a-f]{12}, the list says [0-9a-f]{12}; put back the original$/,
        "release/data/media/root-001-past-2.wav: media not listed in release/data/media_sha256.txt; add its digest, or put back the release's own list",
        `release/${wav}: a link leads out of the release (media); ${insideOnly}`,
      ],
    ],
    [
      'no list of media',
      goodSweep,
      (folder) => rmSync(inRelease(folder, 'data/media_sha256.txt')),
      [`release/data/media_sha256.txt: no such file in the release; ${missing}`],
    ],
    [
      'a link out of it for a table',
      goodSweep,
      (folder) => {
        cpSync(inRelease(folder, tasks), path.join(folder, 'elsewhere.jsonl'));
        rmSync(inRelease(folder, tasks));
        symlinkSync('../../../elsewhere.jsonl', inRelease(folder, tasks));
      },
      [`release/${tasks}: a link leads out of the release; ${insideOnly}`],
    ],
    [
      'a manifest that is missing',
      () => manifestSweep('m.json'),
      () => {},
      [`release/m.json: no such file in the release (benchmark.manifest); ${missing}`],
    ],
    [
      'a manifest outside',
      () => manifestSweep('../sweep.yaml'),
      () => {},
      [`../sweep.yaml: a path must stay inside the release (benchmark.manifest); ${insideOnly}`],
    ],
    [
      'a manifest that is no JSON',
      () => manifestSweep('m.json'),
      (folder) => writeFileSync(inRelease(folder, 'm.json'), '{task_ids'),
      [/release\/m\.json: not valid JSON: /],
    ],
    [
      'a manifest with unknown and repeated tasks',
      () => manifestSweep('m.json'),
      (folder) =>
        writeFileSync(
          inRelease(folder, 'm.json'),
          JSON.stringify({ task_ids: ['x', 'root-001-short-revise', 'root-001-short-revise'] }),
        ),
      [
        'release/m.json: task "x" is not in the release',
        'release/m.json: task "root-001-short-revise" is named more than once',
      ],
    ],
    [
      'an empty manifest',
      () => manifestSweep('m.json'),
      (folder) => writeFileSync(inRelease(folder, 'm.json'), '{"task_ids": []}'),
      ['release/m.json: task_ids []: is empty; a manifest names at least one task'],
    ],
    [
      'no tasks',
      goodSweep,
      (folder) => {
        for (const file of [tasks, inputs, 'data/tasks/answers.jsonl']) truncateSync(inRelease(folder, file));
      },
      [`release/${tasks}: holds no task; there is nothing to evaluate`],
    ],
    [
      'a line that is too long',
      goodSweep,
      (folder) => appendFileSync(inRelease(folder, tasks), 'x'.repeat(9_000_000)),
      [`release/${tasks}:9: line has 9000000 characters; the limit is 8388608`],
    ],
    [
      'bytes that are no text',
      goodSweep,
      (folder) => {
        edit(inRelease(folder, tasks), (lines) => lines.slice(0, 3));
        appendFileSync(inRelease(folder, tasks), Buffer.from([0x0a, 0xff, 0xfe, 0x00, 0x80, 0x0a]));
      },
      [`line 4 is not UTF-8 text (release/${tasks}); save the file as UTF-8, or put back the original`],
    ],
    [
      'a byte order mark',
      goodSweep,
      (folder) => replaceInLine(inRelease(folder, tasks), 1, '{', '\ufeff{'),
      [`release/${tasks}:1: starts with a byte order mark; save it without`],
    ],
    [
      'no recording',
      recordedSweep,
      () => {},
      [`release/rec.jsonl: no such file in the release (models[0].recording); ${missing}`],
    ],
    [
      'a recording outside',
      () => recordedSweep({ models: [{ ...recordedSweep().models[0], recording: '/etc/passwd' }] }),
      () => {},
      [`/etc/passwd: a path must stay inside the release (models[0].recording); ${insideOnly}`],
    ],
    [
      'a recording with bad lines and two replies to one request',
      recordedSweep,
      (folder) => {
        const row = (text: string) => JSON.stringify({ request_id: 'r', status: 'ok', raw_text: text });
        writeFileSync(
          inRelease(folder, 'rec.jsonl'),
          [row('x'), row('x'), '{"request_id', row('y')].join('\n'),
        );
      },
      [
        'release/rec.jsonl:3: recording has a line that is not JSON',
        'release/rec.jsonl:4: recording has two different replies to r',
      ],
    ],
    [
      'a review cache with bad lines',
      cacheSweep,
      (folder) => {
        writeFileSync(inRelease(folder, 'rec.jsonl'), '');
        writeFileSync(inRelease(folder, 'cache.jsonl'), '\nxx\n{"identity": "[]"}\n');
      },
      [
        /release\/cache\.jsonl:2: not valid JSON: /,
        /release\/cache\.jsonl:3: identity "\[\]": is not a review identity/,
        'release/cache.jsonl:3: missing key "judgment"',
      ],
    ],
  ];

  it.each(cases)('%s', async (_, sweep, damage, lines) => {
    const folder = workplace(sweep());
    damage(folder);

    await expectRefusal(folder, ['run', 'sweep.yaml', '--out', 'out'], lines);
  });
});

describe.concurrent('an output folder', () => {
  it('of another contract is left as it is, and its run goes on afterwards', async () => {
    const folder = finishedWorkplace();
    const sweep = parse(readFileSync(path.join(folder, 'sweep.yaml'), 'utf8'));
    sweep.models[0].maxTokens = 65;
    writeFileSync(path.join(folder, 'other.yaml'), stringify(sweep));
    const out = path.join(folder, 'out');
    const remedy = `(${out}); choose another folder with --out, or restore the sweep`;

    await expectRefusal(
      folder,
      ['run', 'other.yaml', '--out', 'out'],
      [
        `the folder holds a run of another contract: lanes[0].maxTokens is 65 now and 64 in that run ${remedy}`,
      ],
    );
    await expectRefusal(
      folder,
      ['run', 'sweep.yaml', '--out', 'out', '--limit', '3'],
      [
        `the folder holds a run of another contract: benchmark.taskCount is 3 now and 8 in that run ${remedy}`,
      ],
    );
    const before = resultFiles(out);
    const resumed = await turnsweep(['run', 'sweep.yaml', '--out', 'out', '--resume'], { cwd: folder });

    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(resumed.stdout).toContain('  0 calls');
    expect(resultFiles(out)).toEqual(before);
  });

  it('with other files in it, or that is a file, is refused', async () => {
    const folder = workplace();
    mkdirSync(path.join(folder, 'full'));
    writeFileSync(path.join(folder, 'full/notes.txt'), 'mine');

    await expectRefusal(
      folder,
      ['run', 'sweep.yaml', '--out', 'full'],
      [`the output folder holds other files (${folder}/full); choose an empty or new folder with --out`],
    );
    await expectRefusal(
      folder,
      ['run', 'sweep.yaml', '--out', 'sweep.yaml'],
      [
        `cannot make the output folder: EEXIST (${folder}/sweep.yaml); a file stands where a folder is needed: remove or rename it`,
      ],
    );
  });

  it('with a broken contract is refused by every command', async () => {
    const folder = finishedWorkplace();
    writeFileSync(path.join(folder, 'out/contract.json'), '{"hash": "x"');
    const broken = `the run's contract is not JSON (${folder}/out/contract.json); restore the file, or choose another folder`;

    await expectRefusal(folder, ['run', 'sweep.yaml', '--out', 'out'], [broken]);
    await expectRefusal(folder, ['report', 'out'], [broken]);
    writeFileSync(path.join(folder, 'out/contract.json'), '{}');
    await expectRefusal(
      folder,
      ['status', 'out'],
      [/the run's contract is damaged or of another version of turnsweep/],
    );
  });

  it('without a run is refused by every command that needs one', async () => {
    const folder = workplace();
    mkdirSync(path.join(folder, 'empty'));
    const none = `there is no run in this folder (${folder}/empty); give the output folder of \`turnsweep run\``;
    const commands = [['status'], ['score'], ['judge'], ['report'], ['export', '--to', 'csv']];

    for (const command of commands) await expectRefusal(folder, [...command, 'empty'], [none]);
    await expectRefusal(
      folder,
      ['run', 'sweep.yaml', '--out', 'nowhere', '--resume'],
      [
        `there is no run to resume (${folder}/nowhere); give its folder with --out, or leave --resume out to start one`,
      ],
    );
  });

  it('that is not scored yet is not exported', async () => {
    const folder = finishedWorkplace();
    const out = path.join(folder, 'out');
    for (const part of ['scores', 'report']) rmSync(path.join(out, part), { recursive: true });

    await expectRefusal(
      folder,
      ['export', 'out', '--to', 'csv'],
      [`this run has no report yet (${out}); run \`turnsweep report\` first`],
    );
    await expectRefusal(
      folder,
      ['export', 'out', '--to', 'return-release'],
      [`this run is not scored yet (${out}); run \`turnsweep score\` first`],
    );
  });

  it.runIf(nobodyCanRun)('that may not be written to is refused', async () => {
    const folder = workplace();
    mkdirSync(path.join(folder, 'mine'));
    for (const name of ['', 'mine']) chmodSync(path.join(folder, name), 0o555);

    const before = folderFingerprint(folder);
    const inside = await startCommand(['run', 'sweep.yaml', '--out', 'new'], { cwd: folder, ...nobody })
      .ended;
    const present = await startCommand(['run', 'sweep.yaml', '--out', 'mine'], { cwd: folder, ...nobody })
      .ended;

    expect(inside).toMatchObject({
      code: 1,
      stderr: `error: cannot make the output folder: EACCES (${folder}/new); check permissions of ${folder}/new\n`,
    });
    expect(present).toMatchObject({ code: 1 });
    expect(linesOf(present.stderr)).toEqual([
      expect.stringMatching(/^error: cannot lock the run folder: EACCES \(.*; check permissions of /),
    ]);
    expect(folderFingerprint(folder)).toEqual(before);
    chmodSync(folder, 0o755);
  });

  it('on a full disk says so, and the run ends as ever once there is room', async (context) => {
    const folder = finishedWorkplace();
    const disk = mountSmallDisk(path.join(folder, 'disk'));
    if (disk === null) context.skip('this user may not mount a small disk');
    context.onTestFinished(() => disk?.unmount());
    const filler = path.join(folder, 'disk/.filler');
    const available = 2 * 1024 * 1024;

    for (const roomKib of [60, 160]) {
      writeFileSync(filler, Buffer.alloc(available - roomKib * 1024));
      const failed = await turnsweep(['run', 'sweep.yaml', '--out', 'disk/out'], { cwd: folder });

      expect(failed.code).toBe(1);
      expect(linesOf(failed.stderr)).toEqual([
        expect.stringMatching(/^error: .*(ENOSPC|disk).*; free disk space/),
      ]);
      rmSync(filler);
    }
    const resumed = await turnsweep(['run', 'sweep.yaml', '--out', 'disk/out'], { cwd: folder });

    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(resultFiles(path.join(folder, 'disk/out'))).toEqual(resultFiles(path.join(folder, 'out')));
  });
});

describe('an output folder at work', () => {
  it('is refused to a second process, which the first does not notice', async () => {
    const folder = workplace();
    provider.gate.close();
    const first = startCommand(['run', 'sweep.yaml', '--out', 'out'], { cwd: folder });
    const started = provider.requests.get('m') ?? 0;
    await expect.poll(() => provider.requests.get('m') ?? 0, { timeout: 20_000 }).toBeGreaterThan(started);

    const second = await turnsweep(['run', 'sweep.yaml', '--out', 'out'], { cwd: folder });
    const scoring = await turnsweep(['score', 'out'], { cwd: folder });
    provider.gate.open();
    const ended = await first.ended;

    for (const refused of [second, scoring]) {
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(linesOf(refused.stderr)).toEqual([
        expect.stringMatching(
          `^error: process ${first.pid} on .* is at work in this folder \\(${folder}/out\\); wait for it or stop it`,
        ),
      ]);
    }
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });
});

describe.concurrent('a wrong command line', () => {
  const number = (option: string, given: string, most: number) =>
    `option '${option}' argument '${given}' is invalid. give a whole number from 1 to ${most}.`;

  it.each<[string, string[], string | RegExp]>([
    ['an unknown command', ['rnu', 'sweep.yaml'], "unknown command 'rnu' (Did you mean run?)"],
    [
      'an unknown option',
      ['run', 'sweep.yaml', '--ouy', 'x'],
      "unknown option '--ouy' (Did you mean --out?)",
    ],
    ['no sweep file', ['run'], "missing required argument 'sweep'"],
    ['a limit of 0', ['plan', 'sweep.yaml', '--limit', '0'], number('--limit <n>', '0', 999_999_999)],
    [
      'a limit that is no number',
      ['plan', 'sweep.yaml', '--limit', 'x'],
      number('--limit <n>', 'x', 999_999_999),
    ],
    ['no calls at once', ['run', 'sweep.yaml', '-j', '0'], number('-j, --jobs <n>', '0', 10_000)],
    [
      'a home that is not set up',
      ['run', 'sweep.yaml', '--on', 'aws'],
      /cannot look at the deployment: .* \(turnsweep-sweep\); set AWS_REGION and run again/,
    ],
    ['a port that is none', ['mock', '--port', '70000'], number('--port <p>', '70000', 65_535)],
    ['no scenario', ['mock', '--scenario', 'nowhere.json'], 'scenario cannot be read (nowhere.json)'],
    [
      'a scenario with an unknown key',
      ['mock', '--scenario', 'sweep.yaml'],
      /scenario is not valid: .* \(sweep\.yaml/,
    ],
  ])('for %s', async (_, args, line) => {
    await expectRefusal(workplace(), args, [line]);
  });

  it('for a port in use names it', async ({ onTestFinished }) => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await expect.poll(() => server.listening).toBe(true);
    const { port } = server.address() as { port: number };

    await expectRefusal(
      workplace(),
      ['mock', '--port', String(port)],
      [`port is in use (127.0.0.1:${port}); stop its owner or choose another port`],
    );
  });
});

const holdsSecret = (folder: string, ...results: CommandResult[]): string[] => [
  ...results
    .flatMap(({ stdout, stderr }) => [stdout, stderr])
    .filter((text) => /sk-(right|wrong)/.test(text)),
  ...Object.keys(folderFingerprint(folder)).filter(
    (file) =>
      !file.endsWith('/') && readFileSync(path.join(folder, file), 'latin1').match(/sk-(right|wrong)/),
  ),
];

const closedPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await expect.poll(() => server.listening).toBe(true);
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
};

describe.concurrent('an endpoint that cannot be used', () => {
  const twoLanes = (second: object) => {
    const sweep = goodSweep();
    return { ...sweep, models: [sweep.models[0], { ...sweep.models[0], maxInFlight: 2, ...second }] };
  };

  it('for want of a key is told before any call', async () => {
    const sweep = twoLanes({ id: 'gated', model: 'gated-unset', apiKeyEnv: 'TS_UNSET_KEY' });
    const folder = workplace({ ...sweep, models: sweep.models.slice(1) });
    const run = ['run', 'sweep.yaml', '--out', 'out'];

    await expectRefusal(folder, run, [
      'sweep.yaml: models[0].apiKeyEnv: environment variable TS_UNSET_KEY is not set; set it or put it into .env',
    ]);
    await expectRefusal(
      folder,
      run,
      [
        /sweep\.yaml: models\[0\]\.apiKeyEnv: the value of TS_UNSET_KEY holds a space, a line end or another character/,
      ],
      { TS_UNSET_KEY: `${rightKey}\n` },
    );

    expect(provider.requests.get('gated-unset')).toBeUndefined();
  });

  it('for a wrong key stops its lane alone, shows no key, and goes on with the right one', async () => {
    const sweep = twoLanes({ id: 'gated', model: 'gated-wrong', apiKeyEnv: 'TS_KEY' });
    const folder = workplace(sweep);
    const out = path.join(folder, 'out');
    const run = ['run', 'sweep.yaml', '--out', 'out'];

    const refused = await turnsweep(run, { cwd: folder, env: { TS_KEY: wrongKey, NO_COLOR: '' } });
    const callsRefused = provider.requests.get('gated-wrong')!;
    const first = summaryOf(out);
    const mended = await turnsweep([...run, '--json'], { cwd: folder, env: { TS_KEY: rightKey } });

    expect(refused.code).toBe(2);
    expect(linesOf(refused.stderr)).toEqual([
      expect.stringMatching(
        /^lane gated \(http:\/\/127\.0\.0\.1:\d+\/v1\) stopped: http_401: HTTP 401: invalid_api_key: wrong key.*\[key\]; 8 views left open: mend the cause/,
      ),
    ]);
    expect(refused.stdout).toContain('8 of 16 views valid, 0 excluded, 8 left open');
    expect(refused.stdout + refused.stderr).not.toMatch(controls);
    expect(callsRefused).toBeLessThanOrEqual(2);
    expect(first).toMatchObject({ views: 16, valid: 8 });
    expect(mended).toMatchObject({ code: 0, stderr: '' });
    const events = linesOf(mended.stdout).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(events.at(-1)).toMatchObject({ event: 'result', exitCode: 0, valid: 16, excluded: 0, lanes: [] });
    expect(events.slice(0, -1).every(({ event }) => event === 'progress')).toBe(true);
    expect(holdsSecret(folder, refused, mended)).toEqual([]);
  });

  it('for a server that is down excludes its views alone, and asks again when told to', async () => {
    const port = await closedPort();
    const folder = workplace(
      twoLanes({
        id: 'down',
        model: 'down',
        baseUrl: `http://127.0.0.1:${port}/v1`,
        attempts: 2,
        backoff: { baseSeconds: 0, maxSeconds: 0 },
      }),
    );
    const run = ['run', 'sweep.yaml', '--out', 'out'];

    const ran = await turnsweep(run, { cwd: folder });
    const again = await turnsweep(run, { cwd: folder });

    const line = `lane down (http://127.0.0.1:${port}/v1): 8 views excluded (connect_failed×8); mend the cause and run with --retry-errors`;
    for (const result of [ran, again]) {
      expect(result.code).toBe(2);
      expect(linesOf(result.stderr)).toEqual([line]);
      expect(result.stdout).toContain('8 of 16 views valid, 8 excluded');
    }
    expect(again.stdout).toMatch(/^down {2}0\/8 {2}8 excluded {2}0 calls/m);
  });

  it('takes its key from .env, after the environment, and prints nothing that steers a terminal', async () => {
    const sweep = goodSweep({}, { model: 'gated-noisy', apiKeyEnv: 'TS_FILE_KEY' });
    const folder = workplace({
      ...sweep,
      models: [...sweep.models, { ...sweep.models[0], id: 'b', model: 'noisy' }],
    });
    writeFileSync(path.join(folder, '.env'), `TS_FILE_KEY=${rightKey}\n`);
    const run = ['run', 'sweep.yaml', '--out', 'out'];

    const overridden = await turnsweep(run, { cwd: folder, env: { TS_FILE_KEY: wrongKey, NO_COLOR: '' } });
    const read = await turnsweep(run, { cwd: folder, env: { NO_COLOR: '' } });
    rmSync(path.join(folder, '.env'));

    expect(overridden.stderr).toContain('lane lane-a ');
    expect(overridden.stderr).toContain('http_401');
    expect(read.stderr).not.toContain('http_401');
    expect(read.stdout).toMatch(/^lane-a {2}8\/8 /m);
    for (const result of [overridden, read]) expect(result.stdout + result.stderr).not.toMatch(controls);
    expect(holdsSecret(folder, overridden, read)).toEqual([]);
  });

  it('is not mistaken for a fault of the sweep when .env cannot be read', async () => {
    const folder = workplace();
    mkdirSync(path.join(folder, '.env'));

    await expectRefusal(
      folder,
      ['validate', 'sweep.yaml'],
      [
        `cannot read the environment file (${folder}/.env); make it a readable file with lines NAME=value, or remove it`,
      ],
    );
  });
});

describe('the folder that every case is a copy of', () => {
  it('has not changed', () => {
    expect(existsSync(path.join(finished, 'out/report/index.html'))).toBe(true);
    expect(summaryOf(path.join(finished, 'out'))).toMatchObject({ views: 8, valid: 8 });
  });
});
