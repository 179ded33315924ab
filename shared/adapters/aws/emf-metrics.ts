import type { Clock } from '../../ports/clock.ts';

/** Dimensions of a metric: every combination is billed by itself, so there are no others. */
export interface MetricDimensions {
  lane?: string;
  stage?: string;
}

export interface Metrics {
  put(dimensions: MetricDimensions, values: Readonly<Record<string, number>>): void;
}

const unitOf = (name: string): string =>
  name.endsWith('Percent') ? 'Percent' : /(Ms|Milliseconds)$/.test(name) ? 'Milliseconds' : 'Count';

/**
 * Metrics in CloudWatch's embedded format: one line of JSON on standard output each, no request.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
export const createEmfMetrics = (options: {
  namespace: string;
  clock: Pick<Clock, 'now'>;
  write?: (line: string) => void;
}): Metrics => {
  const { namespace, clock, write = writeOut } = options;
  return {
    put({ lane, stage }, values) {
      const dimensions = { ...(lane !== undefined && { lane }), ...(stage !== undefined && { stage }) };
      const metric = {
        Namespace: namespace,
        Dimensions: [Object.keys(dimensions)],
        Metrics: Object.keys(values).map((Name) => ({ Name, Unit: unitOf(Name) })),
      };
      const head = { _aws: { Timestamp: clock.now(), CloudWatchMetrics: [metric] } };
      write(`${JSON.stringify({ ...head, ...dimensions, ...values })}\n`);
    },
  };
};

const writeOut = (line: string): void => {
  process.stdout.write(line);
};
