import { EventStreamCodec } from '@smithy/core/event-streams';
import { chunk, head } from '../raw-server.ts';

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
  (text) => Buffer.from(text, 'utf8'),
);

const frame = (headers: Record<string, string>, body: string): Buffer =>
  Buffer.from(
    codec.encode({
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, { type: 'string' as const, value }]),
      ),
      body: Buffer.from(body, 'utf8'),
    }),
  );

/** One frame of a ConverseStream reply. */
export const event = (type: string, document: unknown): Buffer =>
  frame(
    { ':event-type': type, ':message-type': 'event', ':content-type': 'application/json' },
    typeof document === 'string' ? document : JSON.stringify(document),
  );

export const exception = (type: string, document: unknown): Buffer =>
  frame(
    { ':exception-type': type, ':message-type': 'exception', ':content-type': 'application/json' },
    JSON.stringify(document),
  );

export const streamHead = head(
  'content-type: application/vnd.amazon.eventstream\r\nx-amzn-requestid: b-1\r\ntransfer-encoding: chunked',
);

export const delta = (text: string): Buffer =>
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text } });

export const stopped = (stopReason: string): Buffer => event('messageStop', { stopReason });

export const metered = (usage: Record<string, number>): Buffer =>
  event('metadata', { usage, metrics: { latencyMs: 12 } });

/** A whole reply of these frames. */
export const reply = (...frames: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(streamHead), ...frames.map((each) => chunk(each)), Buffer.from('0\r\n\r\n')]);
