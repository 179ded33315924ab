import { expect, it, onTestFinished, vi } from 'vitest';
import { createGenerateTurns } from '../../functions/generate-turns/generate-turns.ts';
import { startMockProvider } from '../../mock/server.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import { createSystemClock } from '../../shared/adapters/local/system-clock.ts';
import type { GroupPlan } from '../../shared/contracts/plan.ts';
import { keys } from '../../shared/keys.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import { createModelClient } from '../../shared/providers/registry.ts';
import { scopes } from '../../shared/scopes.ts';
import { temporaryFolder } from '../support/command-line.ts';

const plan: GroupPlan = {
  v: 2,
  groupId: 'g',
  views: [
    {
      viewId: 'v',
      taskId: 't',
      interface: 'i',
      targetRequestIds: ['single', 'single'],
      requestIds: ['single'],
    },
  ],
  requests: [['single', [{ role: 'user', content: [{ type: 'text', text: 'What?' }] }]]],
};

it('leaves nothing behind of a call that is broken off in the middle of its reply', async () => {
  const mock = await startMockProvider({ provider: 'vllm', timeScale: 0.02 });
  onTestFinished(() => mock.close());
  mock.control({ provider: 'vllm', queue: ['F-39'] });
  const store = createFileObjectStore({ root: temporaryFolder() });
  await store.put(keys.run.group('r', 'g'), JSON.stringify(plan));
  const contract = {
    id: 'l',
    provider: 'vllm',
    model: 'local',
    baseUrl: mock.url,
    recordingSha256: null,
    modalities: ['V' as const],
    maxTokens: 64,
    retryMaxTokens: null,
    settings: {},
  };
  const client = createModelClient(
    { ...contract, maxInFlight: 1 },
    { apiKey: 'test-vllm', clips: { load: () => Promise.reject(new Error('no clips')) }, recording: null },
  );
  onTestFinished(() => client.close());
  const stopping = new AbortController();
  const onCall = vi.fn();
  const generateTurns = createGenerateTurns({
    store: scopeObjectStore(store, scopes['generate-turns']),
    ledger: {} as Ledger,
    clock: createSystemClock(),
    random: { next: () => 0.5 },
    hasTimeLeft: () => true,
    signal: stopping.signal,
    onCall,
    laneAtWork: async () => ({
      contract,
      settings: {
        id: 'l',
        displayName: 'L',
        family: null,
        apiKeyEnv: null,
        attempts: 3,
        maxInFlight: 1,
        deadlineSeconds: 60,
        backoff: { baseSeconds: 0, maxSeconds: 0 },
        price: null,
        budgetMicroUsd: null,
      },
      client,
      hasBudget: false,
    }),
  });

  const working = generateTurns({
    v: 1,
    taskToken: 'token',
    run: 'r',
    lane: 'l',
    groupId: 'g',
    viewId: 'v',
    cap: 'first',
  });
  working.catch(() => {});
  await vi.waitUntil(() => mock.log()[0]?.outcome === 'F-39', { timeout: 10_000 });
  stopping.abort(new Error('given up'));

  await expect(working).rejects.toThrow('given up');
  expect(onCall).not.toHaveBeenCalled();
  expect(await store.getText(keys.lane.request('r', 'l', 'single'))).toBeNull();
  expect(await store.getText(keys.lane.failure('r', 'l', 'single'))).toBeNull();
  expect(await store.getText(keys.lane.attempts('r', 'l', 'single'))).toBeNull();
  await vi.waitUntil(() => mock.log()[0]!.callerGone, { timeout: 10_000 });
});
