import type { AslIntegrations } from './integrations.ts';
import type { ResultWriter } from './program.ts';
import { StatesError } from './states-error.ts';

/** Lines on their way to a writer: `push` waits once the writer is this many lines behind. */
const bufferedLines = 256;

const createLineQueue = () => {
  let waiting: string[] = [];
  let state: { kind: 'open' | 'ended' } | { kind: 'broken'; error: unknown } = { kind: 'open' };
  let wakeReader = Promise.withResolvers<void>();
  let room = Promise.withResolvers<void>();
  const settle = (next: typeof state) => {
    if (state.kind !== 'open') return;
    state = next;
    wakeReader.resolve();
    room.resolve();
  };
  async function* lines(): AsyncGenerator<string> {
    for (;;) {
      await wakeReader.promise;
      if (state.kind === 'broken') throw state.error;
      const batch = waiting;
      waiting = [];
      if (state.kind === 'open') wakeReader = Promise.withResolvers();
      room.resolve();
      room = Promise.withResolvers();
      yield* batch;
      if (state.kind === 'ended' && waiting.length === 0) return;
    }
  }
  return {
    lines,
    push: (line: string): Promise<void> | undefined => {
      waiting.push(line);
      wakeReader.resolve();
      return state.kind === 'open' && waiting.length >= bufferedLines ? room.promise : undefined;
    },
    end: () => settle({ kind: 'ended' }),
    fail: (error: unknown) => settle({ kind: 'broken', error }),
  };
};

/** The files of one Map Run, in the order in which its items end. */
export interface ResultFiles {
  succeeded(output: unknown, record: () => unknown): Promise<void>;
  failed(record: unknown): Promise<void>;
  /** Completes the files, writes `manifest.json` and returns the Map state's result. */
  finish(mapRunArn: string): Promise<unknown>;
  /** Nothing of the open files becomes visible. */
  discard(reason: unknown): void;
}

interface Target {
  readonly bucket: string;
  readonly folder: string;
  readonly writer: ResultWriter;
  readonly write: AslIntegrations['writeLines'];
  readonly onFailure: (error: StatesError) => void;
}

/**
 * Streams results into `<folder>/SUCCEEDED_0` and `<folder>/FAILED_0`, as JSON lines (`.jsonl`) or as a JSON
 * array with one element a line (`.json`), by `WriterConfig`; a file without results is not written. Names,
 * transformations and manifest as on Step Functions ("ResultWriter (Map)"), except that a file is never split.
 */
export const createResultFiles = ({ bucket, folder, writer, write, onFailure }: Target): ResultFiles => {
  const asLines = writer.outputType === 'JSONL';
  const writerFailed = (thrown: unknown) =>
    new StatesError('States.ResultWriterFailed', thrown instanceof Error ? thrown.message : String(thrown));

  const createFile = (name: string) => {
    const key = `${folder}/${name}_0.${asLines ? 'jsonl' : 'json'}`;
    let size = 0;
    let open: { queue: ReturnType<typeof createLineQueue>; written: Promise<void> } | null = null;
    const push = (line: string) => {
      size += Buffer.byteLength(line) + 1;
      return open!.queue.push(line);
    };
    const begin = () => {
      const queue = createLineQueue();
      const written = write(bucket, key, queue.lines()).catch((thrown) => {
        queue.fail(thrown);
        throw writerFailed(thrown);
      });
      written.catch(onFailure);
      return { queue, written };
    };
    return {
      add: async (value: unknown): Promise<void> => {
        const first = open === null;
        open ??= begin();
        const lead = first ? '[' : ',';
        await push(`${asLines ? '' : lead}${JSON.stringify(value)}`);
      },
      finish: async (): Promise<{ Key: string; Size: number }[]> => {
        if (open === null) return [];
        if (!asLines) await push(']');
        open.queue.end();
        await open.written;
        return [{ Key: key, Size: size }];
      },
      discard: (reason: unknown) => open?.queue.fail(reason),
    };
  };

  const succeeded = createFile('SUCCEEDED');
  const failed = createFile('FAILED');
  return {
    succeeded: async (output, record) => {
      if (writer.transformation === 'NONE') return await succeeded.add(record());
      if (writer.transformation === 'COMPACT' || !Array.isArray(output)) return await succeeded.add(output);
      for (const element of output) await succeeded.add(element);
    },
    failed: failed.add,
    finish: async (mapRunArn) => {
      const ResultFiles = { FAILED: await failed.finish(), PENDING: [], SUCCEEDED: await succeeded.finish() };
      const manifest = { DestinationBucket: bucket, MapRunArn: mapRunArn, ResultFiles };
      const key = `${folder}/manifest.json`;
      try {
        await write(bucket, key, single(JSON.stringify(manifest)));
      } catch (thrown) {
        throw writerFailed(thrown);
      }
      return { MapRunArn: mapRunArn, ResultWriterDetails: { Bucket: bucket, Key: key } };
    },
    discard: (reason) => {
      succeeded.discard(reason);
      failed.discard(reason);
    },
  };
};

async function* single(line: string): AsyncGenerator<string> {
  yield line;
}
