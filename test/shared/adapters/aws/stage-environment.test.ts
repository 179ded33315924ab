import { beforeEach, describe, expect, it, vi } from 'vitest';
import { keys } from '../../../../shared/keys.ts';

const run = 'demo-0123456789ab';

/** What the services saw and hold. */
const seen = vi.hoisted(() => ({
  objects: new Map<string, string>(),
  limits: [] as [string, number | null][],
  dropped: [] as string[],
  succeeded: [] as unknown[],
  hidden: [] as [string, string, number][],
  metrics: [] as [object, object][],
  secretsRead: [] as string[],
  clientsMade: 0,
}));

vi.hoisted(() => {
  Object.assign(process.env, {
    TURNSWEEP_BUCKET: 'bucket',
    TURNSWEEP_LEDGER_TABLE: 'ledger',
    TURNSWEEP_QUEUE_URL_PREFIX: 'https://sqs.example/1/turnsweep-',
    TURNSWEEP_DEPLOYMENT: 'turnsweep',
    TURNSWEEP_TIMEOUT_SECONDS: '100',
    TURNSWEEP_VISIBILITY_SECONDS: '600',
    TURNSWEEP_MAX_RECEIVE_COUNT: '4',
    TURNSWEEP_RETURN_SECONDS: '40,200',
    AWS_REGION: 'us-east-1',
  });
});

vi.mock('../../../../shared/adapters/aws/s3-object-store.ts', () => ({
  createS3ObjectStore: () => ({ getText: async (key: string) => seen.objects.get(key) ?? null }),
}));
vi.mock('../../../../shared/adapters/aws/dynamodb-ledger.ts', () => ({
  createDynamodbLedger: () => ({
    setLimit: async (account: string, limit: number | null) => void seen.limits.push([account, limit]),
    dropReservations: async (account: string) => void seen.dropped.push(account),
    takeLease: async () => true,
    releaseLease: async () => {},
    leaseOwner: async () => null,
    balance: async () => ({
      spentMicroUsd: 3_000_000,
      reservedMicroUsd: 1_000_000,
      limitMicroUsd: 5_000_000,
    }),
  }),
}));
vi.mock('../../../../shared/adapters/aws/step-functions-workflow.ts', () => ({
  createStepFunctionsWorkflow: () => ({
    succeed: async (_token: string, output: unknown) => {
      seen.succeeded.push(output);
      return true;
    },
    fail: async () => true,
    heartbeat: async () => true,
  }),
}));
vi.mock('../../../../shared/adapters/aws/sqs-stage-queue.ts', () => ({
  createSqsStageQueue: ({ queueUrl }: { queueUrl: string }) => ({
    extend: async (receipt: string, seconds: number) => void seen.hidden.push([queueUrl, receipt, seconds]),
  }),
}));
vi.mock('../../../../shared/adapters/aws/secrets-manager-secrets.ts', () => ({
  createSecretsManagerSecrets: ({ nameOf }: { nameOf: (name: string) => string }) => ({
    refresh: async (name: string) => {
      seen.secretsRead.push(nameOf(name));
      return 'a key';
    },
  }),
}));
vi.mock('../../../../shared/adapters/aws/emf-metrics.ts', () => ({
  createEmfMetrics: () => ({
    put: (dimensions: object, values: object) => void seen.metrics.push([dimensions, values]),
  }),
}));
vi.mock('../../../../shared/adapters/aws/structured-log.ts', () => ({
  createStructuredLog: () => ({ error: () => {} }),
}));
vi.mock('../../../../shared/providers/registry.ts', () => ({
  createModelClient: () => {
    seen.clientsMade += 1;
    return { close: async () => {} };
  },
  createChatCallerFor: () => ({ close: async () => {} }),
  providerOf: () => ({ clipForms: () => ({}), capabilities: () => ({}) }),
}));

const { generateTurnsHandler, planSweepHandler, planningPorts } = await import(
  '../../../../shared/adapters/aws/stage-environment.ts'
);

const lane = {
  id: 'gpt',
  displayName: 'GPT',
  family: null,
  apiKeyEnv: 'GPT_KEY',
  attempts: 3,
  maxInFlight: 9,
};
const settings = {
  v: 1,
  run,
  seed: 1,
  taskIds: [],
  budgetMicroUsd: 5_000_000,
  lanes: [
    {
      ...lane,
      deadlineSeconds: 600,
      backoff: { baseSeconds: 1, maxSeconds: 2 },
      price: null,
      budgetMicroUsd: null,
    },
  ],
  judge: null,
};
const contract = {
  v: 1,
  name: 'demo',
  benchmark: {
    kind: 'return',
    id: 'b',
    interfaces: ['i'],
    taskCount: 0,
    taskIdsSha256: '',
    mediaSha256: null,
  },
  lanes: [
    {
      id: 'gpt',
      provider: 'openai',
      model: 'm',
      baseUrl: 'https://models.example/v1',
      recordingSha256: null,
      modalities: ['V'],
      maxTokens: 10,
      retryMaxTokens: null,
      settings: {},
    },
  ],
  reuseIdenticalRequests: false,
};

