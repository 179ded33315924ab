import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parseRunId } from '../../shared/naming.ts';

const schedule = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]{1,40}$/),
  /** Six fields, as EventBridge Scheduler has them. */
  cron: z.string().regex(/^\S+( \S+){5}$/),
  timezone: z.string().min(1),
  isEnabled: z.boolean(),
  /** A run in the bucket: each tick starts its contract and settings again under a new name. */
  run: z.string().refine((run) => parseRunId(run) !== null),
});
export type Schedule = z.output<typeof schedule>;

export const readSchedules = (file: string): Schedule[] =>
  z.array(schedule).parse(JSON.parse(readFileSync(file, 'utf8')));
