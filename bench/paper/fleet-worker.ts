/**
 * Servers of the simulated fleet in a process of their own: answers `chat/completions` of every lane by what the request
 * is, and plays the judge. What it keeps does not grow with what it serves.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mix, seedOf } from './draw.ts';
import type { FleetSetup, FleetStats } from './fleet.ts';
import { judgeItem, type SeenItem } from './judge.ts';
import { outcomes } from './outcomes.ts';
import { buildSplit, turnKey } from './release.ts';
import { wordReply } from './wording.ts';

type Json = Record<string, unknown>;
interface Part {
  type: string;
  text?: string;
  input_audio?: { data: string };
  video_url?: { url: string };
}
interface Message {
  role: string;
  content: string | Part[];
}

const videoPrefix = 'data:video/mp4;base64,';

const start = async (setup: FleetSetup) => {
  const { requests } = buildSplit(setup.composition, setup.seed, 0);
  const indexOf = new Map(requests.map(({ key, index }) => [key, index]));
  const lanes = new Map(
    setup.lanes.map((lane) => [
      lane.wireModel,
      { ...lane, salt: seedOf(setup.seed, lane.wireModel), replied: new Uint8Array(requests.length) },
    ]),
  );
  type Lane = typeof lanes extends Map<string, infer Value> ? Value : never;
  const fresh = (): FleetStats => ({
    requests: 0,
    replies: 0,
    repeatedReplies: stats?.repeatedReplies ?? 0,
    lengthStops: 0,
    failures: {},
    refused: {},
    judgeCalls: 0,
    judgedItems: 0,
    firstRequestMs: null,
    lastRequestMs: null,
  });
  let stats: FleetStats | undefined;
  stats = fresh();
  const counts = (): FleetStats => stats!;

  /** Clips by their base64: a fleet of ten thousand small clips knows them all. */
  const clipNumbers = new Map<string, number>();
  const clipOf = (base64: string): number => {
    const known = clipNumbers.get(base64);
    if (known !== undefined) return known;
    const found = /clip-(\d+);/.exec(Buffer.from(base64, 'base64').toString('latin1'));
    if (found === null) throw new Refusal('a clip of no release');
    clipNumbers.set(base64, Number(found[1]));
    return Number(found[1]);
  };

  /** What a lane says to a request; only for those that have words. */
  const words = (lane: Lane, index: number): string => {
    const outcome = outcomes[lane.codes[index]!]!;
    const spoken = outcome === 'unscored' || outcome === 'correct' ? outcome : 'wrong';
    return wordReply(requests[index]!, spoken, lane.salt);
  };

  /** The request behind the messages; refuses wrong media and any history that is not the lane's own. */
  const identify = (lane: Lane, messages: readonly Message[]): number => {
    let key = '';
    let before: number | undefined;
    for (const { role, content } of messages) {
      if (role === 'assistant') {
        if (before === undefined || content !== words(lane, before))
          throw new Refusal('history is not the own replies of this model');
        continue;
      }
      const parts = content as Part[];
      const shown: Record<'V' | 'A', number | null> = { V: null, A: null };
      let text = '';
      for (const part of parts) {
        if (part.type === 'text') text = part.text!;
        else if (part.type === 'input_audio') shown.A = clipOf(part.input_audio!.data);
        else if (part.type === 'video_url') shown.V = clipOf(part.video_url!.url.slice(videoPrefix.length));
        else throw new Refusal(`a part of type ${part.type}`);
      }
      for (const modality of ['V', 'A'] as const) {
        if ((shown[modality] !== null) !== lane.modalities.includes(modality))
          throw new Refusal('media of the wrong kind for this model');
      }
      if (shown.V !== null && shown.A !== null && shown.V !== shown.A)
        throw new Refusal('sound and picture of different clips');
      key = turnKey(key, shown.V ?? shown.A!, text);
      before = indexOf.get(key);
    }
    if (before === undefined) throw new Refusal('no request of the split');
    return before;
  };

  const send = (response: ServerResponse, status: number, type: string, body: string) => {
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(body);
  };
  const reply = (
    response: ServerResponse,
    body: Json,
    text: string,
    finish: string,
    promptTokens: number,
  ) => {
    const facts = { id: 'chatcmpl-simulated', created: 1_700_000_000, model: body.model };
    const completionTokens = Math.ceil(text.length / 4) + 1;
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    };
    if (body.stream !== true) {
      const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }];
      const whole = { ...facts, object: 'chat.completion', choices, usage };
      send(response, 200, 'application/json', JSON.stringify(whole));
      return;
    }
    const chunk = (more: Json) =>
      `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', ...more })}\n\n`;
    const choice = (delta: Json, reason: string | null) => ({
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    send(
      response,
      200,
      'text/event-stream',
      chunk(choice({ role: 'assistant', content: text }, null)) +
        chunk(choice({}, finish)) +
        chunk({ choices: [], usage }) +
        'data: [DONE]\n\n',
    );
  };

  const judge = (response: ServerResponse, body: Json, messages: readonly Message[], size: number) => {
    const { items } = JSON.parse(messages.at(-1)!.content as string) as { items: SeenItem[] };
    counts().judgeCalls += 1;
    counts().judgedItems += items.length;
    reply(response, body, JSON.stringify({ judgments: items.map(judgeItem) }), 'stop', Math.ceil(size / 4));
  };

  const answer = (response: ServerResponse, bytes: Buffer) => {
    const now = Date.now();
    const stats = counts();
    stats.requests += 1;
    stats.firstRequestMs ??= now;
    stats.lastRequestMs = now;
    const body = JSON.parse(bytes.toString('utf8')) as Json;
    const messages = body.messages as Message[];
    if (setup.judgeModels.includes(String(body.model))) return judge(response, body, messages, bytes.length);
    const lane = lanes.get(String(body.model));
    if (lane === undefined) throw new Refusal('an unknown model');
    const index = identify(lane, messages);
    const outcome = outcomes[lane.codes[index]!]!;
    const promptTokens = Math.ceil(bytes.length / 8);
    const failed = (kind: string) => {
      stats.failures[kind] = (stats.failures[kind] ?? 0) + 1;
    };
    switch (outcome) {
      case 'not-asked':
        throw new Refusal('a request that this model is not asked');
      case 'http_400': {
        failed(outcome);
        const error = { message: 'the input was refused', type: 'invalid_request_error', code: null };
        return send(response, 400, 'application/json', JSON.stringify({ error }));
      }
      case 'empty':
        failed(outcome);
        return reply(response, body, '', 'stop', promptTokens);
      case 'content_filter':
        failed(outcome);
        return reply(response, body, 'It', 'content_filter', promptTokens);
      case 'length_twice':
        failed(outcome);
        return reply(response, body, 'Well, in this clip', 'length', promptTokens);
      default: {
        const text = words(lane, index);
        const cap = Number(body.max_tokens ?? body.max_completion_tokens);
        // Some replies need the raised cap.
        const isLong = mix(lane.salt, index ^ 0x5bd1e995) % 1000 < setup.lengthStopsPerMille;
        if (lane.retryMaxTokens !== null && isLong && cap < lane.retryMaxTokens) {
          stats.lengthStops += 1;
          return reply(response, body, text.slice(0, 1), 'length', promptTokens);
        }
        stats.replies += 1;
        if (lane.replied[index]! > 0) stats.repeatedReplies += 1;
        lane.replied[index] = 1;
        return reply(response, body, text, 'stop', promptTokens);
      }
    }
  };

  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const respond = () => {
        try {
          answer(response, pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
        } catch (error) {
          const { message } = error as Error;
          counts().refused[message] = (counts().refused[message] ?? 0) + 1;
          const body = { error: { message, type: 'invalid_request_error', code: null } };
          send(response, error instanceof Refusal ? 400 : 500, 'application/json', JSON.stringify(body));
        }
      };
      if (setup.latencyMs > 0) setTimeout(respond, setup.latencyMs);
      else respond();
    });
  };

  const server = createServer({ keepAliveTimeout: 120_000, noDelay: true }, receive);
  await new Promise<void>((resolve) => server.listen(setup.port ?? 0, '127.0.0.1', resolve));
  process.on('message', (message) => {
    if (message === 'stats') process.send!({ ...counts(), rssBytes: process.memoryUsage.rss() });
    if (message === 'reset') {
      stats = fresh();
      process.send!({});
    }
  });
  process.on('disconnect', () => process.exit(0));
  process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` });
};

/** What a strict provider answers 400: it never happens in a sweep that is right. */
class Refusal extends Error {}

process.once('message', (setup) => void start(setup as FleetSetup));
