import { describe, expect, it } from 'vitest';
import { createGenerateTurns, type LaneAtWork } from '../../functions/generate-turns/generate-turns.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import { createSystemClock } from '../../shared/adapters/local/system-clock.ts';
import type { GroupPlan } from '../../shared/contracts/plan.ts';
import type { FailureRecord, RequestRecord } from '../../shared/contracts/records.ts';
import { asTheyAre, type ClipForms } from '../../shared/domain/media.ts';
import { type Usage, unknownUsage } from '../../shared/domain/outcome.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ModelClient } from '../../shared/ports/model-client.ts';
import { scopes } from '../../shared/scopes.ts';
import { temporaryFolder } from '../support/command-line.ts';

const run = 'r';
const lane = 'l';
const clip = (type: 'audio' | 'video', at: number) => ({
  type,
  path: `${type}-${at}`,
  sha256: String(at).repeat(64),
});
/** A single turn, and the same question after an earlier turn. */
const plan: GroupPlan = {
  v: 2,
  groupId: 'g',
  views: [
    {
      viewId: 'v',
      taskId: 't',
      interface: 'i',
      targetRequestIds: ['single', 'multi'],
      requestIds: ['single', 'earlier', 'multi'],
    },
  ],
  requests: Object.entries({
    single: [
      { role: 'user', content: [clip('video', 1), clip('audio', 2), { type: 'text', text: 'What?' }] },
    ],
    earlier: [{ role: 'user', content: [clip('video', 3), { type: 'text', text: 'And here?' }] }],
    multi: [
      { role: 'user', content: [clip('video', 3), { type: 'text', text: 'And here?' }] },
      { role: 'assistant', replyOf: 'earlier' },
      { role: 'user', content: [clip('video', 1), clip('audio', 2), { type: 'text', text: 'What?' }] },
    ],
  }),
};
const media = (forms: ClipForms = asTheyAre): LaneAtWork['media'] => ({
  forms,
  capabilities: { countsTokensOf: ['audio', 'video'], videoAs: 'file', takesSystemTurn: true },
});

