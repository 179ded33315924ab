import { type Fields, inField, inIndex, readFields, reject, type Site } from './definition.ts';
import { compileFind, compilePath } from './paths.ts';
import type { ChoiceRule } from './program.ts';
import { runtimeFault } from './states-error.ts';

type Test = ChoiceRule['matches'];
type Comparable = string | number | boolean;
/** A value as a kind compares it, or undefined where it is of another kind. */
type Reading = (value: unknown) => Comparable | undefined;

const timestampPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the epoch of an RFC 3339 time with capital T and Z, or undefined. */
export const timestampMs = (value: unknown): number | undefined => {
  if (typeof value !== 'string' || !timestampPattern.test(value)) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
};

const readings = {
  Boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  Numeric: (value) => (typeof value === 'number' ? value : undefined),
  String: (value) => (typeof value === 'string' ? value : undefined),
  Timestamp: timestampMs,
} as const satisfies Record<string, Reading>;

const orders: Readonly<Record<string, (left: Comparable, right: Comparable) => boolean>> = {
  Equals: (left, right) => left === right,
  GreaterThan: (left, right) => left > right,
  GreaterThanEquals: (left, right) => left >= right,
  LessThan: (left, right) => left < right,
  LessThanEquals: (left, right) => left <= right,
};

const typeTests: Readonly<Record<string, (value: unknown) => boolean>> = {
  IsBoolean: (value) => typeof value === 'boolean',
  IsNull: (value) => value === null,
  IsNumeric: (value) => typeof value === 'number',
  IsString: (value) => typeof value === 'string',
  IsTimestamp: (value) => timestampMs(value) !== undefined,
};

const comparisonPattern =
  /^(String|Numeric|Timestamp|Boolean)(Equals|LessThan|GreaterThan|LessThanEquals|GreaterThanEquals)(Path)?$/;

/** `*` stands for any characters; `\*` and `\\` for themselves. */
const wildcard = (pattern: string): RegExp => {
  const source = pattern.replaceAll(
    /\\([*\\])|\*|[\\^$.+?()[\]{}|/]/g,
    (token, escaped: string | undefined) => {
      if (escaped !== undefined) return `\\${escaped}`;
      return token === '*' ? '.*' : `\\${token}`;
    },
  );
  return new RegExp(`^${source}$`, 's');
};

const compileComparison = (operator: string, operand: unknown, variable: string, site: Site): Test => {
  const at = inField(site, operator);
  const left = compilePath(variable, inField(site, 'Variable'));
  if (operator === 'StringMatches') {
    if (typeof operand !== 'string') return reject(at, 'must be a string');
    const pattern = wildcard(operand);
    return (input, context) => {
      const value = left(input, context);
      return typeof value === 'string' && pattern.test(value);
    };
  }
  const [, kind, order, byPath] = comparisonPattern.exec(operator) ?? [];
  if (kind === undefined || order === undefined || (kind === 'Boolean' && order !== 'Equals')) {
    return reject(at, `unknown or unsupported field ${JSON.stringify(operator)}`);
  }
  const read: Reading = readings[kind as keyof typeof readings];
  const compare = orders[order]!;
  if (byPath !== undefined) {
    if (typeof operand !== 'string') return reject(at, 'must be a path');
    const right = compilePath(operand, at);
    return (input, context) => {
      const [one, other] = [read(left(input, context)), read(right(input, context))];
      return one !== undefined && other !== undefined && compare(one, other);
    };
  }
  const constant = read(operand);
  if (constant === undefined) {
    return reject(at, `must be a ${kind.toLowerCase()} value, not ${JSON.stringify(operand)}`);
  }
  return (input, context) => {
    const value = read(left(input, context));
    return value !== undefined && compare(value, constant);
  };
};

const compileTypeTest = (operator: string, operand: unknown, variable: string, site: Site): Test => {
  if (typeof operand !== 'boolean') return reject(inField(site, operator), 'must be true or false');
  const find = compileFind(variable, inField(site, 'Variable'));
  if (operator === 'IsPresent') return (input, context) => (find(input, context) !== undefined) === operand;
  const test = typeTests[operator]!;
  return (input, context) => {
    const value = find(input, context);
    if (value === undefined) {
      throw runtimeFault(`state ${JSON.stringify(site.state)}, field ${site.field}: nothing at ${variable}`);
    }
    return test(value) === operand;
  };
};

const compileParts = (fields: Fields, name: string): Test[] => {
  const parts = fields.list(name) ?? [];
  if (parts.length === 0) return reject(inField(fields.site, name), 'must not be empty');
  return parts.map((part, index) =>
    compileTest(readFields(part, inIndex(inField(fields.site, name), index))),
  );
};

const operatorFields = new Set(['Comment', 'Next', 'Variable']);

/** Compiles one choice rule's condition; `fields` still holds `Next` where the rule is at the top. */
const compileTest = (fields: Fields): Test => {
  const test = compileCondition(fields);
  fields.text('Comment');
  fields.end();
  return test;
};

const compileCondition = (fields: Fields): Test => {
  const { site } = fields;
  if (fields.has('And')) {
    const parts = compileParts(fields, 'And');
    return (input, context) => parts.every((part) => part(input, context));
  }
  if (fields.has('Or')) {
    const parts = compileParts(fields, 'Or');
    return (input, context) => parts.some((part) => part(input, context));
  }
  if (fields.has('Not')) {
    const part = compileTest(fields.neededObject('Not'));
    return (input, context) => !part(input, context);
  }
  const variable = fields.neededText('Variable');
  const operators = fields.names().filter((name) => !operatorFields.has(name));
  const [operator] = operators;
  if (operator === undefined || operators.length > 1) {
    return reject(site, `a rule needs exactly one comparison, not ${operators.length}`);
  }
  const operand = fields.take(operator);
  return operator === 'IsPresent' || Object.hasOwn(typeTests, operator)
    ? compileTypeTest(operator, operand, variable, site)
    : compileComparison(operator, operand, variable, site);
};

/** One entry of `Choices`. A rule that meets a value of another type does not match (language specification). */
export const compileRule = (value: unknown, site: Site): ChoiceRule => {
  const fields = readFields(value, site);
  const next = fields.neededText('Next');
  return { matches: compileTest(fields), next };
};
