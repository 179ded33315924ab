import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Composition, Modality } from './composition.ts';

/** What a process of the fleet is told when it starts. */
export interface FleetSetup {
  composition: Composition;
  seed: number;
  lanes: {
    /** The model's name in requests. */
    wireModel: string;
    modalities: readonly Modality[];
    retryMaxTokens: number | null;
    /** Outcomes by request index, see outcomes.ts. */
    codes: Uint8Array;
  }[];
  /** Names on the wire under which the judge answers. */
  judgeModels: readonly string[];
  latencyMs: number;
  /** Share of the replies that need the raised cap, of lanes that have one. */
  lengthStopsPerMille: number;
  /** Of the first process, the next ones count on from it; 0 takes free ones. Addresses are part of a run's contract. */
  port?: number;
}

export interface FleetStats {
  requests: number;
  /** Complete replies with finish reason `stop`. */
  replies: number;
  /** Replies given a second time to the same request of the same lane, ever: paid for twice. */
  repeatedReplies: number;
  lengthStops: number;
  failures: Record<string, number>;
  /** Requests that no correct sweep sends, by reason. */
  refused: Record<string, number>;
  judgeCalls: number;
  judgedItems: number;
  firstRequestMs: number | null;
  lastRequestMs: number | null;
}

const merged = (all: readonly (FleetStats & { rssBytes: number })[]): FleetStats & { rssBytes: number } => {
  const sum = (of: (stats: (typeof all)[number]) => number) =>
    all.reduce((total, stats) => total + of(stats), 0);
  const byName = (of: (stats: FleetStats) => Record<string, number>) => {
    const result: Record<string, number> = {};
    for (const stats of all)
      for (const [name, count] of Object.entries(of(stats))) result[name] = (result[name] ?? 0) + count;
    return result;
  };
  const times = (of: (stats: FleetStats) => number | null) =>
    all.map(of).filter((time): time is number => time !== null);
  const [first, last] = [times((stats) => stats.firstRequestMs), times((stats) => stats.lastRequestMs)];
  return {
    requests: sum((stats) => stats.requests),
    replies: sum((stats) => stats.replies),
    repeatedReplies: sum((stats) => stats.repeatedReplies),
    lengthStops: sum((stats) => stats.lengthStops),
    failures: byName((stats) => stats.failures),
    refused: byName((stats) => stats.refused),
    judgeCalls: sum((stats) => stats.judgeCalls),
    judgedItems: sum((stats) => stats.judgedItems),
    firstRequestMs: first.length === 0 ? null : Math.min(...first),
    lastRequestMs: last.length === 0 ? null : Math.max(...last),
    rssBytes: sum((stats) => stats.rssBytes),
  };
};

/** Starts the fleet: so many processes, lanes dealt out over them in turn, the judge in the last one. */
export const startFleet = async (setup: FleetSetup, workers = 1) => {
  const children = Array.from({ length: workers }, () =>
    fork(path.join(import.meta.dirname, 'fleet-worker.ts'), { serialization: 'advanced', execArgv: [] }),
  );
  const urls = await Promise.all(
    children.map(async (child, at) => {
      const port = setup.port ? setup.port + at : 0;
      child.send({ ...setup, port, lanes: setup.lanes.filter((_, lane) => lane % workers === at) });
      return ((await once(child, 'message')) as [{ url: string }])[0].url;
    }),
  );
  const ask = async (question: 'stats' | 'reset') =>
    Promise.all(
      children.map(async (child) => {
        child.send(question);
        return (await once(child, 'message'))[0] as FleetStats & { rssBytes: number };
      }),
    );
  return {
    /** Base URL of a lane, by its position in the setup. */
    urlOf: (lane: number): string => urls[lane % workers]!,
    judgeUrl: urls.at(-1)!,
    stats: async () => merged(await ask('stats')),
    /** Counts back to zero; what was ever replied stays known. */
    reset: async (): Promise<void> => void (await ask('reset')),
    stop: (): void => {
      for (const child of children) child.kill();
    },
  };
};
export type Fleet = Awaited<ReturnType<typeof startFleet>>;
