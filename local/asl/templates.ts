import { randomUUID } from 'node:crypto';
import { inField, inIndex, isObject, reject, type Site } from './definition.ts';
import { compilePath } from './paths.ts';
import type { Evaluate } from './program.ts';
import { StatesError } from './states-error.ts';

type Argument = { readonly literal: unknown; readonly raw: string } | { readonly evaluate: Evaluate };

interface Intrinsic {
  readonly arity: readonly [min: number, max: number];
  readonly call: (values: readonly unknown[]) => unknown;
}

const intrinsicFault = (what: string): StatesError => new StatesError('States.IntrinsicFailure', what);

const integer = (value: unknown): number => {
  if (Number.isSafeInteger(value)) return value as number;
  throw intrinsicFault(`States.MathAdd takes integers, not ${JSON.stringify(value)}`);
};

const object = (value: unknown): Record<string, unknown> => {
  if (isObject(value)) return value;
  throw intrinsicFault(`States.JsonMerge takes objects, not ${JSON.stringify(value)}`);
};

const parseJson = (value: unknown): unknown => {
  if (typeof value !== 'string') {
    throw intrinsicFault(`States.StringToJson takes a string, not ${JSON.stringify(value)}`);
  }
  try {
    return JSON.parse(value);
  } catch (error) {
    throw intrinsicFault(`States.StringToJson: ${(error as Error).message}`);
  }
};

