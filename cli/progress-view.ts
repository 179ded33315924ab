import type { LaneProgress, Progress, StageFault } from '../local/progress.ts';
import { jsonLine, paint, printable, warn } from './terminal.ts';

export type ProgressStyle = 'bars' | 'lines' | 'json' | 'none';

const barWidth = 24;
const redrawMs = 200;
const lineMs = 5_000;
const jsonMs = 1_000;
/** A fault of ours may meet every view: after so many warnings that differ only the number of faults goes on growing. */
const warningsShown = 20;

const retriesText = (retries: Record<string, number>): string =>
  Object.entries(retries)
    .map(([kind, times]) => `${kind}×${times}`)
    .join(' ');

const clockText = (seconds: number): string =>
  `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;

const laneText = (lane: LaneProgress, elapsedSeconds: number): string => {
  const rate = elapsedSeconds > 0 ? lane.calls / elapsedSeconds : 0;
  const facts = [
    `${lane.done}/${lane.total}`,
    ...(lane.excluded > 0 ? [`${lane.excluded} excluded`] : []),
    ...(lane.open > 0 ? [`${lane.open} left open`] : []),
    `${lane.calls} calls`,
    `${rate.toFixed(rate < 10 ? 1 : 0)}/s`,
    retriesText(lane.retries),
    ...(lane.rate !== null && lane.rate.episodes > 0 ? [`limit ${lane.rate.limit}`] : []),
    ...(lane.rate !== null && lane.rate.heldSeconds > 0
      ? [`held for ${clockText(lane.rate.heldSeconds)}`]
      : []),
    ...(lane.stopped === null ? [] : [`stopped: ${lane.stopped}`]),
  ];
  return facts.filter((fact) => fact !== '').join('  ');
};

const bar = (lane: LaneProgress): string => {
  const settled = lane.total === 0 ? 1 : (lane.done + lane.excluded) / lane.total;
  const filled = Math.round(settled * barWidth);
  return `${paint('green', '█'.repeat(filled))}${paint('dim', '░'.repeat(barWidth - filled))}`;
};

const messageOf = ({ error }: StageFault): string => (error instanceof Error ? error.message : String(error));

const warningText = (fault: StageFault): string => {
  const next =
    fault.againSeconds === null
      ? `given up after ${fault.tries} tries`
      : `tried again in ${fault.againSeconds} s`;
  return `${fault.stage}: ${messageOf(fault)} (a fault of turnsweep itself; --debug shows where); ${next}`;
};

/**
 * Shows a running sweep until `stop`: a bar a lane on a terminal, plain lines in a pipe, events for machines.
 * Exceptions of stages are told at once, and once each where they are for people.
 */
export const showProgress = (progress: Progress, style: ProgressStyle): { stop(): void } => {
  const started = performance.now();
  let drawn = 0;
  const draw = () => {
    const elapsedSeconds = (performance.now() - started) / 1000;
    const { lanes, judgeCalls, judgeRetries, faults } = progress.snapshot();
    if (style === 'json') {
      process.stdout.write(
        `${jsonLine({ event: 'progress', time: new Date().toISOString(), lanes, judgeCalls, judgeRetries, faults })}\n`,
      );
      return;
    }
    const others = [
      ...(judgeCalls > 0 ? [`judge  ${judgeCalls} calls  ${retriesText(judgeRetries)}`] : []),
      ...(faults > 0 ? [`${faults} deliveries failed`] : []),
    ];
    const width = Math.max(...lanes.map((lane) => lane.lane.length));
    if (style === 'lines') {
      for (const lane of lanes)
        process.stdout.write(`${printable(lane.lane)}  ${laneText(lane, elapsedSeconds)}\n`);
      for (const text of others) process.stdout.write(`${text}\n`);
      return;
    }
    const rows = [
      ...lanes.map(
        (lane) => `${printable(lane.lane).padEnd(width)} ${bar(lane)} ${laneText(lane, elapsedSeconds)}`,
      ),
      ...others,
    ];
    const columns = process.stdout.columns || 120;
    const back = drawn > 0 ? `\x1b[${drawn}A` : '';
    process.stdout.write(`${back}${rows.map((row) => `\x1b[2K${row.slice(0, columns * 2)}\n`).join('')}`);
    drawn = rows.length;
  };
  if (style === 'none') return { stop: () => {} };
  let isShown = true;
  const told = new Set<string>();
  const tell = (fault: StageFault) => {
    const { stage, tries, againSeconds } = fault;
    if (style === 'json') {
      const time = new Date().toISOString();
      process.stdout.write(
        `${jsonLine({ event: 'fault', time, stage, message: messageOf(fault), tries, againSeconds })}\n`,
      );
      return;
    }
    const kind = JSON.stringify([stage, messageOf(fault), againSeconds === null]);
    if (told.has(kind) || told.size === warningsShown) return;
    told.add(kind);
    // The bars give way to the line and come back below it.
    if (drawn > 0) process.stdout.write(`\x1b[${drawn}A\x1b[J`);
    drawn = 0;
    warn(`${paint('yellow', 'warning', process.stderr)}: ${printable(warningText(fault))}`);
    if (style === 'bars') draw();
  };
  progress.onFault((fault) => {
    if (isShown) tell(fault);
  });
  const timer = setInterval(draw, style === 'bars' ? redrawMs : style === 'json' ? jsonMs : lineMs);
  if (style === 'bars') draw();
  return {
    stop: () => {
      if (!isShown) return;
      isShown = false;
      clearInterval(timer);
      draw();
    },
  };
};
