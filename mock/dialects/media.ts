import { createHash } from 'node:crypto';
import type { MediaFault } from './dialect.ts';

export type MediumKind = 'image' | 'frames' | 'video' | 'audio';

/** One medium of a request. Pieces are its bytes; of a URL that is not fetched, its text without the query. */
export interface Medium {
  kind: MediumKind;
  pieces: readonly Buffer[];
  tokens: number;
  /** Tokens of a video's sound, where the provider hears it. */
  soundTokens?: number;
}

/** A medium that was fetched from a host that stands for the public internet. */
export interface FetchedMedium {
  bytes: Buffer;
  /** The server told length and type, without which some providers do not take it. */
  isDescribed: boolean;
}

export class MediaProblem extends Error {
  readonly fault: MediaFault;
  constructor(fault: MediaFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Bytes of strict base64: no white space, padded, nothing cut. Throws `MediaProblem`. */
export const decodeBase64 = (text: unknown): Buffer => {
  if (typeof text !== 'string' || text === '') throw new MediaProblem('encoding', 'media data is missing');
  if (text.startsWith('data:')) throw new MediaProblem('encoding', 'media data has a data: prefix');
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = Buffer.from(text, 'base64');
  if (text.length % 4 !== 0 || bytes.length !== (text.length / 4) * 3 - padding) {
    throw new MediaProblem('encoding', 'media data is not base64');
  }
  return bytes;
};

/** `mime` is empty in `data:;base64,`. Null for what is no data URI with base64. */
export const splitDataUri = (text: string): { mime: string; data: string } | null => {
  const match = /^data:([a-z0-9.+-]+\/[a-z0-9.+-]+)?;base64,/i.exec(text.slice(0, 200));
  return match ? { mime: match[1]?.toLowerCase() ?? '', data: text.slice(match[0].length) } : null;
};

const startsWith = (bytes: Buffer, hex: string): boolean =>
  bytes.subarray(0, hex.length / 2).equals(Buffer.from(hex, 'hex'));

/** Media type by the first bytes; null for unknown ones. */
export const sniff = (bytes: Buffer): string | null => {
  const text = bytes.subarray(0, 12).toString('latin1');
  if (startsWith(bytes, '89504e470d0a1a0a')) return 'image/png';
  if (startsWith(bytes, 'ffd8ff')) return 'image/jpeg';
  if (text.startsWith('GIF8')) return 'image/gif';
  if (text.startsWith('RIFF')) {
    return { WEBP: 'image/webp', WAVE: 'audio/wav', 'AVI ': 'video/avi' }[text.slice(8, 12)] ?? null;
  }
  if (text.slice(4, 8) === 'ftyp') {
    const brand = text.slice(8, 12);
    if (brand === 'M4A ') return 'audio/mp4';
    return brand === 'qt  ' ? 'video/quicktime' : 'video/mp4';
  }
  if (startsWith(bytes, '1a45dfa3')) return 'video/webm';
  if (text.startsWith('FLV')) return 'video/x-flv';
  if (startsWith(bytes, '000001ba')) return 'video/mpeg';
  if (text.startsWith('OggS')) return 'audio/ogg';
  if (text.startsWith('fLaC')) return 'audio/flac';
  if (text.startsWith('FORM')) return 'audio/aiff';
  if (startsWith(bytes, 'fff1') || startsWith(bytes, 'fff9')) return 'audio/aac';
  if (text.startsWith('ID3') || (bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe6) === 0xe2)) return 'audio/mpeg';
  return null;
};

const sameType: Record<string, string> = {
  'audio/mp3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'image/jpg': 'image/jpeg',
  'video/x-msvideo': 'video/avi',
  'video/mov': 'video/quicktime',
};

/** One name for types with several. */
export const plainType = (mime: string): string => sameType[mime] ?? mime;

/**
 * Checks the first bytes against the kind and, where one is stated, the type. A WAV that states more bytes than
 * it has was cut. Throws `MediaProblem`. Returns the type found.
 */
export const checkBytes = (bytes: Buffer, kind: 'image' | 'video' | 'audio', stated = ''): string => {
  const found = sniff(bytes);
  if (!found?.startsWith(`${kind}/`)) {
    throw new MediaProblem('format', `${kind} data begins like ${found ?? 'nothing known'}`);
  }
  if (stated !== '' && plainType(stated) !== found) {
    throw new MediaProblem('format', `${kind} data is ${found}, not ${stated}`);
  }
  if (found === 'audio/wav') {
    const size = bytes.length < 12 ? Infinity : bytes.readUInt32LE(4);
    // Writers that cannot seek back leave the size open.
    if (size !== 0xffffffff && size + 8 > bytes.length) throw new MediaProblem('format', 'WAV data is cut');
  }
  return found;
};

/** Begun seconds of sound, by the WAV's own byte rate or 128 kbit/s for others. */
export const audioSeconds = (bytes: Buffer): number => {
  if (sniff(bytes) !== 'audio/wav') return Math.max(1, Math.ceil(bytes.length / 16_000));
  let rate = 32_000;
  let sound = bytes.length;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    if (name === 'fmt ' && at + 20 <= bytes.length) rate = bytes.readUInt32LE(at + 16) || rate;
    if (name === 'data') {
      sound = Math.min(size, bytes.length - at - 8);
      break;
    }
    at += 8 + size + (size % 2);
  }
  return Math.max(1, Math.ceil(sound / rate));
};

