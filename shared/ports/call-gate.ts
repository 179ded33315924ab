import type { CallOutcome } from '../domain/outcome.ts';

export interface GateWish {
  /** Tokens of prompt and reply together that the call can take at most. */
  tokensAtMost: number;
  /** How often this request has been turned away for its rate before. */
  timesTurnedAway: number;
}

export interface Permit {
  /** True where the call had to wait: what was looked up before may have changed. */
  hasWaited: boolean;
  /** To be called once in any case, with what the call came to; null where none was made. */
  leave(outcome: CallOutcome | null): Promise<void>;
}

/** What stands between a lane's work and its provider: nobody calls without a permit. */
export interface CallGate {
  /** Leave for one call; or the seconds after which to come back, where waiting here would hold the worker too long. */
  enter(wish: GateWish): Promise<Permit | { waitSeconds: number }>;
}