const delivery = (receiveCount: number) => ({
  Records: [
    {
      messageId: 'm1',
      receiptHandle: 'receipt',
      eventSourceARN: 'arn:aws:sqs:us-east-1:1:turnsweep-lane-gpt',
      attributes: { ApproximateReceiveCount: String(receiveCount) },
      body: JSON.stringify({
        v: 1,
        taskToken: 'token',
        run,
        lane: 'gpt',
        groupId: 'g',
        viewId: 'v',
        cap: 'first',
      }),
    },
  ],
});
const withTimeLeft = (ms: number) => ({ getRemainingTimeInMillis: () => ms });
const outcome = {
  status: 'done',
  requestId: null,
  kind: null,
  cap: 'first',
  attempt: 0,
  waitSeconds: 0,
  view: null,
} as const;

beforeEach(() => {
  for (const list of [
    seen.limits,
    seen.dropped,
    seen.succeeded,
    seen.hidden,
    seen.metrics,
    seen.secretsRead,
  ]) {
    list.length = 0;
  }
  seen.objects.clear();
  seen.objects.set(keys.run.contract(run), JSON.stringify({ hash: '0123456789ab', contract }));
  seen.objects.set(keys.run.settings(run), JSON.stringify(settings));
  seen.clientsMade = 0;
});

describe('the generating function', () => {
  it('gives its core a lane with the key of the deployment and a deadline that fits its own time', async () => {
    let deadlineSeconds = 0;
    const handler = generateTurnsHandler((ports) => async (message) => {
      const atWork = await ports.laneAtWork(message.run, message.lane);
      deadlineSeconds = atWork.settings.deadlineSeconds;
      return outcome;
    });

    const response = await handler(delivery(1), withTimeLeft(100_000));
    await handler(delivery(1), withTimeLeft(100_000));

    expect(response).toEqual({ batchItemFailures: [] });
    expect(seen.succeeded).toEqual([outcome, outcome]);
    expect(seen.secretsRead).toEqual(['turnsweep/GPT_KEY']);
    expect(seen.clientsMade).toBe(1);
    // 100 s of the function less 15 s for recording.
    expect(deadlineSeconds).toBe(85);
  });

  it.each([
    [100_001, true],
    [100_000, false],
  ])('with %i ms left says whether another call fits: %s', async (leftMs, fits) => {
    let said: boolean | null = null;
    const handler = generateTurnsHandler((ports) => async (message) => {
      await ports.laneAtWork(message.run, message.lane);
      said = ports.hasTimeLeft();
      return outcome;
    });

    await handler(delivery(1), withTimeLeft(leftMs));

    expect(said).toBe(fits);
  });

  it('hands a message whose delivery threw back soon, later each time', async () => {
    const handler = generateTurnsHandler(() => async () => {
      throw new Error('the bucket was not reached');
    });

    const responses = [
      await handler(delivery(1), withTimeLeft(1)),
      await handler(delivery(3), withTimeLeft(1)),
    ];

    expect(responses).toEqual(Array(2).fill({ batchItemFailures: [{ itemIdentifier: 'm1' }] }));
    expect(seen.hidden).toEqual([
      ['https://sqs.example/1/turnsweep-lane-gpt', 'receipt', 40],
      ['https://sqs.example/1/turnsweep-lane-gpt', 'receipt', 200],
    ]);
  });

  it('counts calls and those turned away, tells how much money is used, and reads a refused key again', async () => {
    const handler = generateTurnsHandler((ports) => async (message) => {
      await ports.laneAtWork(message.run, message.lane);
      ports.onCall({ run, lane: 'gpt', status: 'retry', kind: 'http_429' });
      ports.onCall({ run, lane: 'gpt', status: 'stop_lane', kind: 'http_401' });
      await ports.laneAtWork(message.run, message.lane);
      return outcome;
    });

    await handler(delivery(1), withTimeLeft(1));

    expect(seen.metrics).toEqual([
      [{ lane: 'gpt' }, { Calls: 1, ThrottledCalls: 1 }],
      [{ lane: 'gpt' }, { Calls: 1, ThrottledCalls: 0 }],
      // 3 $ spent and 1 $ reserved of 5 $.
      [{ stage: 'generate-turns' }, { BudgetUsedPercent: 80 }],
    ]);
    expect(seen.secretsRead).toHaveLength(2);
  });

  it('may not read answers, whatever its core tries', async () => {
    let refused: unknown;
    const handler = generateTurnsHandler((ports) => async () => {
      refused = await ports.store
        .getText(keys.benchmark.answers('b', 'answers.jsonl'))
        .catch((error) => error.name);
      return outcome;
    });

    await handler(delivery(1), withTimeLeft(1));

    expect(refused).toBe('AccessDenied');
  });
});

describe('the planning function', () => {
  it('sets what the run and each lane may spend before it plans', async () => {
    const limitsAtPlan: unknown[] = [];
    const handler = planSweepHandler(() => async () => {
      limitsAtPlan.push(...seen.limits);
    });

    await handler({ run });

    expect(limitsAtPlan).toEqual([
      [`run/${run}`, 5_000_000],
      [`run/${run}/lane/gpt`, null],
    ]);
    expect(seen.dropped).toEqual([`run/${run}`, `run/${run}/lane/gpt`]);
  });

  it('finds a queue by its name', () => {
    expect(planningPorts.queueUrl('lane/My Model')).toBe('https://sqs.example/1/turnsweep-lane-my-model');
    expect(planningPorts.queueUrl('judge')).toBe('https://sqs.example/1/turnsweep-judge');
  });
});
