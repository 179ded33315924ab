/**
 * The same number of single chat calls through turnsweep, promptfoo, Inspect AI and lm-evaluation-harness, against the same mock
 * (a process of its own, no latency), with a plain loop as floor. Tools take turns; the table has medians. Every call is
 * counted at the mock and every reply has to be scored: by exact match as right, by turnsweep as its benchmark does.
 *
 * npm run bench:peers -- [--roots 63] [--runs 3] [--concurrency 32] [--only promptfoo]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { releaseOnDisk } from '../../test/support/release-on-disk.ts';
import { type Measured, machineLine, measureCommand, median, rounded, wellEnded } from '../measure.ts';
import { startMock } from '../start-mock.ts';
import { type PeerName, pinned } from './install.ts';
import { installedPeers, peerNames, plainLoop, questionAt, type Tool } from './tools.ts';

const { values } = parseArgs({
  options: {
    roots: { type: 'string', default: '63' },
    runs: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '32' },
    only: { type: 'string', multiple: true },
  },
});
const concurrency = Number(values.concurrency);
const names = values.only ?? peerNames;
for (const name of names) {
  if (!peerNames.includes(name as PeerName))
    throw new Error(`--only ${name}: there are ${peerNames.join(', ')}`);
}
const answer = 'hammer';
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-peers-'));

/** Sweeps by their number of calls: turnsweep's work comes from a release. */
const sweeps = new Map<number, { release: string; views: number }>();

const sweepFile = (release: string, url: string, judgeUrl: string, file: string): void =>
  writeFileSync(
    file,
    stringify({
      name: 'peers',
      benchmark: { kind: 'return', release },
      models: [
        {
          id: 'lane',
          modalities: ['V', 'A'],
          provider: 'openai-compatible',
          model: 'm',
          baseUrl: url,
          maxInFlight: concurrency,
          settings: { stream: false },
        },
      ],
      judge: { provider: 'openai-compatible', model: 'judge', baseUrl: judgeUrl },
    }),
  );

const addSweep = async (roots: number): Promise<number> => {
  const release = path.join(folder, `release-${roots}`);
  releaseOnDisk(release, { roots, seed: 7 });
  const file = path.join(folder, `plan-${roots}.yaml`);
  const nowhere = 'http://127.0.0.1:9/v1';
  sweepFile(release, nowhere, nowhere, file);
  const { output } = wellEnded(await measureCommand(['plan', file, '--json']));
  const { distinctRequests, views } = (
    JSON.parse(output) as { lanes: [{ distinctRequests: number; views: number }] }
  ).lanes[0];
  sweeps.set(distinctRequests, { release, views });
  return distinctRequests;
};

let judgeCalls = 0;
const turnsweep: Tool = {
  name: 'turnsweep',
  run: async ({ url, questions, folder }) => {
    const { release, views } = sweeps.get(questions.length)!;
    const file = path.join(folder, 'sweep.yaml');
    // Of its own, so that the other mock counts what every tool has to do.
    const judge = await startMock({ models: { judge: { reply: { judge: 'aliases' } } } });
    try {
      sweepFile(release, url, judge.url, file);
      const measured = await measureCommand(['run', file, '--out', path.join(folder, 'out'), '--json']);
      const { valid } = JSON.parse(wellEnded(measured).lastLine) as { valid: number };
      judgeCalls = (await judge.counts()).requests;
      return { measured, answered: valid === views ? questions.length : 0 };
    } finally {
      judge.stop();
    }
  },
};

interface Run {
  measured: Measured;
  calls: number;
}

let runs = 0;
/** One run of a tool against a mock of its own; throws where a call is too many or too few, or a reply is not right. */
const runOnce = async (tool: Tool, calls: number): Promise<Run> => {
  const place = path.join(folder, `run-${++runs}`);
  mkdirSync(place);
  const mock = await startMock({ models: { '*': { reply: { text: answer } } } });
  try {
    const questions = Array.from({ length: calls }, (_, index) => questionAt(index));
    const work = { url: mock.url, questions, answer, concurrency, folder: place };
    const { measured, answered } = await tool.run(work).catch((cause: unknown) => {
      throw new Error(`${tool.name} failed`, { cause });
    });
    const { requests, replies } = await mock.counts();
    const found = `${tool.name}: ${requests} calls, ${replies} replies, ${answered} scored`;
    if (requests !== calls || replies !== calls || answered !== calls)
      throw new Error(`${found}, of ${calls} calls: ${measured.complaints}`);
    console.log(`${found}: ${measured.wallSeconds.toFixed(2)} s`);
    return { measured, calls: requests };
  } finally {
    mock.stop();
    rmSync(place, { recursive: true, force: true });
  }
};

const middle = (of: (measured: Measured) => number, all: readonly Run[]): number =>
  median(all.map(({ measured }) => of(measured)));
const cpu = ({ cpuSeconds }: Measured): number => cpuSeconds;
const wall = ({ wallSeconds }: Measured): number => wallSeconds;
const peak = ({ peakMebibytes }: Measured): number => peakMebibytes;

try {
  const peers = await installedPeers(names as readonly PeerName[]);
  const few = await addSweep(1);
  const many = await addSweep(Number(values.roots));
  const tools = [plainLoop, turnsweep, ...peers];
  console.log(`before: ${machineLine()}`);
  const results = new Map(tools.map((tool) => [tool, { few: [] as Run[], many: [] as Run[] }]));
  for (let run = 0; run < Number(values.runs); run += 1) {
    for (const tool of tools) {
      const result = results.get(tool)!;
      result.few.push(await runOnce(tool, few));
      result.many.push(await runOnce(tool, many));
    }
  }
  const floor = results.get(plainLoop)!.many;
  console.log(`\n${many} calls, ${concurrency} in flight, medians of ${values.runs} runs`);
  console.table(
    tools.map((tool) => {
      const { few: short, many: long } = results.get(tool)!;
      return {
        tool: tool.name,
        calls: median(long.map(({ calls }) => calls)),
        'wall s': rounded(middle(wall, long), 2),
        'own CPU ms per call': rounded((1000 * middle(cpu, long)) / many, 3),
        'per call beyond the start': rounded(
          (1000 * (middle(cpu, long) - middle(cpu, short))) / (many - few),
          3,
        ),
        'peak MiB': Math.round(middle(peak, long)),
        'wall ÷ loop': rounded(middle(wall, long) / middle(wall, floor), 1),
        'CPU ÷ loop': rounded(middle(cpu, long) / middle(cpu, floor), 1),
        'peak ÷ loop': rounded(middle(peak, long) / middle(peak, floor), 1),
      };
    }),
  );
  console.log(`Tools as of ${pinned.seen}. Own CPU: user and system time of the tool's process, its start included; "beyond the start" is
the difference to a run of ${few} calls, per further call. The mock shares the machine: where the tool is fast, wall time is the mock's.
The other tools score each reply against "${answer}" by exact match and write their results as they do by default, caches off.
turnsweep has no benchmark of single calls: its calls are the ${many} distinct requests of ${sweeps.get(many)!.views} views of a generated release
(one to five turns each, a tiny clip with every turn), and it scores, judges (${judgeCalls} calls of a judge come on top), aggregates and
reports with resampling. That is more than the others do. CPU per call can be compared, per view not: they have no views.`);
  console.log(`after: ${machineLine()}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
