import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSweepFile } from '../../cli/read-sweep.ts';
import {
  buildReplies,
  expectedLadders,
  frozenFingerprint,
  personas,
  readDigests,
  scenarioFiles,
} from '../../examples/small-return/build/build-scenario.ts';
import { buildRelease, releaseFiles } from '../../examples/small-return/build/build-tasks.ts';
import { clips, evidenceRoots, taskRoots } from '../../examples/small-return/build/items.ts';
import { judgeReply } from '../../mock/judge.ts';
import { loadScenario, loadTable, tableKey } from '../../mock/scenario.ts';
import { readRelease } from '../../shared/benchmarks/return/read.ts';
import { scoreByRule } from '../../shared/benchmarks/return/score-reply.ts';

const example = path.join(import.meta.dirname, '../../examples/small-return');
const text = (...parts: string[]): string => readFileSync(path.join(example, ...parts), 'utf8');
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const readExample = () => {
  const file = (name: string) => ({ file: name, lines: text('release/data/tasks', name).split('\n') });
  return readRelease({
    tasks: file('tasks.jsonl'),
    inputs: file('inputs.jsonl'),
    answers: file('answers.jsonl'),
  });
};

describe('files of the example', () => {
  it('are what the build scripts write', () => {
    const built = {
      ...Object.fromEntries(
        Object.entries(releaseFiles()).map(([name, content]) => [`release/${name}`, content]),
      ),
      ...scenarioFiles(),
    };

    for (const [name, content] of Object.entries(built)) expect(text(name), name).toBe(content);
  });

  it('have media that match their digests, under 6 MB in all', () => {
    const digests = readDigests();
    const folder = path.join(example, 'release/data/media');
    const present = readdirSync(folder).map((name) => `data/media/${name}`);
    const sizes = present.map((name) => statSync(path.join(example, 'release', name)).size);

    expect([...digests.keys()].toSorted()).toEqual(present.toSorted());
    expect(present.toSorted()).toEqual(
      Object.keys(clips).flatMap((clip) => [`data/media/${clip}.mp4`, `data/media/${clip}.wav`]),
    );
    for (const [name, digest] of digests) {
      expect(sha256(readFileSync(path.join(example, 'release', name))), name).toBe(digest);
    }
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(6_000_000);
  });

  it('have 16 kHz mono sounds of 3.5 s', () => {
    for (const clip of Object.keys(clips)) {
      const wav = readFileSync(path.join(example, `release/data/media/${clip}.wav`));

      expect(wav.readUInt16LE(22), clip).toBe(1);
      expect(wav.readUInt32LE(24), clip).toBe(16_000);
      expect(wav.readUInt32LE(40), clip).toBe(3.5 * 16_000 * 2);
    }
  });
});

describe('release of the example', () => {
  it('is sound, with every cell filled in both interfaces', async () => {
    const { tasks, inputs, problems } = await readExample();
    const cells = new Map<string, number>();
    for (const task of tasks) {
      const cell = `${task.history_side} ${task.required_modality} ${task.history_horizon}`;
      cells.set(cell, (cells.get(cell) ?? 0) + 1);
    }

    expect(problems).toEqual([]);
    expect(tasks.length).toBe(32);
    // By hand: task side 4 × (2 C + 8) + 4 × (2 C + 20), evidence side 4 × (2 C + 1 + 4 native + 8).
    expect(inputs.size).toBe(188);
    expect(Object.fromEntries(cells)).toEqual({
      'task V short': 4,
      'task V long': 4,
      'task A short': 4,
      'task A long': 4,
      'evidence V short': 4,
      'evidence V long': 4,
      'evidence A short': 4,
      'evidence A long': 4,
    });
  });

  it('offers the answer of the misleading clip among the options', () => {
    for (const root of [...taskRoots, ...evidenceRoots]) {
      expect(new Set(root.options).size, root.id).toBe(4);
      expect(root.options, root.id).toContain(root.gold.text);
      expect(root.options, root.id).toContain(root.other.text);
      expect(root.gold.text, root.id).not.toBe(root.other.text);
    }
  });

  it('has pairs that differ in one clip only', () => {
    const { tasks, inputs } = buildRelease();
    const byId = new Map(inputs.map((row) => [row.request_id, row]));
    const userTurns = (requestId: string) =>
      byId.get(requestId)!.messages.flatMap((message) => (message.role === 'user' ? [message.content] : []));

    for (const reference of tasks.filter(({ operation }) => ['preserve', 'retrieve'].includes(operation))) {
      const conflict = tasks.find((task) => task.pair_id === reference.pair_id && task !== reference)!;
      for (const name of ['openqa', 'mcq'] as const) {
        const a = userTurns(reference.views[name].history_request_id);
        const b = userTurns(conflict.views[name].history_request_id);
        const changed = reference.history_side === 'task' ? 0 : a.length - 1;

        expect(a.map((turn) => turn.at(-1))).toEqual(b.map((turn) => turn.at(-1)));
        expect(a.filter((_, index) => index !== changed)).toEqual(b.filter((_, index) => index !== changed));
        expect(a[changed]).not.toEqual(b[changed]);
      }
    }
  });
});

