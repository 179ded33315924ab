import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument, type YAMLError } from 'yaml';
import type { z } from 'zod';
import { benchmarkKinds, benchmarkOf } from '../shared/benchmarks/registry.ts';
import { type SweepFile, sweepFile } from '../shared/contracts/sweep-file.ts';
import { errorNames, type Problem, ProblemsFound, TurnsweepError } from '../shared/errors.ts';
import { explainIssue, explainUnknownKey, type Path, pathText } from './explain-issue.ts';
import { checkSweepRules } from './sweep-rules.ts';

/** Keys that a schema knows at a path, for suggestions. */
const knownKeys = (root: z.ZodType, path: Path): string[] => {
  type Schema = { _zod?: { def: Record<string, unknown> } } | undefined;
  const inner = (schema: Schema): Schema => {
    const def = schema?._zod?.def;
    return def?.innerType === undefined ? schema : inner(def.innerType as Schema);
  };
  let current: Schema = root as unknown as Schema;
  for (const step of path) {
    const def = inner(current)?._zod?.def;
    current = (
      typeof step === 'number' ? def?.element : (def?.shape as Record<PropertyKey, Schema>)?.[step]
    ) as Schema;
  }
  return Object.keys((inner(current)?._zod?.def.shape as object | undefined) ?? {});
};

const readText = async (file: string): Promise<string> => {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const what =
      code === 'ENOENT' || code === 'ENOTDIR'
        ? 'no such sweep file'
        : code === 'EISDIR'
          ? 'a folder, not a sweep file'
          : `cannot read the sweep file: ${code ?? message}`;
    throw new TurnsweepError(errorNames.usage, what, {
      where: file,
      remedy: 'give the path of a YAML or JSON sweep file',
      cause,
    });
  }
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes.toString('utf8');
  throw new TurnsweepError(errorNames.usage, 'the sweep file is not UTF-8 text', {
    where: file,
    remedy: 'give a YAML or JSON file, saved as UTF-8',
  });
};

const yamlFault = (error: YAMLError, text: string): string => {
  const key = /^[^\s:#]*/.exec(text.slice(error.pos[0]))?.[0] ?? '';
  if (error.code === 'DUPLICATE_KEY') return `key "${key}" stands here a second time; remove one of them`;
  if (error.code === 'TAB_AS_INDENT') return 'a tab as indentation; YAML takes spaces only';
  if (error.code === 'MULTIPLE_DOCS') return 'a second document begins here; a sweep file is one';
  if (error.message.includes('call stack')) return 'values are nested too deeply';
  return `not valid YAML: ${error.message.split('\n')[0]}`;
};

/** One slip often makes several errors: of those of syntax only the first tells the reader something. */
const yamlProblems = (
  document: Document.Parsed,
  text: string,
  lineAt: (offset: number) => number,
  file: string,
) => {
  const faults = [...document.errors, ...document.warnings];
  const told = faults.filter((error, index) => index === 0 || error.code === 'DUPLICATE_KEY');
  return told.map(
    (error): Problem => ({ file, line: lineAt(error.pos[0]), message: yamlFault(error, text) }),
  );
};

/** Aliases may be written 1,000 times in all: a short file must not become a huge value. */
const maxAliasCount = 1_000;

const plainValue = (document: Document.Parsed, file: string): unknown => {
  try {
    const value = document.toJS({ maxAliasCount });
    JSON.stringify(value); // An anchor that holds its own alias has no end.
    return value;
  } catch (cause) {
    const name = /Unresolved alias.*: (\S+)$/.exec((cause as Error).message)?.[1];
    const message =
      name === undefined
        ? 'YAML aliases refer to each other too often or in a circle; write the values out'
        : `alias *${name} has no anchor &${name} before it`;
    throw new ProblemsFound(errorNames.usage, 'the sweep file is not valid YAML', [
      { file, line: null, message },
    ]);
  }
};

interface Expansion {
  value: unknown;
  problems: { path: Path; message: string }[];
}

/** Replaces `${VAR}` and `${VAR:-default}` in every string value; what is not set is reported, not guessed. */
const expandVariables = (whole: unknown): Expansion => {
  const problems: Expansion['problems'] = [];
  const expandText = (text: string, path: Path): string =>
    text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g, (_, name: string, fallback?: string) => {
      if (path.at(-1) === 'apiKeyEnv') {
        problems.push({ path, message: `${pathText(path)}: write the name of the variable alone: ${name}` });
        return name;
      }
      const found = process.env[name] || fallback;
      if (found !== undefined) return found;
      problems.push({
        path,
        message: `${pathText(path)}: environment variable ${name} is not set; set it or put it into .env`,
      });
      return '';
    });
  const expand = (value: unknown, path: Path): unknown => {
    if (typeof value === 'string') return expandText(value, path);
    if (Array.isArray(value)) return value.map((member, index) => expand(member, [...path, index]));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, expand(member, [...path, key])]),
    );
  };
  return { value: expand(whole, []), problems };
};

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (inner, key) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[key],
    value,
  );

