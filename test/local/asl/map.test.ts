import { describe, expect, it } from 'vitest';
import { createFixture, invoke, machineOf, named } from './fixture.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `{"n":${index}}`);

const reader = (config: object = {}) => ({
  Resource: 'arn:aws:states:::s3:getObject',
  ReaderConfig: { InputType: 'JSONL', ...config },
  Parameters: { Bucket: 'runs', 'Key.$': '$.key' },
});

const writer = (config?: object) => ({
  Resource: 'arn:aws:states:::s3:putObject',
  Parameters: { Bucket: 'runs', 'Prefix.$': '$.prefix' },
  ...(config === undefined ? {} : { WriterConfig: config }),
});

const distributedMap = (
  fields: object,
  states: Record<string, object> = { Work: invoke('work', { OutputPath: '$.Payload', End: true }) },
) =>
  machineOf({
    Groups: {
      Type: 'Map',
      ItemReader: reader(),
      ItemProcessor: {
        ProcessorConfig: { Mode: 'DISTRIBUTED', ExecutionType: 'STANDARD' },
        ...machineOf(states),
      },
      End: true,
      ...fields,
    },
  });

const failsFor = (failing: (n: number) => boolean) => ({
  work: ({ n }: { n: number }) => {
    if (failing(n)) throw named('ViewFailed', `view ${n}`);
    return { done: n };
  },
});

const input = { key: 'groups.jsonl', prefix: 'results/lane-a', limit: 2, share: 25, most: 3 };

describe('a distributed Map over a JSONL file', () => {
  it('gives the outputs in the order of the lines, however they end', async () => {
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    const { runtime, clock } = createFixture({
      machines: { main: distributedMap({}) },
      files: { 'runs/groups.jsonl': [...numbers(2), '', ...numbers(4).slice(2), ' '] },
      functions: {
        work: async ({ n }: { n: number }) => {
          await gates[n]?.promise;
          return n * 10;
        },
      },
    });
    const id = await runtime.start('main', 'run-1', input);
    for (const gate of gates.toReversed()) {
      await clock.settle();
      gate.resolve();
    }

    expect((await runtime.result(id)).output).toEqual([0, 10, 20, 30]);
  });

  it('pulls lines only as places become free', async () => {
    let pulled = 0;
    let running = 0;
    let most = 0;
    const gates: (() => void)[] = [];
    const { runtime, clock } = createFixture({
      machines: { main: distributedMap({ MaxConcurrencyPath: '$.most' }) },
      functions: {
        work: async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => gates.push(resolve));
          running -= 1;
        },
      },
      integrations: {
        readLines: async function* () {
          for (const line of numbers(50)) {
            pulled += 1;
            yield line;
          }
        },
      },
    });
    const id = await runtime.start('main', 'run-1', input);
    await clock.settle();
    const pulledAtFirst = pulled;
    while ((await runtime.describe(id)).status === 'RUNNING') {
      gates.shift()?.();
      await clock.settle();
    }

    expect(pulledAtFirst).toBe(4);
    expect(pulled).toBe(50);
    expect(most).toBe(3);
    expect((await runtime.result(id)).output).toHaveLength(50);
  });

  it('runs each child as an execution of its own', async () => {
    const { run } = createFixture({
      machines: {
        main: distributedMap(
          {
            ItemSelector: {
              'value.$': '$$.Map.Item.Value.n',
              'index.$': '$$.Map.Item.Index',
              'key.$': '$.key',
            },
            Label: 'Lane',
          },
          {
            Look: {
              Type: 'Pass',
              Parameters: {
                'input.$': '$$.Execution.Input',
                'id.$': '$$.Execution.Id',
                'name.$': '$$.Execution.Name',
              },
              End: true,
            },
          },
        ),
      },
      files: { 'runs/groups.jsonl': ['{"n":7}', '{"n":8}'] },
    });

    const output = (await run(input)).output as { input: object; id: string; name: string }[];

    expect(output.map((child) => child.input)).toEqual([
      { value: 7, index: 0, key: 'groups.jsonl' },
      { value: 8, index: 1, key: 'groups.jsonl' },
    ]);
    expect(new Set(output.map(({ name }) => name)).size).toBe(2);
    expect(output[0]?.id).toBe(
      `arn:aws:states:local:000000000000:execution:main:run-1/Lane:${output[0]?.name}`,
    );
  });

  it('stops reading at MaxItems', async () => {
    const { run } = createFixture({
      machines: { main: distributedMap({ ItemReader: reader({ MaxItems: 3 }) }) },
      files: { 'runs/groups.jsonl': numbers(10) },
      functions: failsFor(() => false),
    });

    expect((await run(input)).output).toEqual([{ done: 0 }, { done: 1 }, { done: 2 }]);
  });

  it('fails with States.ItemReaderFailed for a missing file and a broken line, and says where', async () => {
    const { run } = createFixture({
      machines: { main: distributedMap({}) },
      files: { 'runs/broken.jsonl': ['{"n":1}', '{"n":'] },
      functions: failsFor(() => false),
    });

    const missing = await run(input, 'main', 'one');
    const broken = await run({ ...input, key: 'broken.jsonl' }, 'main', 'two');

    expect(missing).toMatchObject({
      error: 'States.ItemReaderFailed',
      cause: 'groups.jsonl: no runs/groups.jsonl',
    });
    expect(broken.error).toBe('States.ItemReaderFailed');
    expect(broken.cause).toContain('broken.jsonl, line 2');
  });
});

