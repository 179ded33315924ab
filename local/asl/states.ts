import { compileRule, timestampMs } from './choice.ts';
import {
  type Fields,
  inField,
  inIndex,
  isObject,
  numberFault,
  readFields,
  reject,
  type Site,
} from './definition.ts';
import { compileFilter, compileMerge, compilePath } from './paths.ts';
import type {
  Catcher,
  Chain,
  ChoiceState,
  Evaluate,
  EvaluateNumber,
  FailState,
  MapState,
  ParallelState,
  PassState,
  ResultWriter,
  Retrier,
  State,
  SucceedState,
  TaskState,
  WaitState,
} from './program.ts';
import { resources } from './resources.ts';
import { runtimeFault } from './states-error.ts';
import { compileExpression, compileTemplate } from './templates.ts';

/** What all states of one machine share while it is compiled. */
export interface Compilation {
  readonly machine: string;
  /** Every state name so far: they must be unique in the whole machine. */
  readonly names: Set<string>;
  /** State machines that tasks start by a fixed name or ARN. */
  readonly started: { site: Site; machine: string }[];
}

/** Where a chain of states stands. */
interface Nesting {
  readonly hasItem: boolean;
  readonly express: boolean;
}

const longestSeconds = 99_999_999;

const compileFlow = (fields: Fields, name: string) => ({
  name,
  input: compileFilter(fields.take('InputPath'), inField(fields.site, 'InputPath')),
  output: compileFilter(fields.take('OutputPath'), inField(fields.site, 'OutputPath')),
});

const compileNext = (fields: Fields): string | null => {
  const next = fields.text('Next');
  const end = fields.take('End');
  if (end !== undefined && end !== true) return reject(inField(fields.site, 'End'), 'must be true');
  if ((next === null) === (end === undefined)) {
    return reject(inField(fields.site, 'Next'), 'a state needs either Next or "End": true');
  }
  return next;
};

const mergeOf = (fields: Fields) =>
  compileMerge(fields.take('ResultPath'), inField(fields.site, 'ResultPath'));

const templateOf = (fields: Fields, name: string, site: Site = fields.site) =>
  compileTemplate(fields.take(name), inField(site, name));

/** `Name` or `NamePath`: a constant, or a number read from the state's input. Null where both are absent. */
const numberOrPath = (
  fields: Fields,
  name: string,
  rule: Parameters<typeof numberFault>[1],
): EvaluateNumber | null => {
  const fixed = fields.number(name, rule);
  const pathName = `${name}Path`;
  const path = fields.text(pathName);
  const site = inField(fields.site, pathName);
  if (path === null) return fixed === null ? null : () => fixed;
  if (fixed !== null) return reject(site, `${name} and ${pathName} exclude each other`);
  const read = compilePath(path, site);
  return (input, context) => {
    const value = read(input, context);
    const fault = numberFault(value, rule);
    if (fault === null) return value as number;
    throw runtimeFault(`state ${JSON.stringify(site.state)}, field ${site.field}: ${path} ${fault}`);
  };
};

const errorList = (fields: Fields, isLast: boolean): string[] => {
  const site = inField(fields.site, 'ErrorEquals');
  const names = fields.list('ErrorEquals') ?? [];
  const isName = (name: unknown): name is string => typeof name === 'string' && name !== '';
  if (names.length === 0 || !names.every(isName)) return reject(site, 'must list error names');
  if (names.includes('States.ALL') && (names.length > 1 || !isLast)) {
    return reject(site, 'States.ALL must stand alone and in the last entry');
  }
  return names;
};

const compileList = <T>(
  fields: Fields,
  name: string,
  compile: (entry: Fields, isLast: boolean) => T,
): T[] => {
  const entries = fields.list(name) ?? [];
  return entries.map((entry, index) => {
    const entryFields = readFields(entry, inIndex(inField(fields.site, name), index));
    const compiled = compile(entryFields, index === entries.length - 1);
    entryFields.text('Comment');
    entryFields.end();
    return compiled;
  });
};

