import { z } from 'zod';
import type { Problem } from '../../errors.ts';
import { canonicalJson } from '../../naming.ts';
import {
  createProblemLog,
  type ProblemLog,
  quoted,
  readDocument,
  readRows,
  type TextFile,
} from '../read-rows.ts';
import {
  type AnswerRow,
  answerRow,
  type ContextLength,
  type EvidenceType,
  type ItemRow,
  itemRow,
  type MediaManifest,
  mediaManifest,
  type SessionRow,
  sessionRow,
  type TranscriptRow,
  transcriptRow,
} from './format.ts';

export interface ReleaseTexts {
  items: TextFile;
  /** Null for a reader that makes no request: by far the most of a release. */
  sessions: TextFile | null;
  /** Null for a reader that must not see gold: answers are then neither read nor checked. */
  answers: TextFile | null;
  /** Null unless errors are to be attributed. */
  transcripts: TextFile | null;
  /** Null: clips are not looked up. */
  media: { file: string; text: string } | null;
}

/** What requests are made of. */
export interface Inputs {
  /** By `item_id`, in file order. */
  items: ReadonlyMap<string, ItemRow>;
  /** By `session_key`: each once, however many histories it stands in. Empty where they were not read. */
  sessions: ReadonlyMap<string, SessionRow>;
}

/** By `item_id`, in file order. */
export type Answers = ReadonlyMap<string, AnswerRow>;

export interface Release extends Inputs {
  /** Null where no answers were given. */
  answers: Answers | null;
  /** By `session_key`; null where none were given. */
  transcripts: ReadonlyMap<string, TranscriptRow> | null;
  /** Empty for a sound release. Rows with faults of form are missing above. */
  problems: Problem[];
}

/** Rows that passed their own checks, with their lines, and ids of rows that did not. */
interface Table<T> {
  file: string;
  rows: Map<string, T>;
  lines: Map<string, number>;
  refusedIds: Set<unknown>;
}

type Id = 'item_id' | 'session_key';

async function readTable<Key extends Id, T extends Record<Key, string>>(
  source: TextFile,
  schema: z.ZodType<T>,
  idKey: Key,
  log: ProblemLog,
): Promise<Table<T>> {
  const table: Table<T> = {
    file: source.file,
    rows: new Map(),
    lines: new Map(),
    refusedIds: new Set(),
  };
  const onRow = (row: T, line: number) => {
    const id = row[idKey];
    const first = table.lines.get(id);
    if (first !== undefined) {
      log.add(source.file, line, `${idKey} ${quoted(id)} is already on line ${first}`);
      return;
    }
    table.rows.set(id, row);
    table.lines.set(id, line);
  };
  await readRows(source, schema, log, onRow, {
    onRefused(value) {
      if (typeof value === 'object' && value !== null && Object.hasOwn(value, idKey)) {
        table.refusedIds.add((value as Record<string, unknown>)[idKey]);
      }
    },
  });
  return table;
}

const has = (table: Table<unknown>, id: string): boolean => table.rows.has(id) || table.refusedIds.has(id);

const clipPath = /^media\/([0-9a-f]{64})\.wav$/;

/**
 * Reads `media.json`. Clips bear the SHA-256 of their content as their name; one that the manifest gives another is a
 * problem.
 */
export function parseMediaManifest(
  file: string,
  text: string,
): { clips: Map<string, MediaManifest[string]>; problems: Problem[] } {
  const log = createProblemLog();
  const clips = new Map(Object.entries(readDocument(file, text, mediaManifest, log) ?? {}));
  for (const [path, { sha256, bytes, seconds }] of clips) {
    const name = clipPath.exec(path)?.[1];
    if (name === undefined) log.add(file, null, `clip ${quoted(path)} is not "media/<sha256>.wav"`);
    else if (name !== sha256) log.add(file, null, `clip ${quoted(path)} has sha256 ${quoted(sha256)}`);
    if (bytes < 1 || seconds <= 0) log.add(file, null, `clip ${quoted(path)} has no length`);
  }
  return { clips, problems: log.list() };
}

/** SHA-256 and length of every clip by its path, as `media.json` has them. */
export const mediaDigests = (
  file: string,
  text: string,
): { sha256ByPath: Map<string, string>; secondsByPath: Map<string, number>; problems: Problem[] } => {
  const { clips, problems } = parseMediaManifest(file, text);
  return {
    sha256ByPath: new Map(Array.from(clips, ([path, { sha256 }]) => [path, sha256])),
    secondsByPath: new Map(Array.from(clips, ([path, { seconds }]) => [path, seconds])),
    problems,
  };
};

type CheckClip = (path: string, fault: (message: string) => void) => void;

