/** Preloaded into a measured process: writes what the process used when it ends. */
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.TURNSWEEP_USAGE_FILE;
const startedMs = performance.now();

/** Linux lets `maxRSS` begin at what the parent had in memory; the high-water mark is of this program alone. */
const peakKibibytes = (maxRss: number): number => {
  if (process.platform !== 'linux') return maxRss;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
};

process.on('exit', () => {
  if (file === undefined) return;
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  writeFileSync(
    file,
    JSON.stringify({
      wallSeconds: (performance.now() - startedMs) / 1000,
      cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
      peakMebibytes: peakKibibytes(maxRSS) / 1024,
    }),
  );
});
