import type { StageName } from '../../shared/scopes.ts';

/** Size of a stage's function. CPU comes with memory: 1,769 MB are one core. */
export interface StageSize {
  memoryMb: number;
  /** Absent where the lane or the judge sets it. */
  timeoutSeconds?: number;
  /** Room in `/tmp`; 512 unless given. */
  diskMb?: number;
}

export const stageSizes: Record<StageName, StageSize> = {
  'plan-sweep': { memoryMb: 1769, timeoutSeconds: 900 },
  // ffmpeg works in one thread, so one core. A clip is in memory once beside it, and on disk with what is made of it.
  'prepare-media': { memoryMb: 1769, timeoutSeconds: 900, diskMb: 2048 },
  // It only waits for the model: memory is a straight multiplier of the largest line of the bill.
  'generate-turns': { memoryMb: 256 },
  'exclude-request': { memoryMb: 256, timeoutSeconds: 60 },
  'stop-lane': { memoryMb: 256, timeoutSeconds: 60 },
  'plan-judging': { memoryMb: 3008, timeoutSeconds: 900 },
  'judge-answers': { memoryMb: 256 },
  // A file of a batch is made and sent in memory, 200 MB at most.
  'submit-judge-batch': { memoryMb: 1769, timeoutSeconds: 900 },
  'poll-judge-batch': { memoryMb: 1769, timeoutSeconds: 900 },
  'aggregate-run': { memoryMb: 3008, timeoutSeconds: 900 },
  'publish-report': { memoryMb: 512, timeoutSeconds: 120 },
  'start-sweep': { memoryMb: 256, timeoutSeconds: 60 },
};

/** Lambda asks for a visibility of six times the function's time, so that a retried batch is not seen twice. */
export const visibilityPerTimeout = 6;
/** Receives after which a message is dead. All counted retries are state transitions: this counts crashes. */
export const maxReceiveCount = 4;
/** A message whose delivery threw comes back after 1, 5 and 15 minutes: together longer than a short outage. */
export const returnSeconds = [60, 300, 900];
