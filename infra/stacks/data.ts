import { Duration, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { AttributeType, BillingMode, Table, TableEncryption } from 'aws-cdk-lib/aws-dynamodb';
import { Key } from 'aws-cdk-lib/aws-kms';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { deployedName, ledgerTable, secretResourceName } from '../../shared/naming.ts';
import { constructId } from '../constructs/stage-function.ts';

export interface DataStackProps extends StackProps {
  deployment: string;
  /** Names of provider keys, as lanes have them. */
  secretNames: readonly string[];
}

export interface DataStack {
  stack: Stack;
  bucket: Bucket;
  key: Key;
  ledger: Table;
  secrets: ReadonlyMap<string, Secret>;
}

/** What outlives every run: replies and reviews in the bucket, money in the ledger, keys of providers. */
export const createDataStack = (scope: Construct, id: string, props: DataStackProps): DataStack => {
  const stack = new Stack(scope, id, props);
  const key = new Key(stack, 'RunKey', {
    description: `Run data of ${props.deployment}`,
    enableKeyRotation: true,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const bucket = new Bucket(stack, 'RunBucket', {
    encryption: BucketEncryption.KMS,
    encryptionKey: key,
    // One key request per bucket and while instead of one per object.
    bucketKeyEnabled: true,
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    enforceSSL: true,
    versioned: true,
    removalPolicy: RemovalPolicy.RETAIN,
    lifecycleRules: [
      {
        id: 'broken-uploads-and-old-versions',
        abortIncompleteMultipartUploadAfter: Duration.days(7),
        noncurrentVersionExpiration: Duration.days(30),
        expiredObjectDeleteMarker: true,
      },
      // Made from `media/` again when needed.
      { id: 'derived-media', prefix: 'derived/', expiration: Duration.days(90) },
    ],
  });
  const ledger = new Table(stack, 'Ledger', {
    tableName: deployedName(props.deployment, ledgerTable),
    partitionKey: { name: 'pk', type: AttributeType.STRING },
    billingMode: BillingMode.PAY_PER_REQUEST,
    encryption: TableEncryption.AWS_MANAGED,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    timeToLiveAttribute: 'expiresAt',
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const secrets = new Map(
    props.secretNames.map((name) => [
      name,
      new Secret(stack, `ProviderKey${constructId(name.toLowerCase())}`, {
        secretName: secretResourceName(props.deployment, name),
        description: `${name}: a provider's key. Created with a random value: put the real one in after deployment.`,
      }),
    ]),
  );
  return { stack, bucket, key, ledger, secrets };
};
