import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { ScenarioInput } from '../mock/scenario.ts';
import type { ScenarioStep } from './mock-process.ts';

export interface MockCounts {
  requests: number;
  replies: number;
  rateLimited: number;
  peakInFlight: number;
  /** From the first request to the last. */
  requestingMs: number;
  /** When its capacity changed, in ms since the epoch. */
  stepsAtMs: number[];
}

/** Starts a mock provider in a process of its own; it ends with this process at the latest. */
export const startMock = async (scenario: ScenarioInput, steps: readonly ScenarioStep[] = []) => {
  const child = fork(path.join(import.meta.dirname, 'mock-process.ts'), [JSON.stringify([scenario, steps])]);
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return {
    url,
    counts: async (): Promise<MockCounts> => {
      child.send('stats');
      return (await once(child, 'message'))[0] as MockCounts;
    },
    stop: () => child.kill(),
  };
};
