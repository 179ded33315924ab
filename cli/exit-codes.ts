/** Part of the command line's contract. */
export const exitCodes = {
  complete: 0,
  failed: 1,
  /** Finished, with excluded views, failed inference or reviews pending. */
  incomplete: 2,
  budgetSpent: 3,
  interrupted: 130,
} as const;
