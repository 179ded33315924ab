import { isObject, reject, type Site } from './definition.ts';
import type { Evaluate, Merge, StateContext } from './program.ts';
import { runtimeFault, StatesError } from './states-error.ts';

type Segment = string | number;

const segmentPattern = /\.([\p{L}\p{N}_-]+)|\[(\d+)\]|\['((?:[^'\\]|\\['\\])+)'\]/uy;

/** The segments of a reference path after its `$`: names and indexes only, as the language's reference paths. */
const parseSegments = (text: string, start: number, site: Site): Segment[] => {
  const segments: Segment[] = [];
  segmentPattern.lastIndex = start;
  while (segmentPattern.lastIndex < text.length) {
    const at = segmentPattern.lastIndex;
    const match = segmentPattern.exec(text);
    if (match === null) {
      return reject(
        site,
        `${JSON.stringify(text)} is not a reference path from character ${at + 1} on: ` +
          "only .name, [index] and ['name'], no filters, wildcards, slices or '..'",
      );
    }
    segments.push(
      match[1] ?? (match[2] === undefined ? match[3]!.replaceAll(/\\(['\\])/g, '$1') : Number(match[2])),
    );
  }
  return segments;
};

const step = (value: unknown, segment: Segment): unknown => {
  if (typeof segment === 'number') return Array.isArray(value) ? value[segment] : undefined;
  return isObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
};

const walk = (value: unknown, segments: readonly Segment[]): unknown => {
  let found = value;
  for (const segment of segments) {
    if (found === undefined) return undefined;
    found = step(found, segment);
  }
  return found;
};

const isoTime = (ms: number): string => new Date(ms).toISOString();

const contextFields: Readonly<Record<string, (context: StateContext) => unknown>> = {
  'Execution.Id': (context) => context.execution.id,
  'Execution.Input': (context) => context.execution.input,
  'Execution.Name': (context) => context.execution.name,
  'Execution.StartTime': (context) => isoTime(context.execution.startedAtMs),
  'Map.Item.Index': (context) => context.item?.index,
  'Map.Item.Value': (context) => context.item?.value,
  'State.EnteredTime': (context) => isoTime(context.enteredAtMs),
  'State.Name': (context) => context.stateName,
  'State.RetryCount': (context) => context.retryCount,
  'StateMachine.Id': (context) => context.execution.machineId,
  'StateMachine.Name': (context) => context.execution.machineName,
  'Task.Token': (context) => context.taskToken ?? undefined,
};

const compileContextFind = (text: string, site: Site): Evaluate => {
  const segments = parseSegments(text, 2, site);
  const depth = segments[0] === 'Map' ? 3 : 2;
  const field = segments.slice(0, depth).join('.');
  const read = Object.hasOwn(contextFields, field) ? contextFields[field] : undefined;
  if (read === undefined) return reject(site, `the context object has no ${JSON.stringify(text)}`);
  if (field.startsWith('Map.') && !site.hasItem) {
    return reject(site, `${text} exists only in an ItemSelector and inside an inline Map`);
  }
  if (field === 'Task.Token' && !site.hasToken) {
    return reject(site, `${text} exists only in the Parameters of a .waitForTaskToken task`);
  }
  const rest = segments.slice(depth);
  return (_input, context) => walk(read(context), rest);
};

/** A path (`$…` or `$$…`) that yields undefined where the data has nothing there. */
export const compileFind = (text: string, site: Site): Evaluate => {
  if (text.startsWith('$$')) return compileContextFind(text, site);
  if (!text.startsWith('$')) return reject(site, `a path must begin with $, not ${JSON.stringify(text)}`);
  const segments = parseSegments(text, 1, site);
  return (input) => walk(input, segments);
};

/** A path whose value must be there; `States.Runtime` otherwise. */
export const compilePath = (text: string, site: Site): Evaluate => {
  const find = compileFind(text, site);
  return (input, context) => {
    const found = find(input, context);
    if (found !== undefined) return found;
    throw runtimeFault(`state ${JSON.stringify(site.state)}, field ${site.field}: nothing at ${text}`);
  };
};

const sameInput: Evaluate = (input) => input;

/** `InputPath` or `OutputPath`: absent is `$`, null is an empty object. */
export const compileFilter = (value: unknown, site: Site): Evaluate => {
  if (value === undefined || value === '$') return sameInput;
  if (value === null) return () => ({});
  if (typeof value !== 'string') return reject(site, 'must be a path or null');
  return compilePath(value, site);
};

/** A copy of `target` with `value` at the segments; what is not on the way is shared. */
const put = (target: unknown, segments: readonly Segment[], value: unknown, text: string): unknown => {
  const [first, ...rest] = segments;
  if (first === undefined) return value;
  const mismatch = () =>
    new StatesError('States.ResultPathMatchFailure', `ResultPath ${text} does not fit the state's input`);
  if (typeof first === 'number') {
    if (!Array.isArray(target) || first >= target.length) throw mismatch();
    return target.with(first, put(target[first], rest, value, text));
  }
  if (target !== undefined && !isObject(target)) throw mismatch();
  const inner = target !== undefined && Object.hasOwn(target, first) ? target[first] : undefined;
  return { ...target, [first]: put(inner, rest, value, text) };
};

/** `ResultPath`: absent is `$` (the result replaces the input), null drops the result. */
export const compileMerge = (value: unknown, site: Site): Merge => {
  if (value === undefined) return (_input, result) => result;
  if (value === null) return (input) => input;
  if (typeof value !== 'string') return reject(site, 'must be a reference path or null');
  if (!value.startsWith('$') || value.startsWith('$$')) {
    return reject(site, `must be a reference path into the state's input, not ${JSON.stringify(value)}`);
  }
  const segments = parseSegments(value, 1, site);
  return (input, result) => put(input, segments, result, value);
};