describe('tolerated failures', () => {
  const statusOf = async (fields: object, failing: (n: number) => boolean, count = 20) => {
    const { run } = createFixture({
      machines: { main: distributedMap({ MaxConcurrency: 1, ...fields }) },
      files: { 'runs/groups.jsonl': numbers(count) },
      functions: failsFor(failing),
    });
    const { status, error } = await run(input);
    return error ?? status;
  };
  const tooMany = 'States.ExceedToleratedFailureThreshold';

  it.each([
    ['none by default', {}, 1, tooMany],
    ['as many as the count', { ToleratedFailureCount: 2 }, 2, 'SUCCEEDED'],
    ['not one more', { ToleratedFailureCount: 2 }, 3, tooMany],
    ['a count from the input', { ToleratedFailureCountPath: '$.limit' }, 3, tooMany],
    ['as much as the percentage of 20 items', { ToleratedFailurePercentage: 25 }, 5, 'SUCCEEDED'],
    ['not more than the percentage', { ToleratedFailurePercentage: 25 }, 6, tooMany],
    ['a percentage from the input', { ToleratedFailurePercentagePath: '$.share' }, 6, tooMany],
    ['a percentage of 0', { ToleratedFailurePercentage: 0 }, 1, tooMany],
    ['all of them', { ToleratedFailurePercentage: 100 }, 20, 'SUCCEEDED'],
    [
      'whichever limit is met first',
      { ToleratedFailurePercentage: 50, ToleratedFailureCount: 2 },
      3,
      tooMany,
    ],
  ])('%s', async (_what, fields, failures, expected) => {
    expect(await statusOf(fields, (n) => n < failures)).toBe(expected);
  });

  it('stands for a failed child as a record among the outputs, and in the events', async () => {
    const { run, events } = createFixture({
      machines: { main: distributedMap({ ToleratedFailureCount: 1 }) },
      files: { 'runs/groups.jsonl': numbers(3) },
      functions: failsFor((n) => n === 1),
    });

    const output = (await run(input)).output as unknown[];

    expect(output[0]).toEqual({ done: 0 });
    expect(output[1]).toMatchObject({ Status: 'FAILED', Error: 'ViewFailed', Input: '{"n":1}' });
    expect(output[2]).toEqual({ done: 2 });
    const { ExecutionArn } = output[1] as { ExecutionArn: string };
    const ended = events.filter(({ type }) => type === 'ExecutionFailed');
    expect(ended).toMatchObject([{ executionId: ExecutionArn, error: 'ViewFailed' }]);
  });

  it('stops the children that still run, and reads no further', async () => {
    const signals: AbortSignal[] = [];
    let pulled = 0;
    const { run, clock } = createFixture({
      machines: { main: distributedMap({ MaxConcurrency: 3 }) },
      functions: {
        work: ({ n }: { n: number }, signal: AbortSignal) => {
          if (n === 2) throw named('ViewFailed');
          signals.push(signal);
          return new Promise(() => {});
        },
      },
      integrations: {
        readLines: async function* () {
          for (const line of numbers(1000)) {
            pulled += 1;
            yield line;
          }
        },
      },
    });

    const { error } = await run(input);

    expect(error).toBe(tooMany);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(pulled).toBeLessThan(6);
    expect(clock.sleepers()).toBe(0);
  });

  it('counts a child whose input is over the payload limit', async () => {
    const large = JSON.stringify({ n: 2, text: 'x'.repeat(1000) });
    const { run, files } = createFixture({
      machines: {
        main: distributedMap({ ToleratedFailureCount: 1, ResultWriter: writer({ OutputType: 'JSONL' }) }),
      },
      files: { 'runs/groups.jsonl': ['{"n":1}', large] },
      functions: failsFor(() => false),
      payloadLimitBytes: 1000,
    });

    const { status } = await run(input);

    const failed = Object.keys(files).find((key) => key.endsWith('FAILED_0.jsonl'))!;
    expect(status).toBe('SUCCEEDED');
    expect(JSON.parse(files[failed]![0]!)).toMatchObject({ Error: 'States.DataLimitExceeded', Input: large });
  });
});