/** The stage at work on the view, with a model that answers as the test says. */
const runView = async (
  answer: (requestId: string) => Partial<Usage> | Error,
  atWork: Partial<LaneAtWork> = { media: media() },
) => {
  const store = createFileObjectStore({ root: temporaryFolder() });
  await store.put(keys.run.group(run, 'g'), JSON.stringify(plan));
  const asked: string[] = [];
  const client: ModelClient = {
    async call(request) {
      const answered = answer(request.requestId);
      if (answered instanceof Error) throw answered;
      asked.push(request.requestId);
      const parts = request.messages.flatMap((message) => (message.role === 'user' ? message.content : []));
      const count = (type: string) => parts.filter((part) => part.type === type).length;
      return {
        status: 'ok',
        text: `reply to ${request.requestId}`,
        httpStatus: 200,
        responseId: null,
        servedModel: null,
        finishReason: 'stop',
        usage: { ...unknownUsage, inputTokens: 500, outputTokens: 5, ...answered },
        consumed: { audio: count('audio'), video: count('video') },
      };
    },
    close: async () => {},
  };
  const generateTurns = createGenerateTurns({
    store: scopeObjectStore(store, scopes['generate-turns']),
    ledger: {} as Ledger,
    clock: createSystemClock(),
    random: { next: () => 0.5 },
    hasTimeLeft: () => true,
    laneAtWork: async () => ({
      contract: {
        id: lane,
        provider: 'dashscope',
        model: 'm',
        baseUrl: null,
        recordingSha256: null,
        modalities: ['V', 'A'],
        maxTokens: 64,
        retryMaxTokens: null,
        settings: {},
      },
      settings: {
        id: lane,
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
      ...atWork,
    }),
  });
  const read = async <Row>(key: string): Promise<Row | null> =>
    JSON.parse((await store.getText(key)) ?? 'null');
  const outcome = await generateTurns({
    v: 1,
    taskToken: 'token',
    run,
    lane,
    groupId: 'g',
    viewId: 'v',
    cap: 'first',
  });
  return {
    outcome,
    asked,
    reply: (requestId: string) => read<RequestRecord>(keys.lane.request(run, lane, requestId)),
    failure: (requestId: string) => read<FailureRecord>(keys.lane.failure(run, lane, requestId)),
    attempts: (requestId: string) =>
      read<{ attempts: { kind: string; message: string }[] }>(keys.lane.attempts(run, lane, requestId)),
  };
};
const counted = { audioInputTokens: 20, videoInputTokens: 400 };

describe('media that the provider dropped', () => {
  it('make the reply no reply: it fails for good, and is not recorded as one', async () => {
    const { outcome, reply, attempts } = await runView(() => ({ videoInputTokens: 400 }));

    expect(outcome).toMatchObject({
      status: 'failed',
      kind: 'media_dropped',
      requestId: 'single',
      attempt: 1,
    });
    expect(await reply('single')).toBeNull();
    expect((await attempts('single'))!.attempts).toMatchObject([
      {
        kind: 'media_dropped',
        message: '1 audio clips were sent, and the provider counted no audio tokens',
        usage: { inputTokens: 500, videoInputTokens: 400 },
      },
    ]);
  });

  it('are not suspected where all were counted, or where nobody counts', async () => {
    const all = await runView(() => counted);
    const unknown = await runView(() => ({}), {});

    for (const { outcome, asked, reply } of [all, unknown]) {
      expect(outcome).toMatchObject({ status: 'done', view: { outcome: 'done' } });
      expect(asked).toEqual(['single', 'earlier', 'multi']);
      expect(await reply('multi')).toMatchObject({
        offered: { audio: 1, video: 2 },
        consumed: { audio: 1, video: 2 },
      });
    }
  });
});

describe('a clip that cannot be had in its form', () => {
  const unusable = new TurnsweepError(
    errorNames.mediaUnusable,
    'a clip cannot be sent as wav: it has no sound',
    {
      where: 'audio-2',
    },
  );

  it('keeps its requests from being called, and the view from being scored', async () => {
    const { outcome, asked, failure, attempts } = await runView((requestId) =>
      requestId === 'earlier' ? { videoInputTokens: 400 } : unusable,
    );

    expect(asked).toEqual(['earlier']);
    expect(outcome).toMatchObject({
      status: 'done',
      view: { viewId: 'v', outcome: 'excluded', reason: 'media_unusable' },
    });
    for (const requestId of ['single', 'multi']) {
      expect(await failure(requestId)).toEqual({
        v: 1,
        requestId,
        status: 'error',
        kind: 'media_unusable',
        message: 'a clip cannot be sent as wav: it has no sound (audio-2)',
        blockedBy: null,
        refusal: false,
        attempts: [],
      });
      expect(await attempts(requestId)).toBeNull();
    }
  });

  it('blocks what needs the reply', async () => {
    const { outcome, failure } = await runView((requestId) => (requestId === 'earlier' ? unusable : counted));

    expect(outcome).toMatchObject({ view: { outcome: 'excluded', reason: 'blocked' } });
    expect(await failure('multi')).toMatchObject({ status: 'blocked', blockedBy: 'earlier' });
  });

  it('is told from other errors, which are thrown', async () => {
    await expect(
      runView(() => new TurnsweepError(errorNames.objectMissing, 'a clip is missing')),
    ).rejects.toMatchObject({ name: 'ObjectMissing' });
  });
});

describe('the hash of what is shown', () => {
  it('tells forms apart, and stays as it was where clips go as they are', async () => {
    const hashOf = async (atWork: Partial<LaneAtWork>) =>
      (await (await runView(() => counted, atWork)).reply('single'))!.promptSha256;

    const plain = await hashOf({});
    const asIs = await hashOf({ media: media() });
    const small = await hashOf({
      media: media({ ...asTheyAre, video: { kind: 'video', maxSide: 512, fps: 2 } }),
    });
    const muxed = await hashOf({ media: media({ ...asTheyAre, mux: true }) });

    expect(asIs).toBe(plain);
    expect(new Set([plain, small, muxed]).size).toBe(3);
  });
});
