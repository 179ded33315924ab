import { StateMachine } from 'aws-local-stepfunctions';
import { describe, expect, it } from 'vitest';
import { type ConformanceCase, conformanceCases } from './conformance-cases.ts';
import { createFixture } from './fixture.ts';

const runOurs = async ({ machine, input, functions }: ConformanceCase) => {
  const { runtime, clock } = createFixture({ machines: { main: machine }, functions: functions?.() });
  const id = await runtime.start('main', 'case', input ?? {});
  await clock.advance(3600_000);
  const { status, output, error } = await runtime.result(id);
  return status === 'SUCCEEDED' ? { output } : { error };
};

/** Names of the Task states at any depth, with the function each invokes. */
const tasksOf = (value: unknown): [state: string, functionName: string][] => {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (inner?.Type === 'Task') return [[key, inner.Parameters.FunctionName] as [string, string]];
    return tasksOf(inner);
  });
};

type Peer = ConstructorParameters<typeof StateMachine>[0];

const runPeer = async ({ machine, input, functions }: ConformanceCase) => {
  const made = functions?.();
  const tasks = tasksOf(machine);
  const handlers = tasks.map(([state, functionName]) => [
    state,
    async ({ Payload }: { Payload: never }) => ({
      ExecutedVersion: '$LATEST',
      Payload: await made?.[functionName]?.(Payload, new AbortController().signal),
      StatusCode: 200,
    }),
  ]);
  const noPause = Object.fromEntries([...tasks.map(([state]) => state), 'Only'].map((state) => [state, 0]));
  const execution = new StateMachine(machine as Peer, { validationOptions: { noValidate: true } }).run(
    (input ?? {}) as never,
    {
      overrides: { taskResourceLocalHandlers: Object.fromEntries(handlers), retryIntervalOverrides: noPause },
    },
  );
  return await execution.result.then(
    (output) => ({ output }),
    (error: Error) => ({ error: error.cause instanceof Error ? error.cause.name : error.name }),
  );
};

describe('the Amazon States Language, by its specification', () => {
  it('has cases enough to mean something, with names of their own', () => {
    expect(conformanceCases.length).toBeGreaterThan(100);
    expect(new Set(conformanceCases.map(({ name }) => name)).size).toBe(conformanceCases.length);
  });

  it.each(conformanceCases)('$name', async (conformanceCase) => {
    const outcome = await runOurs(conformanceCase);

    expect(outcome).toEqual(conformanceCase.expect);
  });
});

describe('the same cases in aws-local-stepfunctions', () => {
  it.each(conformanceCases.filter(({ alone }) => alone === undefined))('$name', async (conformanceCase) => {
    const outcome = await runPeer(conformanceCase);

    expect(outcome).toEqual(conformanceCase.expect);
  });
});