const compileRetrier = (fields: Fields, isLast: boolean): Retrier => {
  const retrier = {
    errors: errorList(fields, isLast),
    intervalSeconds: fields.number('IntervalSeconds', { min: 1, max: longestSeconds }) ?? 1,
    backoffRate: fields.number('BackoffRate', { min: 1, fraction: true }) ?? 2,
    maxAttempts: fields.number('MaxAttempts', { min: 0, max: longestSeconds }) ?? 3,
    maxDelaySeconds: fields.number('MaxDelaySeconds', { min: 1, max: 31_622_400 }) ?? Infinity,
    fullJitter: fields.oneOf('JitterStrategy', ['FULL', 'NONE']) === 'FULL',
  };
  if (retrier.maxDelaySeconds <= retrier.intervalSeconds) {
    return reject(inField(fields.site, 'MaxDelaySeconds'), 'must be greater than IntervalSeconds');
  }
  return retrier;
};

const compileCatcher = (fields: Fields, isLast: boolean): Catcher => ({
  errors: errorList(fields, isLast),
  next: fields.neededText('Next'),
  merge: mergeOf(fields),
});

const compileWork = (fields: Fields, name: string) => ({
  ...compileFlow(fields, name),
  next: compileNext(fields),
  select: templateOf(fields, 'ResultSelector'),
  merge: mergeOf(fields),
  retriers: compileList(fields, 'Retry', compileRetrier),
  catchers: compileList(fields, 'Catch', compileCatcher),
});

const compilePass = (fields: Fields, name: string): PassState => {
  const parameters = templateOf(fields, 'Parameters');
  const fixed = fields.take('Result');
  return {
    type: 'Pass',
    ...compileFlow(fields, name),
    next: compileNext(fields),
    result: fixed === undefined ? parameters : () => fixed,
    merge: mergeOf(fields),
  };
};

const compileSucceed = (fields: Fields, name: string): SucceedState => ({
  type: 'Succeed',
  ...compileFlow(fields, name),
  next: null,
});

const compileFail = (fields: Fields, name: string): FailState => {
  const textOrPath = (field: string): Evaluate | null => {
    const fixed = fields.text(field);
    const expression = fields.take(`${field}Path`);
    const site = inField(fields.site, `${field}Path`);
    if (expression === undefined) return fixed === null ? null : () => fixed;
    if (fixed !== null) return reject(site, `${field} and ${field}Path exclude each other`);
    return compileExpression(expression, site);
  };
  return { type: 'Fail', name, next: null, error: textOrPath('Error'), cause: textOrPath('Cause') };
};

const compileWait = (fields: Fields, name: string): WaitState => {
  const ways = ['Seconds', 'SecondsPath', 'Timestamp', 'TimestampPath'].filter(fields.has);
  if (ways.length !== 1) {
    return reject(fields.site, 'Wait needs exactly one of Seconds, SecondsPath, Timestamp and TimestampPath');
  }
  const flow = { ...compileFlow(fields, name), next: compileNext(fields) };
  const seconds = numberOrPath(fields, 'Seconds', { min: 0, max: longestSeconds });
  if (seconds !== null) {
    return { type: 'Wait', ...flow, waitMs: (input, context) => seconds(input, context) * 1000 };
  }
  const fixed = fields.text('Timestamp');
  const path = fields.text('TimestampPath');
  const site = inField(fields.site, ways[0]!);
  if (fixed !== null && timestampMs(fixed) === undefined) {
    return reject(site, `must be a time such as 2030-01-31T12:00:00Z, not ${JSON.stringify(fixed)}`);
  }
  const read: Evaluate = path === null ? () => fixed : compilePath(path, site);
  return {
    type: 'Wait',
    ...flow,
    waitMs: (input, context, nowMs) => {
      const untilMs = timestampMs(read(input, context));
      if (untilMs === undefined) {
        throw runtimeFault(`state ${JSON.stringify(name)}, field ${site.field}: not a timestamp`);
      }
      return Math.max(0, untilMs - nowMs);
    },
  };
};