/** Begun seconds of an MP4 that has a track of sound, by its movie header; 0 without one. */
export const soundtrackSeconds = (bytes: Buffer): number => {
  let hears = false;
  for (let at = bytes.indexOf('hdlr'); at >= 0; at = bytes.indexOf('hdlr', at + 4)) {
    hears ||= bytes.toString('latin1', at + 12, at + 16) === 'soun';
  }
  const movie = bytes.indexOf('mvhd');
  if (!hears || movie < 0 || movie + 24 > bytes.length || bytes[movie + 4] !== 0) return hears ? 1 : 0;
  const unitsPerSecond = bytes.readUInt32BE(movie + 16);
  return Math.max(1, Math.ceil(bytes.readUInt32BE(movie + 20) / Math.max(1, unitsPerSecond)));
};

const privateHost =
  /^(localhost|.*\.(localhost|local|internal)|0\.0\.0\.0|127\..*|10\..*|192\.168\..*|169\.254\..*|172\.(1[6-9]|2\d|3[01])\..*|\[.*\])$/i;

/** Bytes at a URL, or its text where its host is not mapped. Throws `MediaProblem` for what cannot be fetched. */
export const bytesOfUrl = (
  url: string,
  fetched: ReadonlyMap<string, FetchedMedium | null>,
  { publicOnly }: { publicOnly: boolean },
): { bytes: Buffer; seen: boolean } => {
  const known = fetched.get(url);
  if (known === null) throw new MediaProblem('url', 'the media server does not give the file');
  if (known) {
    if (publicOnly && !known.isDescribed) {
      throw new MediaProblem('url', 'the media server tells no Content-Length or no Content-Type');
    }
    return { bytes: known.bytes, seen: true };
  }
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw new MediaProblem('url', 'not a valid URL');
  if (publicOnly && privateHost.test(parsed.hostname)) {
    throw new MediaProblem('url', 'the URL cannot be reached from the internet');
  }
  // What is signed anew for each call is not what the medium is.
  return { bytes: Buffer.from(`${parsed.origin}${parsed.pathname}`), seen: false };
};

/** First 8 hex digits of the SHA-256 over all media bytes in order; `none` without media. */
export const mediaDigest = (media: readonly Medium[]): string => {
  if (media.length === 0) return 'none';
  const hash = createHash('sha256');
  for (const { pieces } of media) for (const piece of pieces) hash.update(piece);
  return hash.digest('hex').slice(0, 8);
};

export const mediumSha256 = ({ pieces }: Medium): string => {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
};
