import { errorNames, TurnsweepError } from '../../errors.ts';

/** Name of the error that an AWS service answered with, or of whatever else was thrown. */
export const serviceErrorName = (error: unknown): string =>
  error instanceof Error ? error.name : String(error);

export const httpStatus = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;

const remedies: Readonly<Record<string, string>> = {
  CredentialsProviderError: 'sign in to the account (aws configure, or AWS_PROFILE) and run again',
  ExpiredToken: 'sign in to the account again and run again',
  ExpiredTokenException: 'sign in to the account again and run again',
  NoSuchBucket: 'deploy the stacks first',
  ResourceNotFoundException: 'deploy the stacks first',
  QueueDoesNotExist: 'deploy the stacks first',
  StateMachineDoesNotExist: 'deploy the stacks first',
};

/** Turns a failed request to a service into `AccessDenied` or `StorageFailed`, with what the user can do. */
export const serviceFailed = (error: unknown, doing: string, where: string): TurnsweepError => {
  if (error instanceof TurnsweepError) return error;
  const name = serviceErrorName(error);
  if (httpStatus(error) === 403 || /^AccessDenied/.test(name)) {
    return new TurnsweepError(errorNames.accessDenied, `may not ${doing}`, {
      where,
      remedy: "check the policy of the caller's role",
      cause: error,
    });
  }
  const message = error instanceof Error ? error.message : '';
  return new TurnsweepError(errorNames.storageFailed, `cannot ${doing}: ${name} ${message}`.trimEnd(), {
    where,
    remedy: /Region is missing/.test(message)
      ? 'set AWS_REGION and run again'
      : (remedies[name] ?? 'mend the cause and run again'),
    cause: error,
  });
};

/** Awaits a request; its errors become `AccessDenied` or `StorageFailed`. */
export const asked = async <Result>(
  doing: string,
  where: string,
  request: Promise<Result>,
): Promise<Result> => {
  try {
    return await request;
  } catch (error) {
    throw serviceFailed(error, doing, where);
  }
};