const compileChoice = (fields: Fields, name: string): ChoiceState => {
  const site = inField(fields.site, 'Choices');
  const choices = fields.list('Choices') ?? [];
  if (choices.length === 0) return reject(site, 'must not be empty');
  return {
    type: 'Choice',
    ...compileFlow(fields, name),
    rules: choices.map((choice, index) => compileRule(choice, inIndex(site, index))),
    next: fields.text('Default'),
  };
};

const mentionsToken = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.includes('$$.Task.Token')
    : typeof value === 'object' && value !== null && Object.values(value).some(mentionsToken);

const compileTask = (fields: Fields, name: string, compilation: Compilation, nesting: Nesting): TaskState => {
  const { site } = fields;
  const resource = fields.neededText('Resource');
  const known = Object.hasOwn(resources, resource) ? resources[resource] : undefined;
  if (known === undefined) {
    return reject(
      inField(site, 'Resource'),
      `unknown or unsupported integration ${JSON.stringify(resource)}`,
    );
  }
  if (nesting.express && (known.sync || known.token)) {
    return reject(inField(site, 'Resource'), `an EXPRESS item processor cannot wait for ${resource}`);
  }
  const parametersSite = { ...inField(site, 'Parameters'), hasToken: known.token };
  const parameters = fields.take('Parameters');
  const parameterFields = readFields(parameters ?? {}, parametersSite);
  for (const needed of known.needed) {
    if (!parameterFields.has(needed) && !parameterFields.has(`${needed}.$`)) {
      return reject(inField(parametersSite, needed), `${needed} is missing`);
    }
  }
  for (const parameter of [...known.needed, ...known.optional]) {
    parameterFields.take(parameter);
    parameterFields.take(`${parameter}.$`);
  }
  parameterFields.end();
  if (known.token && !mentionsToken(parameters)) {
    return reject(parametersSite, 'nobody could answer: $$.Task.Token is not in the message');
  }
  const machine = isObject(parameters) ? parameters.StateMachineArn : undefined;
  if (typeof machine === 'string') compilation.started.push({ site: parametersSite, machine });

  const fixedTimeout = fields.take('TimeoutSeconds');
  const timeoutSeconds = numberOrPath(fields, 'TimeoutSeconds', { min: 1, max: longestSeconds });
  if (timeoutSeconds === null) {
    return reject(inField(site, 'TimeoutSeconds'), 'every Task needs TimeoutSeconds or TimeoutSecondsPath');
  }
  const fixedHeartbeat = fields.take('HeartbeatSeconds');
  const heartbeatSeconds = numberOrPath(fields, 'HeartbeatSeconds', { min: 1, max: longestSeconds });
  if (heartbeatSeconds !== null && !known.token) {
    return reject(inField(site, 'HeartbeatSeconds'), 'only a .waitForTaskToken task can send heartbeats');
  }
  if (
    typeof fixedTimeout === 'number' &&
    typeof fixedHeartbeat === 'number' &&
    fixedHeartbeat >= fixedTimeout
  ) {
    return reject(inField(site, 'HeartbeatSeconds'), 'must be less than TimeoutSeconds');
  }
  return {
    type: 'Task',
    ...compileWork(fields, name),
    resource,
    parameters: compileTemplate(parameters, parametersSite),
    timeoutSeconds,
    heartbeatSeconds,
  };
};

const compileParallel = (
  fields: Fields,
  name: string,
  compilation: Compilation,
  nesting: Nesting,
): ParallelState => {
  const site = inField(fields.site, 'Branches');
  const branches = fields.list('Branches') ?? [];
  if (branches.length === 0) return reject(site, 'must not be empty');
  return {
    type: 'Parallel',
    ...compileWork(fields, name),
    parameters: templateOf(fields, 'Parameters'),
    branches: branches.map((branch, index) => {
      const branchFields = readFields(branch, inIndex(site, index));
      const chain = compileChain(branchFields, compilation, nesting);
      branchFields.end();
      return chain;
    }),
  };
};

