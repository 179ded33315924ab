import { z } from 'zod';
import type { ErrorFacts } from './dialects/dialect.ts';
import { isObject } from './dialects/dialect.ts';

/** What becomes of a batch; lines are counted from 0 in the order of the input. */
export const batchPlan = z.strictObject({
  /** Looks at a batch that each state lasts. */
  pollsPerState: z.number().int().positive().default(1),
  order: z.enum(['reversed', 'input']).default('reversed'),
  /** Lines that appear in neither file. */
  missing: z.array(z.number().int().nonnegative()).default([]),
  /** Lines that get status 400 in the output file. */
  outputErrors: z.array(z.number().int().nonnegative()).default([]),
  /** Lines that get an error in the error file. */
  fileErrors: z.array(z.number().int().nonnegative()).default([]),
  /** So many lines are done when the window ends; null: all. */
  expireAfter: z.number().int().nonnegative().nullable().default(null),
});
export type BatchPlan = z.output<typeof batchPlan>;
export const usualBatchPlan: BatchPlan = batchPlan.parse({});

type Row = Record<string, unknown>;
interface StoredFile {
  id: string;
  filename: string;
  purpose: string;
  bytes: Buffer;
  createdAt: number;
}
interface Line {
  customId: string;
  body: string;
}
interface Batch {
  id: string;
  inputFileId: string;
  endpoint: string;
  metadata: unknown;
  plan: BatchPlan;
  polls: number;
  lines: readonly Line[];
  problems: readonly { line: number; message: string }[];
  cancelled: 'no' | 'asked' | 'done';
  outputFileId: string | null;
  errorFileId: string | null;
  counts: { total: number; completed: number; failed: number };
  times: Record<string, number>;
}

export interface BatchAnswer {
  status: number;
  body: unknown;
  /** Bytes instead of `body`. */
  content?: Buffer;
}

/** developers.openai.com, batch: 50,000 lines and 200 MB. */
const mostLines = 50_000;
const largestFile = 200 * 1024 * 1024;
const chatEndpoint = '/v1/chat/completions';

const seconds = (): number => Math.floor(Date.now() / 1000);

const readLines = (bytes: Buffer): Pick<Batch, 'lines' | 'problems'> => {
  const lines: Line[] = [];
  const problems: { line: number; message: string }[] = [];
  const ids = new Set<string>();
  const rows = bytes.toString('utf8').split('\n');
  rows.forEach((text, index) => {
    if (text.trim() === '') return;
    const problem = (message: string) => problems.push({ line: index + 1, message });
    let row: unknown;
    try {
      row = JSON.parse(text);
    } catch {
      problem('This line is not parseable as valid JSON.');
      return;
    }
    if (!isObject(row) || typeof row.custom_id !== 'string' || !isObject(row.body)) {
      problem('A line has custom_id, method, url and body.');
    } else if (ids.has(row.custom_id)) problem(`The custom_id ${row.custom_id} is a duplicate.`);
    else if (row.method !== 'POST' || row.url !== chatEndpoint) problem('The URL is not that of the batch.');
    else {
      ids.add(row.custom_id);
      lines.push({ customId: row.custom_id, body: JSON.stringify(row.body) });
    }
  });
  if (lines.length > mostLines)
    problems.push({ line: mostLines + 1, message: 'The file has too many lines.' });
  if (lines.length === 0 && problems.length === 0) problems.push({ line: 1, message: 'The file is empty.' });
  return { lines, problems };
};

/**
 * OpenAI's files and batches (DashScope has the same): a batch walks validating, in_progress, finalizing, completed,
 * one state further each `pollsPerState` looks at it. `answerLine` answers the body of a line as a call would.
 */
