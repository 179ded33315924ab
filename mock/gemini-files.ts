import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { Answer, ErrorFacts, UploadedFile } from './dialects/dialect.ts';
import { gemini } from './dialects/gemini.ts';

const states = z.enum(['PROCESSING', 'ACTIVE', 'FAILED']);

/** A file that is there without an upload. */
export const geminiFile = z.strictObject({
  uri: z.string(),
  mimeType: z.string(),
  state: states.default('ACTIVE'),
  base64: z.string().default(''),
});

/** How uploads go: polls that still see PROCESSING, and whether they end FAILED. */
export const geminiUploads = z.strictObject({
  processingPolls: z.number().int().nonnegative().default(1),
  fail: z.boolean().default(false),
});

interface StoredFile {
  name: string;
  uri: string;
  mimeType: string;
  bytes: Buffer;
  pollsLeft: number;
  end: UploadedFile['state'];
  createTime: Date;
}

const keptHours = 48;

/** Gemini's Files API: resumable uploads, state of a file, deletion (ai.google.dev, files). */
export const createGeminiFiles = () => {
  const byName = new Map<string, StoredFile>();
  const started = new Map<string, string>();
  let uploads: z.output<typeof geminiUploads> = { processingPolls: 1, fail: false };
  let count = 0;

  const stateOf = ({ pollsLeft, end }: StoredFile): UploadedFile['state'] =>
    pollsLeft > 0 ? 'PROCESSING' : end;
  const resource = (file: StoredFile) => ({
    name: file.name,
    mimeType: file.mimeType,
    sizeBytes: String(file.bytes.length),
    createTime: file.createTime.toISOString(),
    updateTime: file.createTime.toISOString(),
    expirationTime: new Date(file.createTime.getTime() + keptHours * 3_600_000).toISOString(),
    sha256Hash: createHash('sha256').update(file.bytes).digest('base64'),
    uri: file.uri,
    state: stateOf(file),
    source: 'UPLOADED',
    ...(stateOf(file) === 'FAILED' && { error: { code: 3, message: 'fake: the file cannot be processed' } }),
  });
  const store = (file: Omit<StoredFile, 'name' | 'createTime'> & { name?: string }): StoredFile => {
    count += 1;
    const stored = { createTime: new Date(), ...file, name: file.name ?? `files/fx-${count}` };
    byName.set(stored.name, stored);
    return stored;
  };

  const wrong = (message: string): Answer => gemini.error(gemini.errors.badRequest(`fake: ${message}`, null));
  const forbidden: ErrorFacts = {
    status: 403,
    message: 'fake: you do not have permission to access the File or it may not exist.',
  };
  const good = (value: unknown, headers: Record<string, string> = {}): Answer => ({
    status: 200,
    headers,
    body: value === null ? '' : JSON.stringify(value),
  });

  const start = (url: URL, headers: IncomingHttpHeaders): Answer => {
    const mimeType = headers['x-goog-upload-header-content-type'];
    if (headers['x-goog-upload-protocol'] !== 'resumable' || headers['x-goog-upload-command'] !== 'start') {
      return wrong('an upload starts with the resumable protocol');
    }
    if (typeof mimeType !== 'string') return wrong('X-Goog-Upload-Header-Content-Type is missing');
    const id = `up-${started.size + 1}-${count}`;
    started.set(id, mimeType);
    return good(null, {
      'x-goog-upload-status': 'active',
      'x-goog-upload-url': `${url.origin}${url.pathname}?upload_id=${id}`,
    });
  };
  const finish = (url: URL, id: string, headers: IncomingHttpHeaders, bytes: Buffer): Answer => {
    const mimeType = started.get(id);
    if (mimeType === undefined) return wrong('no such upload');
    const command = String(headers['x-goog-upload-command']);
    if (!/upload/.test(command) || !/finalize/.test(command)) return wrong('send the file in one piece');
    started.delete(id);
    const name = `files/fx-${count + 1}`;
    const file = store({
      name,
      uri: `${url.origin}${gemini.prefix}/${name}`,
      mimeType,
      bytes,
      pollsLeft: uploads.processingPolls,
      end: uploads.fail ? 'FAILED' : 'ACTIVE',
    });
    return good({ file: resource(file) }, { 'x-goog-upload-status': 'final' });
  };

  return {
    setUploads: (next: z.output<typeof geminiUploads>) => {
      uploads = next;
    },
    register: ({ uri, mimeType, state, base64 }: z.output<typeof geminiFile>) => {
      const bytes = base64 === '' ? Buffer.from(uri) : Buffer.from(base64, 'base64');
      const isProcessing = state === 'PROCESSING';
      const end = isProcessing ? 'ACTIVE' : state;
      store({ uri, mimeType, bytes, pollsLeft: isProcessing ? Infinity : 0, end });
    },
    /** A file as a request names it. */
    find: (uri: string): UploadedFile | null => {
      const file = [...byName.values()].find((stored) => stored.uri === uri);
      return file ? { mimeType: file.mimeType, state: stateOf(file), bytes: file.bytes } : null;
    },
    /** Null for an address that is none of these. */
    handle: (method: string, url: URL, headers: IncomingHttpHeaders, bytes: Buffer): Answer | null => {
      const isUpload = method === 'POST' && url.pathname === '/gemini/upload/v1beta/files';
      const name = /^\/gemini\/v1beta\/(files\/[\w-]+)$/.exec(url.pathname)?.[1];
      if (!isUpload && name === undefined) return null;
      const id = url.searchParams.get('upload_id');
      // The address of a started upload is secret enough for the second step.
      const wrongKey = isUpload && id !== null ? null : gemini.checkKey(headers);
      if (wrongKey) return gemini.error(wrongKey);
      if (isUpload) return id === null ? start(url, headers) : finish(url, id, headers, bytes);
      const file = byName.get(name!);
      if (!file) return gemini.error(forbidden);
      if (method === 'DELETE') {
        byName.delete(file.name);
        return good({});
      }
      if (method !== 'GET') return null;
      const seen = resource(file);
      file.pollsLeft = Math.max(0, file.pollsLeft - 1);
      return good(seen);
    },
  };
};
