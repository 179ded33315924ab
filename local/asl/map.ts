import { randomUUID } from 'node:crypto';
import type { AslIntegrations } from './integrations.ts';
import type { Frame, Services } from './interpreter.ts';
import { createResultFiles, type ResultFiles } from './map-results.ts';
import type { Chain, ExecutionIdentity, MapState, StateContext } from './program.ts';
import type { Scope } from './scope.ts';
import { asStatesError, runtimeFault, StatesError } from './states-error.ts';
import { serviceError } from './tasks.ts';

type RunChain = (services: Services, chain: Chain, input: unknown, frame: Frame) => Promise<unknown>;

/** Parallel items of a Map without MaxConcurrency, by mode (quotas of Step Functions). */
const mostParallel = { inline: 40, distributed: 10_000 };

interface Items {
  readonly values: Iterable<unknown> | AsyncIterable<unknown>;
  /** Null where the file must be read to its end first. */
  readonly count: number | null;
}

async function* readItems(
  services: Services,
  bucket: string,
  key: string,
  maxItems: number,
): AsyncGenerator<unknown> {
  let left = maxItems;
  if (left <= 0) return;
  let line = 0;
  try {
    for await (const text of services.integrations.readLines(bucket, key)) {
      line += 1;
      if (text.trim() === '') continue;
      yield parseItem(text, key, line);
      left -= 1;
      if (left <= 0) return;
    }
  } catch (thrown) {
    if (thrown instanceof StatesError) throw thrown;
    const { message } = serviceError(thrown, 'States.ItemReaderFailed');
    throw new StatesError('States.ItemReaderFailed', `${key}: ${message}`);
  }
}

const parseItem = (text: string, key: string, line: number): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StatesError('States.ItemReaderFailed', `${key}, line ${line}: ${(error as Error).message}`);
  }
};

/** String parameters of an S3 reader or writer. */
const s3Parameters = (state: MapState, field: string, value: unknown, second: string): [string, string] => {
  const found = value as Readonly<Record<string, unknown>>;
  return ['Bucket', second].map((name) => {
    const text = found[name];
    if (typeof text === 'string') return text;
    throw runtimeFault(`state ${JSON.stringify(state.name)}, field ${field}.Parameters.${name}: no string`);
  }) as [string, string];
};

const findItems = (services: Services, state: MapState, input: unknown, context: StateContext): Items => {
  if (state.reader !== null) {
    const parameters = state.reader.parameters(input, context);
    const [bucket, key] = s3Parameters(state, 'ItemReader', parameters, 'Key');
    const maxItems = state.reader.maxItems?.(input, context) ?? 0;
    return { values: readItems(services, bucket, key, maxItems === 0 ? Infinity : maxItems), count: null };
  }
  const values = state.items(input, context);
  if (!Array.isArray(values)) {
    throw runtimeFault(`state ${JSON.stringify(state.name)}, field ItemsPath: the items are no array`);
  }
  return { values, count: values.length };
};

/**
 * Runs `each` for every item, at most `limit` at a time, pulling items only as places become free. The first
 * failure stops the scope, and with it all that runs in it. Returns how many items there were.
 */
const forEachItem = async (
  items: Items,
  limit: number,
  scope: Scope,
  each: (value: unknown, index: number) => Promise<void>,
): Promise<number> => {
  const outcome = Promise.withResolvers<number>();
  let running = 0;
  let started = 0;
  let allStarted = false;
  let wake: (() => void) | null = null;
  const fail = (error: unknown) => {
    outcome.reject(error);
    scope.abort(error);
  };
  const release = () => {
    running -= 1;
    wake?.();
    if (allStarted && running === 0) outcome.resolve(started);
  };
  const pump = async () => {
    for await (const value of items.values) {
      if (running >= limit) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = null;
      }
      if (scope.signal.aborted) return;
      running += 1;
      each(value, started).catch(fail).finally(release);
      started += 1;
    }
    allStarted = true;
    if (running === 0) outcome.resolve(started);
  };
  scope.signal.addEventListener('abort', () => outcome.reject(scope.signal.reason), { once: true });
  pump().catch(fail);
  return await outcome.promise;
};

/** One visit of a Map state. */
interface MapVisit {
  readonly services: Services;
  readonly state: MapState;
  readonly input: unknown;
  readonly context: StateContext;
  readonly frame: Frame;
  readonly runChain: RunChain;
}

/** A Map state, inline or distributed. */
export const runMap = async (visit: MapVisit): Promise<unknown> => {
  const { services, state, input, context } = visit;
  const items = findItems(services, state, input, context);
  const wanted = state.maxConcurrency?.(input, context) ?? 0;
  const ceiling = state.distributed ? mostParallel.distributed : mostParallel.inline;
  const limit = wanted === 0 ? ceiling : Math.min(wanted, ceiling);
  const scope = visit.frame.scope.child();
  const scoped: MapVisit = { ...visit, frame: { ...visit.frame, scope } };
  try {
    return await (state.distributed ? runDistributed : runInline)(scoped, items, limit);
  } finally {
    scope.end();
  }
};