describe('the result writer', () => {
  const runWith = async (
    config: object | undefined,
    fields: object = {},
    output: (n: number) => unknown = (n) => n,
  ) => {
    const fixture = createFixture({
      machines: {
        main: distributedMap({
          ResultWriter: writer(config),
          MaxConcurrency: 1,
          ToleratedFailureCount: 1,
          ...fields,
        }),
      },
      files: { 'runs/groups.jsonl': numbers(4) },
      functions: {
        work: ({ n }: { n: number }) => {
          if (n === 2) throw named('ViewFailed', 'view 2');
          return output(n);
        },
      },
    });
    const result = await fixture.run(input);
    const manifestKey = Object.keys(fixture.files).find((key) => key.endsWith('/manifest.json'));
    const manifest = manifestKey === undefined ? null : JSON.parse(fixture.files[manifestKey]!.join('\n'));
    const linesOf = (kind: 'SUCCEEDED' | 'FAILED') =>
      fixture.files[`runs/${manifest.ResultFiles[kind][0].Key}`]!;
    return { ...fixture, result, manifestKey, manifest, linesOf };
  };

  it('writes outputs and failures as JSON lines, and a manifest that names them', async () => {
    const { result, manifestKey, manifest, linesOf } = await runWith({
      OutputType: 'JSONL',
      Transformation: 'COMPACT',
    });

    const { MapRunArn, ResultWriterDetails } = result.output as {
      MapRunArn: string;
      ResultWriterDetails: { Bucket: string; Key: string };
    };
    expect(ResultWriterDetails.Bucket).toBe('runs');
    expect(`runs/${ResultWriterDetails.Key}`).toBe(manifestKey);
    const folder = `results/lane-a/${MapRunArn.split(':').at(-1)}`;
    expect(ResultWriterDetails.Key).toBe(`${folder}/manifest.json`);
    expect(linesOf('SUCCEEDED')).toEqual(['0', '1', '3']);
    expect(linesOf('FAILED').map((line) => JSON.parse(line))).toMatchObject([
      { Status: 'FAILED', Error: 'ViewFailed', Input: '{"n":2}' },
    ]);
    expect(manifest).toEqual({
      DestinationBucket: 'runs',
      MapRunArn,
      ResultFiles: {
        FAILED: [{ Key: `${folder}/FAILED_0.jsonl`, Size: linesOf('FAILED')[0]!.length + 1 }],
        PENDING: [],
        SUCCEEDED: [{ Key: `${folder}/SUCCEEDED_0.jsonl`, Size: 6 }],
      },
    });
  });

  it('writes JSON arrays of execution records where nothing else is asked', async () => {
    const { manifest, linesOf } = await runWith(undefined);

    const records = JSON.parse(linesOf('SUCCEEDED').join('\n'));

    expect(manifest.ResultFiles.SUCCEEDED[0].Key).toMatch(/\/SUCCEEDED_0\.json$/);
    expect(records).toMatchObject(
      [0, 1, 3].map((n) => ({ Status: 'SUCCEEDED', Input: `{"n":${n}}`, Output: `${n}` })),
    );
  });

  it('flattens arrays', async () => {
    const config = { OutputType: 'JSONL', Transformation: 'FLATTEN' };

    const { linesOf } = await runWith(config, {}, (n) => (n === 1 ? n : [n, { n }]));

    expect(linesOf('SUCCEEDED')).toEqual(['0', '{"n":0}', '1', '3', '{"n":3}']);
  });

  it('writes what there is when too many fail', async () => {
    const { result, manifest, linesOf } = await runWith(
      { OutputType: 'JSONL', Transformation: 'COMPACT' },
      { ToleratedFailureCount: 0 },
    );

    expect(result.error).toBe('States.ExceedToleratedFailureThreshold');
    expect(linesOf('SUCCEEDED')).toEqual(['0', '1']);
    expect(manifest.ResultFiles.FAILED).toHaveLength(1);
  });

  it('writes a manifest without files for no items', async () => {
    const { run, files } = createFixture({
      machines: { main: distributedMap({ ResultWriter: writer() }) },
      files: { 'runs/groups.jsonl': [] },
    });

    const { status } = await run(input);

    const keys = Object.keys(files).filter((key) => key.startsWith('runs/results/'));
    expect(status).toBe('SUCCEEDED');
    expect(keys).toHaveLength(1);
    expect(JSON.parse(files[keys[0]!]![0]!).ResultFiles).toEqual({ FAILED: [], PENDING: [], SUCCEEDED: [] });
  });

  it('fails with States.ResultWriterFailed, which a Catch may name', async () => {
    const machine = distributedMap({
      ResultWriter: writer(),
      Catch: [{ ErrorEquals: ['States.ResultWriterFailed'], Next: 'Saved' }],
    });
    const { run } = createFixture({
      machines: { main: { ...machine, States: { ...machine.States, Saved: { Type: 'Succeed' } } } },
      files: { 'runs/groups.jsonl': numbers(1000) },
      functions: failsFor(() => false),
      integrations: {
        writeLines: async () => {
          throw new Error('disk full');
        },
      },
    });

    expect((await run(input)).output).toEqual({ Error: 'States.ResultWriterFailed', Cause: 'disk full' });
  });

  it('breaks off its open files when the execution is stopped', async () => {
    const broken: string[] = [];
    const { runtime, clock } = createFixture({
      machines: { main: distributedMap({ ResultWriter: writer(), MaxConcurrency: 2 }) },
      files: { 'runs/groups.jsonl': numbers(5) },
      functions: { work: ({ n }: { n: number }) => (n < 2 ? n : new Promise(() => {})) },
      integrations: {
        writeLines: async (_bucket, key, lines) => {
          try {
            for await (const _line of lines);
          } catch (error) {
            broken.push(key);
            throw error;
          }
        },
      },
    });
    const id = await runtime.start('main', 'run-1', input);
    await clock.settle();

    await runtime.stop(id, 'enough');
    await clock.settle();

    expect((await runtime.describe(id)).status).toBe('ABORTED');
    expect(broken).toEqual([expect.stringMatching(/SUCCEEDED_0\.json$/)]);
  });

  it('holds few results at a time while it writes many, and waits for a slow writer', async () => {
    let ended = 0;
    let written = 0;
    let furthest = 0;
    const { run } = createFixture({
      machines: {
        main: distributedMap({ ResultWriter: writer({ OutputType: 'JSONL' }), MaxConcurrency: 10 }),
      },
      functions: {
        work: () => {
          ended += 1;
          return { text: 'row' };
        },
      },
      integrations: {
        readLines: async function* () {
          yield* numbers(5000);
        },
        writeLines: async (_bucket, _key, lines) => {
          for await (const _line of lines) {
            written += 1;
            furthest = Math.max(furthest, ended - written);
            if (written % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
          }
        },
      },
    });

    await run(input);

    expect(written).toBe(5001);
    expect(furthest).toBeLessThan(600);
  });
});

describe('an inline Map', () => {
  it('stops the other items when one fails', async () => {
    const signals: AbortSignal[] = [];
    const { run, clock } = createFixture({
      machines: {
        main: machineOf({
          Lanes: { Type: 'Map', ItemProcessor: machineOf({ Work: invoke('work') }), End: true },
        }),
      },
      functions: {
        work: async (n: number, signal: AbortSignal) => {
          signals.push(signal);
          if (n === 3) throw named('LaneStopped');
          return await new Promise(() => {});
        },
      },
    });

    const { error } = await run([1, 2, 3]);

    expect(error).toBe('LaneStopped');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]);
    expect(clock.sleepers()).toBe(0);
  });
});
