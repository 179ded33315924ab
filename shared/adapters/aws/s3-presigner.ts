import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { checkKey } from '../local/object-keys.ts';

/** A provider fetches a clip while its call lasts; ours lasts an hour at most. */
const usualSeconds = 3600;

/**
 * Addresses at which anybody can read one object for a while, with the rights of this client's credentials: they end
 * with these. Made without a call.
 */
export const createS3Presigner =
  (options: { client: S3Client; bucket: string; expiresInSeconds?: number }) =>
  async (key: string): Promise<string> => {
    checkKey(key);
    const { client, bucket: Bucket, expiresInSeconds: expiresIn = usualSeconds } = options;
    return getSignedUrl(client, new GetObjectCommand({ Bucket, Key: key }), { expiresIn });
  };
