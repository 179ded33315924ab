import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import type { IBucket } from 'aws-cdk-lib/aws-s3';
import type { Scope } from '../../shared/scopes.ts';

export interface RunStorage {
  bucket: IBucket;
  key: IKey;
}

/** A scope's prefix is a folder where it ends in a slash, a single key elsewhere. */
export const pattern = (prefix: string): string => (prefix.endsWith('/') ? `${prefix}*` : prefix);

/**
 * A stage's scope as statements. Listing is limited to the prefixes that may be read; S3 also asks for it
 * before it says "no such key" instead of "denied", and then takes the key for the prefix.
 */
export const scopeStatements = (storage: RunStorage, scope: Scope, deletes: boolean): PolicyStatement[] => {
  const { bucket, key } = storage;
  const reads = scope.read.map(pattern);
  const writes = scope.write.map((prefix) => bucket.arnForObjects(pattern(prefix)));
  return [
    new PolicyStatement({
      sid: 'ReadScope',
      actions: ['s3:GetObject'],
      resources: reads.map((prefix) => bucket.arnForObjects(prefix)),
    }),
    new PolicyStatement({
      sid: 'ListScope',
      actions: ['s3:ListBucket'],
      resources: [bucket.bucketArn],
      conditions: { StringLike: { 's3:prefix': reads } },
    }),
    new PolicyStatement({
      sid: 'WriteScope',
      actions: ['s3:PutObject', 's3:AbortMultipartUpload', ...(deletes ? ['s3:DeleteObject'] : [])],
      resources: writes,
    }),
    keyStatement(key),
  ];
};

export const keyStatement = (key: IKey): PolicyStatement =>
  new PolicyStatement({
    sid: 'RunKey',
    actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
    resources: [key.keyArn],
  });
