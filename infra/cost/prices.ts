/** Prices of us-east-1 in dollars. They change: each has the date of its source, and a report says which it used. */
export interface DatedPrice {
  usd: number;
  per: string;
  asOf: string;
  source: string;
}

const price = (usd: number, per: string, asOf: string, source: string): DatedPrice => ({
  usd,
  per,
  asOf,
  source,
});

export const prices = {
  transition: price(0.025 / 1000, 'state transition', '2026-08', 'Step Functions pricing, Standard'),
  lambdaGbSecond: price(0.0000133334, 'GB-second, arm64', '2026-08', 'Lambda pricing'),
  lambdaRequest: price(0.2 / 1e6, 'invocation', '2026-08', 'Lambda pricing'),
  sqsRequest: price(0.4 / 1e6, 'request of 64 KB', '2026-08', 'SQS pricing, standard queues'),
  s3Put: price(0.005 / 1000, 'PUT or LIST', '2026-08', 'S3 pricing, Standard; from memory, check'),
  s3Get: price(0.0004 / 1000, 'GET', '2026-08', 'S3 pricing, Standard; from memory, check'),
  dynamodbWrite: price(
    0.625 / 1e6,
    'write unit',
    '2024-11',
    'DynamoDB on-demand pricing since November 2024',
  ),
  dynamodbRead: price(0.125 / 1e6, 'read unit', '2024-11', 'DynamoDB on-demand pricing since November 2024'),
  logsGb: price(0.5, 'GB of log', '2026-08', 'CloudWatch Logs pricing'),
  traces: price(5 / 1e6, 'trace', '2026-08', 'X-Ray pricing; from memory, check'),
  egressGb: price(0.09, 'GB out to the internet', '2026-08', 'EC2 data transfer pricing; from memory, check'),
} as const;