/** `Parameters` of an S3 reader or writer: exactly these names, each plain or with `.$`. */
const objectParameters = (
  fields: Fields,
  needed: readonly string[],
  optional: readonly string[],
): Evaluate => {
  const parameters = fields.neededObject('Parameters');
  for (const name of needed) {
    if (!parameters.has(name) && !parameters.has(`${name}.$`)) {
      return reject(inField(parameters.site, name), `${name} is missing`);
    }
  }
  const template: Record<string, unknown> = {};
  for (const name of [...needed, ...optional].flatMap((plain) => [plain, `${plain}.$`])) {
    const value = parameters.take(name);
    if (value !== undefined) template[name] = value;
  }
  parameters.end();
  return compileTemplate(template, parameters.site);
};

const fixedResource = (fields: Fields, resource: string) => {
  if (fields.neededText('Resource') !== resource) {
    reject(inField(fields.site, 'Resource'), `only ${resource} is supported here`);
  }
};

const compileReader = (fields: Fields): MapState['reader'] => {
  fixedResource(fields, 'arn:aws:states:::s3:getObject');
  const config = fields.neededObject('ReaderConfig');
  if (config.oneOf('InputType', ['JSONL']) === null) {
    return reject(inField(config.site, 'InputType'), 'InputType is missing');
  }
  const maxItems = numberOrPath(config, 'MaxItems', { min: 0, max: 100_000_000 });
  config.end();
  const reader = { parameters: objectParameters(fields, ['Bucket', 'Key'], []), maxItems };
  fields.end();
  return reader;
};

const compileWriter = (fields: Fields): ResultWriter => {
  fixedResource(fields, 'arn:aws:states:::s3:putObject');
  const config = fields.object('WriterConfig');
  const writer: ResultWriter = {
    parameters: objectParameters(fields, ['Bucket', 'Prefix'], []),
    outputType: config?.oneOf('OutputType', ['JSON', 'JSONL']) ?? 'JSON',
    transformation: config?.oneOf('Transformation', ['NONE', 'COMPACT', 'FLATTEN']) ?? 'NONE',
  };
  config?.end();
  fields.end();
  return writer;
};

const compileMap = (fields: Fields, name: string, compilation: Compilation, nesting: Nesting): MapState => {
  const { site } = fields;
  const processorFields = fields.neededObject('ItemProcessor');
  const config = processorFields.object('ProcessorConfig');
  const mode = config?.oneOf('Mode', ['INLINE', 'DISTRIBUTED']) ?? 'INLINE';
  const distributed = mode === 'DISTRIBUTED';
  const execution = distributed ? config!.oneOf('ExecutionType', ['STANDARD', 'EXPRESS']) : null;
  if (distributed && execution === null) {
    return reject(inField(config!.site, 'ExecutionType'), 'ExecutionType is missing');
  }
  config?.end();
  const processor = compileChain(processorFields, compilation, {
    hasItem: !distributed,
    express: distributed ? execution === 'EXPRESS' : nesting.express,
  });
  processorFields.end();
  for (const field of ['ItemReader', 'ResultWriter', 'Label', ...toleranceFields]) {
    if (!distributed && fields.has(field)) {
      return reject(inField(site, field), `${field} needs "Mode": "DISTRIBUTED"`);
    }
  }
  if (fields.has('ItemReader') && fields.has('ItemsPath')) {
    return reject(inField(site, 'ItemsPath'), 'ItemReader and ItemsPath exclude each other');
  }
  const readerFields = fields.object('ItemReader');
  const writerFields = fields.object('ResultWriter');
  return {
    type: 'Map',
    ...compileWork(fields, name),
    distributed,
    label: fields.text('Label') ?? name,
    processor,
    items: compilePath(fields.text('ItemsPath') ?? '$', inField(site, 'ItemsPath')),
    reader: readerFields === null ? null : compileReader(readerFields),
    itemSelector: fields.has('ItemSelector')
      ? templateOf(fields, 'ItemSelector', { ...site, hasItem: true })
      : null,
    maxConcurrency: numberOrPath(fields, 'MaxConcurrency', { min: 0 }),
    toleratedFailureCount: numberOrPath(fields, 'ToleratedFailureCount', { min: 0 }),
    toleratedFailurePercentage: numberOrPath(fields, 'ToleratedFailurePercentage', {
      min: 0,
      max: 100,
      fraction: true,
    }),
    writer: writerFields === null ? null : compileWriter(writerFields),
  };
};

