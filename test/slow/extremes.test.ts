import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import type { InputRow } from '../../shared/benchmarks/return/release-format.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { toJsonl } from '../support/return-release-builder.ts';
import type { SentBody } from '../support/sweep-under-test.ts';

type Rows = ReturnType<typeof releaseOnDisk>['rows'];

const place = async (options: {
  models: ScenarioInput['models'];
  tasks: readonly string[];
  interfaces?: readonly string[];
  change?: (rows: Rows) => void;
}) => {
  const folder = temporaryFolder();
  const release = releaseOnDisk(path.join(folder, 'release'), { roots: 1, seed: 1 });
  options.change?.(release.rows);
  for (const name of ['tasks', 'inputs', 'answers'] as const) {
    writeFileSync(path.join(release.directory, `data/tasks/${name}.jsonl`), toJsonl(release.rows[name]));
  }
  writeFileSync(
    path.join(release.directory, 'manifest.json'),
    JSON.stringify({ task_ids: options.tasks.map((task) => `root-001-${task}`) }),
  );
  const bodies: SentBody[] = [];
  const mock = await startMockProvider({
    scenario: { models: { judge: { reply: { judge: 'aliases' } }, ...options.models } },
    onRequest: (body) => bodies.push(JSON.parse(body)),
  });
  onTestFinished(() => mock.close());
  const common = { provider: 'openai-compatible', baseUrl: mock.url };
  const sweep = sweepFile(folder, {
    name: 'extreme',
    benchmark: { kind: 'return', release: release.directory, manifest: 'manifest.json' },
    interfaces: options.interfaces ?? ['openqa', 'mcq'],
    models: Object.keys(options.models).map((id) => ({ ...common, id, model: id, modalities: ['V', 'A'] })),
    judge: { ...common, model: 'judge' },
  });
  const out = path.join(folder, 'out');
  return {
    folder,
    out,
    mock,
    bodies,
    run: () => turnsweep(['run', sweep, '--out', out]),
    /** Raw texts of a lane's replies, by request. */
    replies: async (lane: string): Promise<Map<string, string>> => {
      const target = path.join(folder, 'exported');
      const exported = await turnsweep(['export', out, '--to', 'return-release', '--out', target]);
      expect(exported).toMatchObject({ code: 0, stderr: '' });
      const rows = readFileSync(path.join(target, lane, 'predictions.jsonl'), 'utf8')
        .trim()
        .split('\n');
      return new Map(
        rows.map((row) => {
          const { request_id, raw_text } = JSON.parse(row) as { request_id: string; raw_text: string };
          return [request_id, raw_text];
        }),
      );
    },
  };
};

describe('a reply of two megabytes', () => {
  it('is recorded whole, goes into the history whole, and is scored and judged', async () => {
    const big = `It is 蓝. ${'A long story of the same bench. '.repeat(70_000)}The end.`;
    expect(Buffer.byteLength(big)).toBeGreaterThan(2 * 1024 * 1024);
    const sweep = await place({
      models: { talkative: { reply: { text: big } } },
      tasks: ['long-retrieve', 'long-rebind'],
      interfaces: ['openqa'],
    });

    const ended = await sweep.run();
    const again = await sweep.run();

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toContain('  0 calls');
    const replies = await sweep.replies('talkative');
    expect(replies.size).toBe(7);
    for (const text of replies.values()) expect(text === big).toBe(true);
    const histories = sweep.bodies
      .filter(({ model }) => model === 'talkative')
      .map(({ messages }) => messages.filter(({ role }) => role === 'assistant'));
    expect(histories.map((turns) => turns.length).sort()).toEqual([0, 0, 1, 2, 3, 4, 4]);
    for (const turn of histories.flat()) expect(turn.content === big).toBe(true);
  }, 120_000);
});

describe('a history of two hundred turns', () => {
  const turns = 200;
  const prefix = 'root-001::task::short::preserve::openqa';

  it('is generated turn by turn, each from the replies before it', async () => {
    const change = (rows: Rows) => {
      const first = rows.inputs.find((row) => row.request_id === `${prefix}::N0`)!;
      const final = rows.inputs.find((row) => row.request_id === `${prefix}::H0`)!;
      const lastTurn = final.messages.at(-1)!;
      const ids = [first.request_id];
      let messages: InputRow['messages'] = first.messages;
      const reply = (id: string): InputRow['messages'][number] => ({
        role: 'assistant',
        content_binding: { kind: 'REQUEST_RAW', request_id: id },
      });
      for (let turn = 2; turn < turns; turn += 1) {
        const id = `${prefix}::N${turn - 1}`;
        messages = [
          ...messages,
          reply(ids.at(-1)!),
          { role: 'user', content: [{ type: 'text', text: `And turn ${turn}?` }] },
        ];
        rows.inputs.push({ ...first, request_id: id, messages });
        ids.push(id);
      }
      final.messages = [...messages, reply(ids.at(-1)!), lastTurn];
      const task = rows.tasks.find((row) => row.task_id === 'root-001-short-preserve')!;
      task.views.openqa.native_dependency_request_ids = ids;
    };
    const sweep = await place({
      models: { patient: { reply: { echo: true } } },
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      change,
    });

    const ended = await sweep.run();

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    // The single turn beside them.
    expect(sweep.mock.stats().byModel.patient).toMatchObject({ requests: turns + 1, replies: turns + 1 });
    const longest = sweep.bodies.toSorted((a, b) => b.messages.length - a.messages.length)[0]!;
    expect(longest.messages).toHaveLength(2 * turns - 1);
    const said = longest.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
    expect(said.slice(1)).toEqual(Array.from({ length: turns - 2 }, (_, index) => `And turn ${index + 2}?`));
    expect((await sweep.replies('patient')).get(`${prefix}::N${turns - 2}`)).toBe(`And turn ${turns - 1}?`);
  }, 120_000);
});
