/**
 * Metrics that workers write and alarms read. Dimensions stay few: every combination is billed by itself,
 * so runs and views are log fields, never dimensions.
 */
export const metricNamespace = 'Turnsweep';

export const metricNames = {
  /** Calls to a provider, by lane. */
  calls: 'Calls',
  /** Calls that the provider turned away for their rate, by lane. */
  throttledCalls: 'ThrottledCalls',
  /** Spent and reserved money in per cent of the run's limit, by stage. */
  budgetUsedPercent: 'BudgetUsedPercent',
} as const;

/** The lane dimension of calls to the judge. */
export const judgeDimension = 'judge';
