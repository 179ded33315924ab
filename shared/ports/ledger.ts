export interface Balance {
  /** Settled spend in millionths of a dollar. */
  spentMicroUsd: number;
  /** Reserved by calls still in flight. */
  reservedMicroUsd: number;
  /** Null: no limit. */
  limitMicroUsd: number | null;
}

/** Money and leases, kept where every worker of a run sees the same figures. */
export interface Ledger {
  /** Sets or changes the limit of an account (`run/<run>` or `run/<run>/lane/<lane>`). */
  setLimit(account: string, limitMicroUsd: number | null): Promise<void>;
  /**
   * Reserves on all accounts or on none. False if on any of them
   * spent + reserved + `microUsd` would pass the limit.
   */
  reserve(accounts: readonly string[], reservationId: string, microUsd: number): Promise<boolean>;
  /** Replaces a reservation by what the call really cost. Settling an unknown id books the cost alone. */
  settle(accounts: readonly string[], reservationId: string, microUsd: number): Promise<void>;
  balance(account: string): Promise<Balance>;
  /** Drops reservations whose calls died with their process. */
  dropReservations(account: string): Promise<void>;
  /** True if the lease is now `owner`'s until `seconds` from now; an owner may renew its own. */
  takeLease(key: string, owner: string, seconds: number): Promise<boolean>;
  /** Who holds the lease now; null if nobody does. */
  leaseOwner(key: string): Promise<string | null>;
  releaseLease(key: string, owner: string): Promise<void>;
}