const selectItem = ({ state, input, context }: MapVisit, index: number, value: unknown): unknown =>
  state.itemSelector === null ? value : state.itemSelector(input, { ...context, item: { index, value } });

const runInline = async (visit: MapVisit, items: Items, limit: number): Promise<unknown> => {
  const { services, state, frame, runChain } = visit;
  const results: unknown[] = [];
  await forEachItem(items, limit, frame.scope, async (value, index) => {
    const inner: Frame = { ...frame, item: { index, value } };
    results[index] = await runChain(services, state.processor, selectItem(visit, index, value), inner);
  });
  return results;
};

/** When a distributed Map has failed too often; with neither limit given, at its first failure. */
const createTolerance = (state: MapState, input: unknown, context: StateContext) => {
  const percentage = state.toleratedFailurePercentage?.(input, context) ?? null;
  const count = state.toleratedFailureCount?.(input, context) ?? (percentage === null ? 0 : Infinity);
  return (failed: number, total: number | null): boolean => {
    if (failed > count) return true;
    if (percentage === null || failed === 0) return false;
    return percentage === 0 || (total !== null && (failed / total) * 100 > percentage);
  };
};

const createChild = (
  services: Services,
  state: MapState,
  frame: Frame,
  input: unknown,
): ExecutionIdentity => {
  const name = randomUUID();
  const { machineId, machineName, id } = frame.execution;
  return {
    id: `${id}/${state.label}:${name}`,
    name,
    input,
    startedAtMs: services.clock.now(),
    machineId: `${machineId}/${state.label}`,
    machineName: `${machineName}/${state.label}`,
  };
};

const isoTime = (ms: number): string => new Date(ms).toISOString();

/** An ended child as Step Functions reports it in result files. */
const childRecord = (
  child: ExecutionIdentity,
  nowMs: number,
  end: { output: unknown } | { error: StatesError },
): Record<string, unknown> => ({
  ...('error' in end ? { Cause: end.error.causeText ?? '', Error: end.error.error ?? '' } : {}),
  ExecutionArn: child.id,
  Input: JSON.stringify(child.input),
  InputDetails: { Included: true },
  Name: child.name,
  ...('output' in end ? { Output: JSON.stringify(end.output), OutputDetails: { Included: true } } : {}),
  StartDate: isoTime(child.startedAtMs),
  StateMachineArn: child.machineId,
  Status: 'error' in end ? 'FAILED' : 'SUCCEEDED',
  StopDate: isoTime(nowMs),
});

const runDistributed = async (visit: MapVisit, items: Items, limit: number): Promise<unknown> => {
  const { services, state, input, context, frame, runChain } = visit;
  const { scope } = frame;
  const exceeds = createTolerance(state, input, context);
  const runId = randomUUID();
  const mapRunArn = `arn:aws:states:local:000000000000:mapRun:${frame.execution.machineName}/${state.label}:${runId}`;
  const tooMany = new StatesError(
    'States.ExceedToleratedFailureThreshold',
    `${mapRunArn}: more items failed than are tolerated`,
  );
  const files = openFiles(visit, runId);
  const results: unknown[] = [];
  let failed = 0;
  const runItem = async (value: unknown, index: number): Promise<void> => {
    const childInput = selectItem(visit, index, value);
    const child = createChild(services, state, frame, childInput);
    services.emit?.('ExecutionStarted', child, null);
    const childFrame: Frame = { execution: child, item: null, scope };
    const end = await runChain(services, state.processor, childInput, childFrame).then(
      (output) => ({ output }),
      (thrown: unknown) => ({ error: asStatesError(thrown) }),
    );
    scope.signal.throwIfAborted();
    const record = () => childRecord(child, services.clock.now(), end);
    if ('output' in end) {
      services.emit?.('ExecutionSucceeded', child, null);
      if (files === null) results[index] = end.output;
      else await files.succeeded(end.output, record);
      return;
    }
    services.emit?.('ExecutionFailed', child, null, end.error);
    failed += 1;
    if (files === null) results[index] = record();
    else await files.failed(record());
    if (exceeds(failed, items.count)) throw tooMany;
  };
  const failure = await forEachItem(items, limit, scope, runItem).then(
    (total) => (exceeds(failed, total) ? tooMany : null),
    (error: unknown) => {
      if (error === tooMany) return tooMany;
      files?.discard(error);
      throw error;
    },
  );
  const written = await files?.finish(mapRunArn);
  if (failure !== null) throw failure;
  return written ?? results;
};

const openFiles = (visit: MapVisit, runId: string): ResultFiles | null => {
  const { services, state, input, context, frame } = visit;
  const { writer } = state;
  if (writer === null) return null;
  const [bucket, prefix] = s3Parameters(state, 'ResultWriter', writer.parameters(input, context), 'Prefix');
  const folder = prefix === '' ? runId : `${prefix.replace(/\/$/, '')}/${runId}`;
  const write: AslIntegrations['writeLines'] = (...file) => services.integrations.writeLines(...file);
  return createResultFiles({ bucket, folder, writer, write, onFailure: frame.scope.abort });
};
