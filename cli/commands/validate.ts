import { exitCodes } from '../exit-codes.ts';
import { prepareRun } from '../prepare-run.ts';
import { readSweepFile } from '../read-sweep.ts';
import { print } from '../terminal.ts';

export const validate = async (sweepPath: string): Promise<number> => {
  const sweep = await readSweepFile(sweepPath);
  const prepared = await prepareRun(sweep, sweepPath, { limit: null });
  const clips = prepared.media === null ? 'media not verified' : `${prepared.media.size} clips verified`;
  print(
    `${sweepPath}: sound (${prepared.settings.taskIds.length} tasks, ${sweep.models.length} lanes, ${clips})`,
  );
  return exitCodes.complete;
};
