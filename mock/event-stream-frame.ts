import { crc32 } from 'node:zlib';

const encode = (head: Buffer, payload: Buffer): Buffer => {
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + payload.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const message = Buffer.concat([prelude, head, payload]);
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(message));
  return Buffer.concat([message, tail]);
};

const stringHeader = ([name, value]: readonly [string, string]): Buffer => {
  const text = Buffer.from(value);
  const kindAndLength = Buffer.from([7, text.length >> 8, text.length & 0xff]);
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), kindAndLength, text]);
};

/**
 * One message of AWS's binary event stream: total and header length, their CRC, headers with string values, payload,
 * CRC of the whole (smithy.io, application/vnd.amazon.eventstream).
 */
export const eventStreamFrame = (headers: Readonly<Record<string, string>>, payload: string): Buffer =>
  encode(Buffer.concat(Object.entries(headers).map(stringHeader)), Buffer.from(payload));

/** The same message with another payload. */
export const mapFramePayload = (frame: Buffer, change: (payload: string) => string): Buffer => {
  const payloadAt = 12 + frame.readUInt32BE(4);
  const payload = frame.toString('utf8', payloadAt, frame.length - 4);
  return encode(frame.subarray(12, payloadAt), Buffer.from(change(payload)));
};
