import type { LaneProgress, Progress } from '../local/progress.ts';
import { jsonLine, paint, printable } from './terminal.ts';

export type ProgressStyle = 'bars' | 'lines' | 'json' | 'none';

const barWidth = 24;
const redrawMs = 200;
const lineMs = 5_000;
const jsonMs = 1_000;

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

/** Shows a running sweep until `stop`: a bar a lane on a terminal, plain lines in a pipe, events for machines. */
export const showProgress = (progress: Progress, style: ProgressStyle): { stop(): void } => {
  const started = performance.now();
  let drawn = 0;
  const draw = () => {
    const elapsedSeconds = (performance.now() - started) / 1000;
    const { lanes, judgeCalls, judgeRetries } = progress.snapshot();
    if (style === 'json') {
      process.stdout.write(
        `${jsonLine({ event: 'progress', time: new Date().toISOString(), lanes, judgeCalls, judgeRetries })}\n`,
      );
      return;
    }
    const judged = judgeCalls > 0 ? [`judge  ${judgeCalls} calls  ${retriesText(judgeRetries)}`] : [];
    const width = Math.max(...lanes.map((lane) => lane.lane.length));
    if (style === 'lines') {
      for (const lane of lanes)
        process.stdout.write(`${printable(lane.lane)}  ${laneText(lane, elapsedSeconds)}\n`);
      for (const text of judged) process.stdout.write(`${text}\n`);
      return;
    }
    const rows = [
      ...lanes.map(
        (lane) => `${printable(lane.lane).padEnd(width)} ${bar(lane)} ${laneText(lane, elapsedSeconds)}`,
      ),
      ...judged,
    ];
    const columns = process.stdout.columns || 120;
    const back = drawn > 0 ? `\x1b[${drawn}A` : '';
    process.stdout.write(`${back}${rows.map((row) => `\x1b[2K${row.slice(0, columns * 2)}\n`).join('')}`);
    drawn = rows.length;
  };
  if (style === 'none') return { stop: () => {} };
  const timer = setInterval(draw, style === 'bars' ? redrawMs : style === 'json' ? jsonMs : lineMs);
  if (style === 'bars') draw();
  let isShown = true;
  return {
    stop: () => {
      if (!isShown) return;
      isShown = false;
      clearInterval(timer);
      draw();
    },
  };
};
