import { readFile } from 'node:fs/promises';
import { isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { type SweepFile, sweepFile } from '../shared/contracts/sweep-file.ts';
import { didYouMean } from '../shared/domain/did-you-mean.ts';
import { errorNames, type Problem, ProblemsFound, TurnsweepError } from '../shared/errors.ts';

type Path = readonly PropertyKey[];

/** Members that the schema knows at a path, for suggestions. */
const knownKeys = (schema: unknown, path: Path): string[] => {
  let current = schema as { _zod?: { def: Record<string, unknown> } } | undefined;
  const unwrap = () => {
    while (current?._zod?.def.innerType) current = current._zod.def.innerType as typeof current;
  };
  for (const step of path) {
    unwrap();
    const def = current?._zod?.def;
    if (def?.shape) current = (def.shape as Record<PropertyKey, typeof current>)[step];
    else if (def?.element) current = def.element as typeof current;
    else return [];
  }
  unwrap();
  return Object.keys((current?._zod?.def.shape as object | undefined) ?? {});
};

const explain = (issue: z.core.$ZodIssue): string => {
  const place = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  const at = place === '' ? '' : `${place.replace(/^\./, '')}: `;
  if (issue.code !== 'unrecognized_keys') return `${at}${issue.message}`;
  const known = knownKeys(sweepFile, issue.path);
  const words = issue.keys.map((key) => {
    const near = didYouMean(key, known);
    return near === null ? `"${key}"` : `"${key}" (did you mean "${near}"?)`;
  });
  return `${at}unknown key ${words.join(', ')}`;
};

/** Replaces `${VAR}` and `${VAR:-default}` in every string value; what is not set is reported, not guessed. */
const expandVariables = (value: unknown, path: PropertyKey[], missing: { name: string; path: Path }[]): unknown => {
  if (typeof value === 'string') {
    return value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g, (_, name: string, fallback?: string) => {
      const found = process.env[name] || fallback;
      if (found === undefined) missing.push({ name, path });
      return found ?? '';
    });
  }
  if (Array.isArray(value)) return value.map((member, index) => expandVariables(member, [...path, index], missing));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, expandVariables(member, [...path, key], missing)]),
    );
  }
  return value;
};

/**
 * Reads a sweep file (YAML, of which JSON is a part). Throws `ProblemsFound` with every fault and its line,
 * or one error where the file cannot be read at all.
 */
export const readSweepFile = async (file: string): Promise<SweepFile> => {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    throw new TurnsweepError(errorNames.usage, missing ? 'no such sweep file' : 'cannot read the sweep file', {
      where: file,
      remedy: 'give the path of a YAML or JSON sweep file',
      cause,
    });
  }
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const lineOf = (path: Path): number | null => {
    for (let length = path.length; length >= 0; length -= 1) {
      const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line;
    }
    return null;
  };
  const problems: Problem[] = document.errors.map((error) => ({
    file,
    line: lineCounter.linePos(error.pos[0]).line,
    message: error.message.split('\n')[0]!,
  }));
  if (problems.length > 0) throw new ProblemsFound(errorNames.usage, 'the sweep file is not valid YAML', problems);

  const missing: { name: string; path: Path }[] = [];
  const value = expandVariables(document.toJS({ maxAliasCount: 100 }), [], missing);
  for (const { name, path } of missing) {
    problems.push({ file, line: lineOf(path), message: `environment variable ${name} is not set (set it or put it in .env)` });
  }
  const parsed = sweepFile.safeParse(value);
  for (const issue of parsed.error?.issues ?? []) {
    if (missing.some(({ path }) => path.join('\0') === issue.path.join('\0'))) continue;
    problems.push({ file, line: lineOf(issue.path), message: explain(issue) });
  }
  if (parsed.success) problems.push(...crossChecks(parsed.data).map((fault) => ({ file, line: lineOf(fault.path), message: fault.message })));
  if (problems.length > 0) throw new ProblemsFound(errorNames.usage, 'the sweep file has problems', problems);
  return parsed.data!;
};

/** Rules between keys. */
const crossChecks = (sweep: SweepFile): { path: Path; message: string }[] => {
  const faults: { path: Path; message: string }[] = [];
  const seen = new Set<string>();
  for (const [index, lane] of sweep.models.entries()) {
    const at = (key: string): Path => ['models', index, key];
    const name = lane.id.toLowerCase();
    if (seen.has(name)) faults.push({ path: at('id'), message: `lane id "${lane.id}" is used twice` });
    seen.add(name);
    if (new Set(lane.modalities).size !== lane.modalities.length) {
      faults.push({ path: at('modalities'), message: `models[${index}].modalities: a modality is named twice` });
    }
    if (lane.provider === 'recorded') {
      if (lane.recording === undefined) {
        faults.push({ path: at('provider'), message: `models[${index}]: provider "recorded" needs "recording"` });
      }
    } else {
      if (lane.recording !== undefined) {
        faults.push({ path: at('recording'), message: `models[${index}]: "recording" goes with provider "recorded"` });
      }
      if (lane.baseUrl === undefined && lane.provider !== 'openai') {
        faults.push({ path: at('provider'), message: `models[${index}]: provider "${lane.provider}" needs "baseUrl"` });
      }
      if (!sweep.benchmark.verifyMedia) {
        faults.push({
          path: ['benchmark', 'verifyMedia'],
          message: `verifyMedia: false is for recorded models only, and lane "${lane.id}" is not recorded`,
        });
      }
      if ((sweep.budget ?? lane.budget) !== undefined && lane.price === undefined) {
        faults.push({
          path: at('id'),
          message: `models[${index}]: a budget is set but the price of "${lane.model}" is unknown; add "price"`,
        });
      }
    }
    if (lane.retryMaxTokens !== undefined && lane.retryMaxTokens <= lane.maxTokens) {
      faults.push({ path: at('retryMaxTokens'), message: `models[${index}]: retryMaxTokens must be above maxTokens` });
    }
  }
  if (sweep.judge && sweep.judge.baseUrl === undefined && sweep.judge.provider !== 'openai') {
    faults.push({ path: ['judge', 'provider'], message: `judge: provider "${sweep.judge.provider}" needs "baseUrl"` });
  }
  if (sweep.budget && sweep.judge && sweep.judge.price === undefined) {
    faults.push({ path: ['judge', 'model'], message: 'judge: a budget is set but the price is unknown; add "price"' });
  }
  return faults;
};
