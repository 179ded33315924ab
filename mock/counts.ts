export interface MockStats {
  requests: number;
  /** Complete replies with finish reason `stop`, the ones that a client can use. */
  replies: number;
  inFlight: number;
  peakInFlight: number;
  /** 429s, those of `capacity` and those of faults. */
  rateLimited: number;
  /** Requests refused as malformed. */
  malformed: number;
  /** Connections opened since the start. */
  connections: number;
  byModel: Record<string, { requests: number; replies: number; peakInFlight: number; rateLimited: number }>;
  byFault: Record<string, number>;
  /** By `<model> <fingerprint>`; 429s of `capacity` are no attempts and not counted here. */
  requestsByFingerprint: Record<string, number>;
  /** By `<model> <first 8 hex digits of the SHA-256 of the system text>`; `<model> none` without one. */
  requestsBySystem: Record<string, number>;
  repliesByFingerprint: Record<string, number>;
}

const fresh = () => ({
  requests: 0,
  replies: 0,
  rateLimited: 0,
  malformed: 0,
  byModel: new Map<string, MockStats['byModel'][string]>(),
  byFault: new Map<string, number>(),
  requestsByFingerprint: new Map<string, number>(),
  requestsBySystem: new Map<string, number>(),
  repliesByFingerprint: new Map<string, number>(),
});

const bump = (map: Map<string, number>, key: string, by = 1): number => {
  const value = (map.get(key) ?? 0) + by;
  map.set(key, value);
  return value;
};

/** Counts of what the server was asked and what it sent. A key is `<model> <fingerprint>`. */
export const createCounts = () => {
  let counts = fresh();
  let connections = 0;
  let inFlight = 0;
  let peakInFlight = 0;
  const inFlightByModel = new Map<string, number>();
  const ofModel = (name: string): MockStats['byModel'][string] => {
    let found = counts.byModel.get(name);
    if (!found) {
      found = { requests: 0, replies: 0, peakInFlight: 0, rateLimited: 0 };
      counts.byModel.set(name, found);
    }
    return found;
  };

  return {
    connection: () => {
      connections += 1;
    },
    request: () => {
      counts.requests += 1;
    },
    requestTo: (model: string) => {
      ofModel(model).requests += 1;
    },
    malformed: () => {
      counts.malformed += 1;
    },
    rateLimited: (model: string) => {
      counts.rateLimited += 1;
      ofModel(model).rateLimited += 1;
    },
    /** Number of the next attempt at a key, from 1. */
    nextAttempt: (key: string): number => (counts.requestsByFingerprint.get(key) ?? 0) + 1,
    attempt: (key: string, outcome: string, system: string) => {
      bump(counts.requestsByFingerprint, key);
      bump(counts.requestsBySystem, system);
      if (outcome !== 'ok') bump(counts.byFault, outcome);
    },
    reply: (model: string, key: string) => {
      counts.replies += 1;
      ofModel(model).replies += 1;
      bump(counts.repliesByFingerprint, key);
    },
    running: (model: string): number => inFlightByModel.get(model) ?? 0,
    /** A call takes its slot; the function that is returned frees it. */
    enter: (model: string): (() => void) => {
      inFlight += 1;
      peakInFlight = Math.max(peakInFlight, inFlight);
      ofModel(model).peakInFlight = Math.max(ofModel(model).peakInFlight, bump(inFlightByModel, model));
      return () => {
        inFlight -= 1;
        bump(inFlightByModel, model, -1);
      };
    },
    stats: (): MockStats => ({
      requests: counts.requests,
      replies: counts.replies,
      inFlight,
      peakInFlight,
      rateLimited: counts.rateLimited,
      malformed: counts.malformed,
      connections,
      byModel: Object.fromEntries(counts.byModel),
      byFault: Object.fromEntries(counts.byFault),
      requestsByFingerprint: Object.fromEntries(counts.requestsByFingerprint),
      requestsBySystem: Object.fromEntries(counts.requestsBySystem),
      repliesByFingerprint: Object.fromEntries(counts.repliesByFingerprint),
    }),
    reset: () => {
      counts = fresh();
      peakInFlight = inFlight;
    },
  };
};