const toleranceFields = ['ToleratedFailureCount', 'ToleratedFailurePercentage'].flatMap((name) => [
  name,
  `${name}Path`,
]);

const compilers: Readonly<
  Record<string, (fields: Fields, name: string, compilation: Compilation, nesting: Nesting) => State>
> = {
  Choice: compileChoice,
  Fail: compileFail,
  Map: compileMap,
  Parallel: compileParallel,
  Pass: compilePass,
  Succeed: compileSucceed,
  Task: compileTask,
  Wait: compileWait,
};

const compileState = (name: string, value: unknown, compilation: Compilation, nesting: Nesting): State => {
  const site: Site = {
    machine: compilation.machine,
    state: name,
    field: '',
    hasItem: nesting.hasItem,
    hasToken: false,
  };
  if ([...name].length > 80) return reject(site, 'a state name has at most 80 characters');
  if (compilation.names.has(name)) return reject(site, 'another state of this machine has the same name');
  compilation.names.add(name);
  const fields = readFields(value, site);
  refuseOtherLanguage(fields);
  fields.text('Comment');
  const type = fields.neededText('Type');
  const compile = Object.hasOwn(compilers, type) ? compilers[type] : undefined;
  if (compile === undefined)
    return reject(inField(site, 'Type'), `unknown state type ${JSON.stringify(type)}`);
  const state = compile(fields, name, compilation, nesting);
  fields.end();
  return state;
};

export const refuseOtherLanguage = (fields: Fields): void => {
  const language = fields.text('QueryLanguage');
  if (language !== null && language !== 'JSONPath') {
    reject(
      inField(fields.site, 'QueryLanguage'),
      `only JSONPath is supported, not ${JSON.stringify(language)}`,
    );
  }
};

/** The states that may follow, and the field that says so. */
const successors = (state: State): [field: string, name: string][] => {
  const found: [string, string][] = [];
  if (state.next !== null) found.push([state.type === 'Choice' ? 'Default' : 'Next', state.next]);
  if (state.type === 'Choice') {
    state.rules.forEach((rule, index) => {
      found.push([`Choices[${index}].Next`, rule.next]);
    });
  }
  if ('catchers' in state) {
    state.catchers.forEach((catcher, index) => {
      found.push([`Catch[${index}].Next`, catcher.next]);
    });
  }
  return found;
};

/** Compiles `StartAt` and `States`; every state must be reachable and every target must exist. */
export const compileChain = (fields: Fields, compilation: Compilation, nesting: Nesting): Chain => {
  const { site } = fields;
  fields.text('Comment');
  const startAt = fields.neededText('StartAt');
  const definitions = fields.take('States');
  if (!isObject(definitions) || Object.keys(definitions).length === 0) {
    return reject(inField(site, 'States'), 'States is missing or empty');
  }
  const states = new Map(
    Object.entries(definitions).map(([name, value]) => [
      name,
      compileState(name, value, compilation, nesting),
    ]),
  );
  if (!states.has(startAt))
    return reject(inField(site, 'StartAt'), `there is no state ${JSON.stringify(startAt)}`);
  const reached = new Set([startAt]);
  for (const name of reached) {
    for (const [field, target] of successors(states.get(name)!)) {
      if (!states.has(target)) {
        reject({ ...site, state: name, field }, `there is no state ${JSON.stringify(target)}`);
      }
      reached.add(target);
    }
  }
  for (const name of states.keys()) {
    if (!reached.has(name)) reject({ ...site, state: name, field: '' }, 'this state can never be reached');
  }
  return { startAt, states };
};