function checkSessions(sessions: Table<SessionRow>, checkClip: CheckClip, log: ProblemLog): void {
  for (const [key, { turns }] of sessions.rows) {
    const fault = (message: string) =>
      log.add(sessions.file, sessions.lines.get(key)!, `session ${quoted(key)}: ${message}`);
    const clips = turns.flatMap((turn) => (turn.role === 'user' ? turn.audio : []));
    if (clips.length === 0) fault('no user turn, so nowhere to put its timestamp');
    for (const path of new Set(clips)) checkClip(path, fault);
  }
}

function checkItems(
  items: Table<ItemRow>,
  sessions: Table<SessionRow> | null,
  checkClip: CheckClip,
  log: ProblemLog,
): void {
  const askedAt = new Map<string, string>();
  for (const [itemId, row] of items.rows) {
    const fault = (message: string) =>
      log.add(items.file, items.lines.get(itemId)!, `item ${quoted(itemId)}: ${message}`);
    const place = canonicalJson([row.question_id, row.context_length]);
    const earlier = askedAt.get(place);
    if (earlier === undefined) askedAt.set(place, itemId);
    else fault(`question ${quoted(row.question_id)} at ${row.context_length} is already ${quoted(earlier)}`);
    for (const key of new Set(row.session_keys)) {
      if (sessions !== null && !has(sessions, key))
        fault(`session ${quoted(key)} is not in ${sessions.file}`);
    }
    checkClip(row.question_audio, fault);
  }
}

/** What the lengths of one question have in common (voxmem-protocol §1). */
const heldFixed = [
  'evidence_type',
  'memory_operation',
  'expected_response',
  'question_text',
  'gold',
  'answer_type',
] as const;

function checkAnswers(answers: Table<AnswerRow>, items: Table<ItemRow>, log: ProblemLog): void {
  const firstOf = new Map<string, AnswerRow>();
  for (const [itemId, row] of answers.rows) {
    const fault = (message: string) =>
      log.add(answers.file, answers.lines.get(itemId)!, `answer to ${quoted(itemId)}: ${message}`);
    const item = items.rows.get(itemId);
    if (item !== undefined) {
      for (const key of ['question_id', 'context_length'] as const) {
        if (item[key] !== row[key])
          fault(`${key} ${quoted(row[key])}, but the item has ${quoted(item[key])}`);
      }
    } else if (!items.refusedIds.has(itemId)) fault(`no such item in ${items.file}`);

    const isRefusal = row.expected_response === 'insufficient_evidence';
    if (isRefusal !== (row.memory_operation === 'answer_refusal')) {
      fault(`expected_response "${row.expected_response}" with memory_operation "${row.memory_operation}"`);
    }
    if (!isRefusal && (row.gold ?? null) === null) fault('gold is null, but an answer is expected');

    const first = firstOf.get(row.question_id);
    if (first === undefined) firstOf.set(row.question_id, row);
    else {
      const differing = heldFixed.filter((key) => canonicalJson(first[key]) !== canonicalJson(row[key]));
      if (differing.length > 0) fault(`${differing.join(', ')} not as in ${quoted(first.item_id)}`);
    }
  }
  for (const itemId of items.rows.keys()) {
    if (!has(answers, itemId)) {
      log.add(
        items.file,
        items.lines.get(itemId)!,
        `item ${quoted(itemId)} has no answer in ${answers.file}`,
      );
    }
  }
}

function checkTranscripts(
  transcripts: Table<TranscriptRow>,
  sessions: Table<SessionRow>,
  log: ProblemLog,
): void {
  for (const [key, { timestamp, turns }] of transcripts.rows) {
    const fault = (message: string) =>
      log.add(transcripts.file, transcripts.lines.get(key)!, `transcript of ${quoted(key)}: ${message}`);
    const session = sessions.rows.get(key);
    if (session === undefined) {
      if (!sessions.refusedIds.has(key)) fault(`no such session in ${sessions.file}`);
      continue;
    }
    if (session.timestamp !== timestamp) fault(`timestamp ${quoted(timestamp)} differs from the session's`);
    const roles = (of: readonly { role: string }[]) => of.map((turn) => turn.role).join();
    if (roles(session.turns) !== roles(turns)) fault("its turns are not the session's");
  }
  for (const key of sessions.rows.keys()) {
    if (!has(transcripts, key)) {
      log.add(
        sessions.file,
        sessions.lines.get(key)!,
        `session ${quoted(key)} has no transcript in ${transcripts.file}`,
      );
    }
  }
}

/**
 * Reads an unpacked VoxMem release (voxmem-protocol §2) and checks it as a whole: form of every row, references, clips,
 * answers. Bad data never throws; each fault is a problem with file and line.
 */