export const createBatches = (options: {
  answerLine: (body: string) => { status: number; body: string };
  error: (facts: ErrorFacts) => { status: number; body: string };
}) => {
  const files = new Map<string, StoredFile>();
  const batches = new Map<string, Batch>();
  let plan = usualBatchPlan;
  let count = 0;

  const nextId = (prefix: string): string => {
    count += 1;
    return `${prefix}fx${String(count).padStart(6, '0')}`;
  };
  const addFile = (filename: string, purpose: string, bytes: Buffer): StoredFile => {
    const file = { id: nextId('file-'), filename, purpose, bytes, createdAt: seconds() };
    files.set(file.id, file);
    return file;
  };
  const fileJson = (file: StoredFile) => ({
    id: file.id,
    object: 'file',
    bytes: file.bytes.length,
    created_at: file.createdAt,
    filename: file.filename,
    purpose: file.purpose,
    status: 'processed',
  });
  const refusal = (
    status: number,
    message: string,
    code: string | undefined,
    param: string | null,
  ): BatchAnswer => {
    const answer = options.error({
      status,
      message: `fake: ${message}`,
      code,
      param,
      type: 'invalid_request_error',
    });
    return { status: answer.status, body: JSON.parse(answer.body) };
  };

  const statusOf = (batch: Batch): string => {
    if (batch.cancelled === 'done') return 'cancelled';
    if (batch.cancelled === 'asked') return 'cancelling';
    const state = Math.floor(batch.polls / batch.plan.pollsPerState);
    if (state === 0) return 'validating';
    if (batch.problems.length > 0) return 'failed';
    if (state === 1) return 'in_progress';
    if (state === 2) return 'finalizing';
    return batch.plan.expireAfter === null ? 'completed' : 'expired';
  };

  const answered = (line: Line): Row => {
    const { status, body } = options.answerLine(line.body);
    return {
      id: nextId('batch_req_'),
      custom_id: line.customId,
      response: { status_code: status, request_id: nextId('req_'), body: JSON.parse(body) },
      error: null,
    };
  };
  const jsonl = (rows: readonly Row[]): Buffer =>
    Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));

  const finish = (batch: Batch): void => {
    const { missing, outputErrors, fileErrors, expireAfter, order } = batch.plan;
    const output: Row[] = [];
    const errors: Row[] = [];
    batch.lines.forEach((line, index) => {
      const failed = (code: string, message: string): Row => ({
        id: nextId('batch_req_'),
        custom_id: line.customId,
        response: null,
        error: { code, message },
      });
      if (expireAfter !== null && index >= expireAfter) {
        errors.push(
          failed('batch_expired', 'This request could not be executed before the completion window expired.'),
        );
      } else if (missing.includes(index)) return;
      else if (outputErrors.includes(index)) {
        const { status, body } = options.error({
          status: 400,
          message: 'fake: this line is refused',
          code: 'invalid_value',
        });
        const response = { status_code: status, request_id: nextId('req_'), body: JSON.parse(body) };
        output.push({ id: nextId('batch_req_'), custom_id: line.customId, response, error: null });
      } else if (fileErrors.includes(index)) errors.push(failed('server_error', 'fake: this line failed'));
      else {
        const row = answered(line);
        const isGood = (row.response as { status_code: number }).status_code === 200;
        (isGood ? output : errors).push(row);
      }
    });
    if (order === 'reversed') output.reverse();
    const good = output.filter(
      ({ response }) => (response as { status_code: number }).status_code === 200,
    ).length;
    batch.counts = { total: batch.lines.length, completed: good, failed: batch.lines.length - good };
    if (output.length > 0)
      batch.outputFileId = addFile(`${batch.id}_output.jsonl`, 'batch_output', jsonl(output)).id;
    if (errors.length > 0)
      batch.errorFileId = addFile(`${batch.id}_error.jsonl`, 'batch_output', jsonl(errors)).id;
  };

  const batchJson = (batch: Batch) => {
    const status = statusOf(batch);
    batch.times[`${status}_at`] ??= seconds();
    const at = (name: string) => batch.times[`${name}_at`] ?? null;
    return {
      id: batch.id,
      object: 'batch',
      endpoint: batch.endpoint,
      errors:
        status === 'failed'
          ? {
              object: 'list',
              data: batch.problems.map((problem) => ({ code: 'invalid_line', param: null, ...problem })),
            }
          : null,
      input_file_id: batch.inputFileId,
      completion_window: '24h',
      status,
      output_file_id: batch.outputFileId,
      error_file_id: batch.errorFileId,
      created_at: batch.times.created_at,
      in_progress_at: at('in_progress'),
      expires_at: batch.times.created_at! + 86_400,
      finalizing_at: at('finalizing'),
      completed_at: at('completed'),
      failed_at: at('failed'),
      expired_at: at('expired'),
      cancelling_at: at('cancelling'),
      cancelled_at: at('cancelled'),
      request_counts: batch.counts,
      metadata: batch.metadata ?? null,
    };
  };

  /** One state further, and the files where that is the last. */
  const look = (batch: Batch): object => {
    if (batch.cancelled === 'asked') batch.cancelled = 'done';
    const before = statusOf(batch);
    batch.polls += 1;
    const now = statusOf(batch);
    if (now !== before && (now === 'completed' || now === 'expired')) finish(batch);
    return batchJson(batch);
  };

  const create = (text: string): BatchAnswer => {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return refusal(400, 'the body is not JSON', undefined, null);
    }
    if (!isObject(body)) return refusal(400, 'the body is not a JSON object', undefined, null);
    const file = files.get(String(body.input_file_id));
    if (!file) return refusal(404, `no such file: ${body.input_file_id}`, undefined, 'input_file_id');
    if (file.purpose !== 'batch')
      return refusal(400, 'the file is not for batches', 'invalid_value', 'input_file_id');
    if (body.endpoint !== chatEndpoint) return refusal(400, 'unknown endpoint', 'invalid_value', 'endpoint');
    if (body.completion_window !== '24h') {
      return refusal(400, 'completion_window is not 24h', 'invalid_value', 'completion_window');
    }
    const read = readLines(file.bytes);
    const batch: Batch = {
      id: nextId('batch_'),
      inputFileId: file.id,
      endpoint: chatEndpoint,
      metadata: body.metadata,
      plan,
      polls: 0,
      ...read,
      cancelled: 'no',
      outputFileId: null,
      errorFileId: null,
      counts: { total: read.lines.length, completed: 0, failed: 0 },
      times: { created_at: seconds() },
    };
    batches.set(batch.id, batch);
    return { status: 200, body: batchJson(batch) };
  };

  const upload = async (contentType: string, bytes: Buffer): Promise<BatchAnswer> => {
    if (bytes.length > largestFile) return refusal(413, 'the file is larger than 200 MB', undefined, 'file');
    let form: Awaited<ReturnType<Response['formData']>>;
    try {
      form = await new Response(new Uint8Array(bytes), {
        headers: { 'content-type': contentType },
      }).formData();
    } catch {
      return refusal(400, 'the body is not multipart/form-data', undefined, null);
    }
    const file = form.get('file');
    const purpose = form.get('purpose');
    if (!(file instanceof Blob)) return refusal(400, 'file is missing', undefined, 'file');
    if (purpose !== 'batch') return refusal(400, 'purpose is not batch', 'invalid_value', 'purpose');
    if (!file.name.endsWith('.jsonl')) return refusal(400, 'the file is no .jsonl', 'invalid_value', 'file');
    const stored = addFile(file.name, purpose, Buffer.from(await file.arrayBuffer()));
    return { status: 200, body: fileJson(stored) };
  };

  const list = (data: readonly { id: string }[], query: URLSearchParams): BatchAnswer => {
    const after = query.get('after');
    const start = after === null ? 0 : data.findIndex(({ id }) => id === after) + 1;
    const limit = Math.min(100, Number(query.get('limit') ?? 20));
    const page = data.slice(start, start + limit);
    return {
      status: 200,
      body: {
        object: 'list',
        data: page,
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
        has_more: start + limit < data.length,
      },
    };
  };

  return {
    /** For batches made from now on. */
    setPlan: (next: BatchPlan) => {
      plan = next;
    },
    /** Null for an address that is none of these. */
    handle: async (
      method: string,
      path: string,
      query: URLSearchParams,
      contentType: string,
      bytes: Buffer,
    ): Promise<BatchAnswer | null> => {
      const [, room, id, what] = path.split('/');
      if (room === 'files') {
        if (id === undefined && method === 'POST') return upload(contentType, bytes);
        if (id === undefined && method === 'GET')
          return list([...files.values()].map(fileJson).reverse(), query);
        const file = files.get(id ?? '');
        if (!file) return refusal(404, `no such file: ${id}`, undefined, 'id');
        if (method === 'GET' && what === 'content') return { status: 200, body: null, content: file.bytes };
        if (method === 'GET') return { status: 200, body: fileJson(file) };
        if (method === 'DELETE') {
          files.delete(file.id);
          return { status: 200, body: { id: file.id, object: 'file', deleted: true } };
        }
      }
      if (room === 'batches') {
        if (id === undefined && method === 'POST') return create(bytes.toString('utf8'));
        if (id === undefined && method === 'GET')
          return list([...batches.values()].map(batchJson).reverse(), query);
        const batch = batches.get(id ?? '');
        if (!batch) return refusal(404, `no such batch: ${id}`, undefined, 'id');
        if (method === 'GET') return { status: 200, body: look(batch) };
        if (method === 'POST' && what === 'cancel') {
          if (!['validating', 'in_progress', 'finalizing'].includes(statusOf(batch))) {
            return refusal(409, 'the batch has ended', undefined, null);
          }
          batch.cancelled = 'asked';
          return { status: 200, body: batchJson(batch) };
        }
      }
      return null;
    },
  };
};
