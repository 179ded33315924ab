/** Preloaded into a measured process: writes what the process used when it ends. */
import { writeFileSync } from 'node:fs';

const file = process.env.TURNSWEEP_USAGE_FILE;
const startedMs = performance.now();
process.on('exit', () => {
  if (file === undefined) return;
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  writeFileSync(
    file,
    JSON.stringify({
      wallSeconds: (performance.now() - startedMs) / 1000,
      cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
      peakMebibytes: maxRSS / 1024,
    }),
  );
});