describe('simulated models', () => {
  it('have a reply to every request that the mock will see', async () => {
    const { inputs } = await readExample();
    const scenario = loadScenario(path.join(example, 'scenario.json'));
    const { byFingerprint } = loadTable(path.join(example, 'replies.jsonl'));
    const digests = readDigests();

    expect(Object.keys(scenario.models)).toEqual([...personas, 'simulated-judge']);
    for (const persona of personas) {
      for (const row of inputs.values()) {
        expect(byFingerprint.has(tableKey(persona, frozenFingerprint(row, digests))), row.request_id).toBe(
          true,
        );
      }
    }
  });

  it('are scored right where they are meant to be right, by rule or by the simulated judge', () => {
    const answers = new Map(buildRelease().answers.map((row) => [row.request_id, row]));
    const reviewed = new Set<string>();

    for (const { persona, requestId, text: raw, right } of buildReplies()) {
      const row = answers.get(requestId);
      if (row === undefined) continue;
      let correct = scoreByRule({ ...row, raw }).ruleCorrect;
      if (!correct) {
        const item = { id: 'x', gold: row.gold, aliases: row.aliases, options: row.choices, candidate: raw };
        const asked = JSON.stringify({ items: [{ ...item, answer_type: row.interface }] });
        correct = JSON.parse(judgeReply(asked, null)).judgments[0].verdict === 'equivalent';
        if (correct) reviewed.add(persona);
      }

      expect(correct, `${persona} ${requestId}: ${raw}`).toBe(right);
    }
    expect(reviewed).toContain('persona-attentive');
  });

  it('give the ladders of the README', () => {
    const ladders = expectedLadders().map(
      ({ persona, interface: name, side, n, single, reference, conflict }) =>
        `${persona} ${name} ${side} ${n}: ${single} ${reference} ${conflict}`,
    );

    expect(ladders).toEqual([
      'persona-attentive openqa task 8: 7 8 7',
      'persona-attentive openqa evidence 8: 8 8 7',
      'persona-attentive mcq task 8: 7 8 7',
      'persona-attentive mcq evidence 8: 8 8 7',
      'persona-current-clip openqa task 8: 8 8 8',
      'persona-current-clip openqa evidence 8: 8 4 0',
      'persona-current-clip mcq task 8: 8 8 8',
      'persona-current-clip mcq evidence 8: 8 4 0',
      'persona-forgetful openqa task 8: 8 8 4',
      'persona-forgetful openqa evidence 8: 8 8 4',
      'persona-forgetful mcq task 8: 8 4 0',
      'persona-forgetful mcq evidence 8: 8 8 4',
    ]);
  });
});

describe('sweep file of the example', () => {
  it('is valid once the address of the mock is known', async () => {
    process.env.MOCK_BASE_URL = 'http://127.0.0.1:9/v1';
    try {
      const sweep = await readSweepFile(path.join(example, 'sweep.yaml'));

      expect(sweep.models.map((lane) => lane.model)).toEqual([...personas]);
      expect(sweep.judge?.model).toBe('simulated-judge');
    } finally {
      delete process.env.MOCK_BASE_URL;
    }
  });
});