/**
 * Reads a sweep file (YAML, of which JSON is a part). Throws `ProblemsFound` with every fault and its line,
 * or one error where the file cannot be read at all.
 */
export const readSweepFile = async (file: string): Promise<SweepFile> => {
  const text = await readText(file);
  const lineCounter = new LineCounter();
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const syntax = yamlProblems(document, text, lineAt, file);
  if (syntax.length > 0)
    throw new ProblemsFound(errorNames.usage, 'the sweep file is not valid YAML', syntax);
  if (text.trim() === '' || document.contents === null) {
    const message = 'the file is empty; a sweep needs at least name, benchmark and models';
    throw new ProblemsFound(errorNames.usage, 'the sweep file is empty', [{ file, line: null, message }]);
  }
  const nodeAt = (path: Path): unknown =>
    path.length === 0 ? document.contents : document.getIn(path, true);
  const lineOf = (path: Path): number | null => {
    for (let length = path.length; length >= 0; length -= 1) {
      const node = nodeAt(path.slice(0, length));
      if (isNode(node) && node.range) return lineAt(node.range[0]);
    }
    return null;
  };
  const lineOfKey = (path: Path, key: string): number | null => {
    const map = nodeAt(path);
    const found = isMap(map)
      ? map.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key)
      : undefined;
    return isNode(found?.key) && found.key.range ? lineAt(found.key.range[0]) : lineOf(path);
  };

  const written = plainValue(document, file);
  const expanded = expandVariables(written);
  const problems: Problem[] = expanded.problems.map(({ path, message }) => ({
    file,
    line: lineOf(path),
    message,
  }));
  const rules = checkSweepRules(expanded.value);
  const told = new Set([...expanded.problems, ...rules].map(({ path }) => pathText(path)));
  const parsed = sweepFile.safeParse(expanded.value);
  const report = (schema: z.ZodType, issues: readonly z.core.$ZodIssue[], place: Path) => {
    for (const issue of issues) {
      const at = [...place, ...issue.path];
      if (told.has(pathText(at))) continue;
      if (issue.code === 'unrecognized_keys') {
        for (const key of issue.keys) {
          const message = explainUnknownKey(at, key, knownKeys(schema, issue.path));
          problems.push({ file, line: lineOfKey(at, key), message });
        }
      } else {
        const message = explainIssue({ ...issue, path: at }, valueAt(written, at));
        problems.push({ file, line: lineOf(at), message });
      }
    }
  };
  report(sweepFile, parsed.error?.issues ?? [], []);
  if (parsed.success && benchmarkKinds.includes(parsed.data.benchmark.kind)) {
    const { options } = benchmarkOf(parsed.data.benchmark.kind);
    const checked = options.safeParse(parsed.data.benchmark.options);
    report(options, checked.error?.issues ?? [], ['benchmark', 'options']);
    if (checked.success) parsed.data.benchmark.options = checked.data;
  }
  for (const { path, message } of rules) problems.push({ file, line: lineOf(path), message });
  if (problems.length > 0) {
    problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    throw new ProblemsFound(errorNames.usage, 'the sweep file has problems', problems);
  }
  return parsed.data!;
};