/** Splits a template at its `{}`; `\{`, `\}`, `\'` and `\\` stand for the character itself. */
const formatParts = (template: string): string[] => {
  const parts: string[] = [];
  let part = '';
  for (const [token] of template.matchAll(/\\[{}'\\]|\{\}|[\s\S]/g)) {
    if (token === '{}') {
      parts.push(part);
      part = '';
    } else part += token.length === 2 ? token.slice(1) : token;
  }
  return [...parts, part];
};

const fillParts = (parts: readonly string[], values: readonly unknown[]): string => {
  if (values.length !== parts.length - 1) {
    throw intrinsicFault(`States.Format has ${parts.length - 1} {} for ${values.length} values`);
  }
  return parts.reduce((text, part, index) => {
    const value = values[index - 1];
    if (typeof value === 'object' && value !== null) {
      throw intrinsicFault('States.Format takes strings, numbers, booleans and null only');
    }
    return `${text}${value}${part}`;
  });
};

const format = (values: readonly unknown[]): string => {
  const [template, ...rest] = values;
  if (typeof template !== 'string') throw intrinsicFault('States.Format needs a string as its template');
  return fillParts(formatParts(template), rest);
};

const intrinsics: Readonly<Record<string, Intrinsic>> = {
  'States.Array': { arity: [0, Infinity], call: (values) => values },
  'States.ArrayLength': {
    arity: [1, 1],
    call: ([list]) => {
      if (Array.isArray(list)) return list.length;
      throw intrinsicFault('States.ArrayLength takes an array');
    },
  },
  'States.Format': { arity: [1, Infinity], call: format },
  'States.JsonMerge': {
    arity: [3, 3],
    call: ([left, right, deep]) => {
      if (deep !== false) throw intrinsicFault('States.JsonMerge: only shallow merging (false) exists');
      return { ...object(left), ...object(right) };
    },
  },
  'States.JsonToString': { arity: [1, 1], call: ([value]) => JSON.stringify(value) },
  'States.MathAdd': { arity: [2, 2], call: ([left, right]) => integer(left) + integer(right) },
  'States.StringToJson': { arity: [1, 1], call: ([text]) => parseJson(text) },
  'States.UUID': { arity: [0, 0], call: () => randomUUID() },
};

const namePattern = /\s*(States\.\w+)\s*\(\s*/y;
const stringPattern = /'((?:[^'\\]|\\['\\{}])*)'/y;
const wordPattern = /(?:[^\s,()'[\]]|\[(?:\d+|'(?:[^'\\]|\\.)*')\])+/y;
const nextPattern = /\s*([,)])\s*/y;

/** Parses one intrinsic call from `start`; returns it and the position after it. */
const parseCall = (text: string, start: number, site: Site): { evaluate: Evaluate; end: number } => {
  const broken = (at: number): never =>
    reject(site, `${JSON.stringify(text)} cannot be read from character ${at + 1} on`);
  let position = start;
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = position;
    const match = pattern.exec(text);
    if (match !== null) position = pattern.lastIndex;
    return match;
  };
  const readArgument = (): Argument => {
    const literal = read(stringPattern);
    if (literal !== null) {
      const raw = literal[1]!;
      return { literal: raw.replaceAll(/\\(['\\{}])/g, '$1'), raw };
    }
    if (text.startsWith('States.', position)) {
      const inner = parseCall(text, position, site);
      position = inner.end;
      return { evaluate: inner.evaluate };
    }
    const at = position;
    const word = read(wordPattern)?.[0] ?? broken(at);
    if (word.startsWith('$')) return { evaluate: compilePath(word, site) };
    const known = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(word);
    return known ? { literal: JSON.parse(word), raw: word } : broken(at);
  };

  const name = (read(namePattern) ?? broken(start))[1]!;
  const intrinsic = Object.hasOwn(intrinsics, name) ? intrinsics[name] : undefined;
  if (intrinsic === undefined) return reject(site, `unknown or unsupported intrinsic ${name}`);
  const args: Argument[] = [];
  if (text[position] === ')') position += 1;
  else {
    for (let open = true; open; ) {
      args.push(readArgument());
      open = (read(nextPattern) ?? broken(position))[1] === ',';
    }
  }
  const [min, max] = intrinsic.arity;
  if (args.length < min || args.length > max) {
    return reject(
      site,
      `${name} takes ${min === max ? min : `${min} or more`} arguments, not ${args.length}`,
    );
  }
  return { evaluate: bindCall(name, intrinsic, args, site), end: position };
};

const bindCall = (name: string, intrinsic: Intrinsic, args: readonly Argument[], site: Site): Evaluate => {
  const evaluates = args.map(
    (argument): Evaluate => ('evaluate' in argument ? argument.evaluate : () => argument.literal),
  );
  const [first, , third] = args;
  if (
    name === 'States.Format' &&
    first !== undefined &&
    'raw' in first &&
    typeof first.literal === 'string'
  ) {
    const parts = formatParts(first.raw);
    if (parts.length !== args.length) {
      return reject(site, `States.Format has ${parts.length - 1} {} for ${args.length - 1} values`);
    }
    const rest = evaluates.slice(1);
    return (input, context) =>
      fillParts(
        parts,
        rest.map((evaluate) => evaluate(input, context)),
      );
  }
  if (name === 'States.JsonMerge' && third !== undefined && 'literal' in third && third.literal !== false) {
    return reject(site, 'States.JsonMerge: only shallow merging (false) exists');
  }
  return (input, context) => intrinsic.call(evaluates.map((evaluate) => evaluate(input, context)));
};

/** A path or an intrinsic call, as it stands behind a key that ends in `.$`. */
export const compileExpression = (text: unknown, site: Site): Evaluate => {
  if (typeof text !== 'string')
    return reject(site, `must be a path or an intrinsic, not ${JSON.stringify(text)}`);
  if (!text.startsWith('States.')) return compilePath(text, site);
  const { evaluate, end } = parseCall(text, 0, site);
  return end === text.trimEnd().length || end === text.length
    ? evaluate
    : reject(site, `${JSON.stringify(text)} goes on after its last bracket`);
};

interface Template {
  readonly evaluate: Evaluate;
  readonly constant: boolean;
}

const compileNode = (value: unknown, site: Site): Template => {
  const fixed: Template = { evaluate: () => value, constant: true };
  if (Array.isArray(value)) {
    const nodes = value.map((node, index) => compileNode(node, inIndex(site, index)));
    if (nodes.every((node) => node.constant)) return fixed;
    return {
      evaluate: (input, context) => nodes.map((node) => node.evaluate(input, context)),
      constant: false,
    };
  }
  if (!isObject(value)) return fixed;
  const seen = new Set<string>();
  const entries = Object.entries(value).map(([key, node]): [string, Template] => {
    const at = inField(site, key);
    const dynamic = key.endsWith('.$');
    const name = dynamic ? key.slice(0, -2) : key;
    if (name === '__proto__') return reject(at, 'this name cannot be used');
    if (seen.has(name)) return reject(at, `${JSON.stringify(name)} is given twice, with and without .$`);
    seen.add(name);
    return [
      name,
      dynamic ? { evaluate: compileExpression(node, at), constant: false } : compileNode(node, at),
    ];
  });
  if (entries.every(([, node]) => node.constant)) return fixed;
  return {
    evaluate: (input, context) => {
      const made: Record<string, unknown> = {};
      for (const [name, node] of entries) made[name] = node.evaluate(input, context);
      return made;
    },
    constant: false,
  };
};

/** A payload template (`Parameters`, `ResultSelector`, `ItemSelector`); absent stands for the input itself. */
export const compileTemplate = (value: unknown, site: Site): Evaluate =>
  value === undefined ? (input) => input : compileNode(value, site).evaluate;