export async function readRelease(texts: ReleaseTexts): Promise<Release> {
  const log = createProblemLog(
    [texts.media, texts.sessions, texts.items, texts.answers, texts.transcripts].flatMap(
      (text) => text?.file ?? [],
    ),
  );
  let checkClip: CheckClip = (path, fault) => {
    if (!clipPath.test(path)) fault(`clip ${quoted(path)} is not "media/<sha256>.wav"`);
  };
  if (texts.media !== null) {
    const { file, text } = texts.media;
    const { clips, problems } = parseMediaManifest(file, text);
    for (const problem of problems) log.add(problem.file, problem.line, problem.message);
    checkClip = (path, fault) => {
      if (!clips.has(path)) fault(`clip ${quoted(path)} is not in ${file}`);
    };
  }

  let sessions: Table<SessionRow> | null = null;
  if (texts.sessions !== null) {
    sessions = await readTable<'session_key', SessionRow>(texts.sessions, sessionRow, 'session_key', log);
    checkSessions(sessions, checkClip, log);
  }
  const sharedKeys = new Map<string, string>();
  const shared = (key: string): string => {
    const known = sharedKeys.get(key);
    if (known === undefined) sharedKeys.set(key, key);
    return known ?? key;
  };
  const items = await readTable<'item_id', ItemRow>(texts.items, itemRow, 'item_id', log);
  for (const row of items.rows.values()) {
    // Thousands of histories name the same sessions: one string for each key instead of one for each mention.
    row.session_keys = row.session_keys.map(shared);
  }
  checkItems(items, sessions, checkClip, log);

  let answers: Table<AnswerRow> | null = null;
  if (texts.answers !== null) {
    answers = await readTable<'item_id', AnswerRow>(texts.answers, answerRow, 'item_id', log);
    checkAnswers(answers, items, log);
  }
  let transcripts: Table<TranscriptRow> | null = null;
  if (texts.transcripts !== null) {
    transcripts = await readTable<'session_key', TranscriptRow>(
      texts.transcripts,
      transcriptRow,
      'session_key',
      log,
    );
    if (sessions !== null) checkTranscripts(transcripts, sessions, log);
  }
  return {
    items: items.rows,
    sessions: sessions?.rows ?? new Map(),
    answers: answers?.rows ?? null,
    transcripts: transcripts?.rows ?? null,
    problems: log.list(),
  };
}

const selectionManifest = z.looseObject({
  item_ids: z.array(z.string().min(1)).min(1, 'is empty; a manifest names at least one item'),
});

export interface ItemSelection {
  lengths?: readonly ContextLength[] | undefined;
  /** Needs the answers: what evidence an item turns on is nothing that its request may tell. */
  evidenceTypes?: readonly EvidenceType[] | undefined;
  /** Items by their id, or by that of their question: then at every length. */
  ids?: readonly string[] | undefined;
  /** Text of `{"item_ids": [...]}`; items then come in its order. */
  manifest?: { file: string; text: string } | null | undefined;
  /** At most so many items, counted after the other filters. */
  limit?: number | null | undefined;
}

/**
 * Chooses items, in the release's order or the manifest's. Ids that are unknown or named twice, and a selection that
 * leaves nothing, are problems; the ids are of use only where there are none.
 */
export function selectItems(
  items: Inputs['items'],
  answers: Answers | null,
  { lengths, evidenceTypes, ids, manifest, limit }: ItemSelection,
): { itemIds: string[]; problems: Problem[] } {
  const log = createProblemLog();
  let chosen = [...items.values()];
  if (manifest) {
    chosen = [];
    const seen = new Set<string>();
    for (const id of readDocument(manifest.file, manifest.text, selectionManifest, log)?.item_ids ?? []) {
      const item = items.get(id);
      if (seen.has(id)) log.add(manifest.file, null, `item ${quoted(id)} is named more than once`);
      else if (item === undefined) log.add(manifest.file, null, `item ${quoted(id)} is not in the release`);
      else chosen.push(item);
      seen.add(id);
    }
  }
  if (ids !== undefined) {
    const wanted = new Set(ids);
    const known = new Set([...items.values()].flatMap((item) => [item.item_id, item.question_id]));
    for (const id of wanted) {
      if (!known.has(id))
        log.add('ids', null, `${quoted(id)} is neither an item nor a question of the release`);
    }
    chosen = chosen.filter((item) => wanted.has(item.item_id) || wanted.has(item.question_id));
  }
  if (lengths !== undefined) chosen = chosen.filter((item) => lengths.includes(item.context_length));
  if (evidenceTypes !== undefined) {
    if (answers === null) log.add('evidenceTypes', null, 'cannot be told without the answers');
    chosen = chosen.filter((item) => {
      const type = answers?.get(item.item_id)?.evidence_type;
      return type !== undefined && evidenceTypes.includes(type);
    });
  }
  if (limit !== undefined && limit !== null) {
    if (!Number.isInteger(limit) || limit < 1) {
      log.add('limit', null, `${limit} is not a whole number above 0`);
    }
    chosen = chosen.slice(0, Math.max(0, limit));
  }
  if (chosen.length === 0 && log.list().length === 0) {
    log.add('selection', null, 'no item of the release is left by lengths, evidenceTypes, ids and manifest');
  }
  return { itemIds: chosen.map((item) => item.item_id), problems: log.list() };
}
