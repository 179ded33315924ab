import type { SweepFile } from '../shared/contracts/sweep-file.ts';
import { callsOut } from '../shared/domain/reply-source.ts';
import { errorNames, type Problem, ProblemsFound } from '../shared/errors.ts';

/** Shorter values would be found in addresses by chance. */
const shortestSecret = 8;

const keyFault = (name: string, baseUrl: string | undefined): string | null => {
  const value = process.env[name];
  if (!value) return `environment variable ${name} is not set; set it or put it into .env`;
  if (!/^[\x21-\x7e]+$/.test(value)) {
    return `the value of ${name} holds a space, a line end or another character that no key has; set it anew`;
  }
  if (value.length >= shortestSecret && baseUrl?.includes(value)) {
    return `the key in ${name} also stands in baseUrl, which is written to records; take it out there`;
  }
  return null;
};

/**
 * Looks for the keys of every endpoint that will be called, before the first call. The judge's key counts
 * only where models are called too: a replay of recorded replies may never need its judge. Throws
 * `ProblemsFound`, naming variables, never values.
 */
export const checkApiKeys = (sweep: SweepFile, sweepPath: string): void => {
  const problems: Problem[] = [];
  const check = (place: string, { apiKeyEnv, baseUrl }: { apiKeyEnv?: string; baseUrl?: string }) => {
    const fault = apiKeyEnv === undefined ? null : keyFault(apiKeyEnv, baseUrl);
    if (fault !== null)
      problems.push({ file: sweepPath, line: null, message: `${place}.apiKeyEnv: ${fault}` });
  };
  const calling = sweep.models.filter((lane) => callsOut(lane.provider));
  for (const [index, lane] of sweep.models.entries())
    if (calling.includes(lane)) check(`models[${index}]`, lane);
  if (sweep.judge !== undefined && calling.length > 0) check('judge', sweep.judge);
  if (problems.length > 0) throw new ProblemsFound(errorNames.usage, 'keys are missing', problems);
};
