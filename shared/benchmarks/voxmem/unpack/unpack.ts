import { errorNames, ProblemsFound, TurnsweepError } from '../../../errors.ts';
import { canonicalJson, sha256 } from '../../../naming.ts';
import type { UnpackProgress, UnpackSink } from '../../benchmark.ts';
import {
  type AnswerRow,
  answersFile,
  type ContextLength,
  type EvidenceType,
  type ItemRow,
  itemsFile,
  mediaManifestFile,
  sessionsFile,
  transcriptsFile,
} from '../format.ts';
import { createClipKeeper } from './clips.ts';
import { type Described, describedColumns, lengthRank, readDescribed } from './described-row.ts';
import { createProblemList, type ProblemList, quoted } from './problem-list.ts';
import type { RowSource } from './row-source.ts';
import { readSpoken } from './spoken-row.ts';

/** Which items to unpack. What is left out or null chooses all. */
export interface UnpackSelection {
  lengths?: readonly ContextLength[] | null;
  evidenceTypes?: readonly EvidenceType[] | null;
  /** Ids of items, or of questions for all their lengths. */
  ids?: readonly string[] | null;
  /** At most so many of what the others choose, in the order of `items.jsonl`. */
  limit?: number | null;
}

export interface Unpacked {
  items: number;
  sessions: number;
  clips: number;
  clipBytes: number;
}

/** An item where it was found. */
interface Found extends Described {
  source: RowSource;
  row: number;
}

interface Unpacking {
  found: Found;
  item: ItemRow;
}

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Shortest histories first, then by item id. */
const byLength = (a: Found, b: Found): number =>
  lengthRank(a.answer.context_length) - lengthRank(b.answer.context_length) ||
  inOrder(a.answer.item_id, b.answer.item_id);

const placeOf = ({ source, row }: Found): string => `${source.file}, row ${row}`;

const throwProblems = (problems: ProblemList): void => {
  if (problems.count() === 0) return;
  const what = 'the data set has problems';
  throw new ProblemsFound(errorNames.benchmarkInvalid, what, problems.list());
};

/** Reads what all rows say of their items. */
const scan = async (sources: readonly RowSource[], problems: ProblemList): Promise<Found[]> => {
  const items = new Map<string, Found>();
  const ofQuestions = new Map<string, Found>();
  for (const source of sources) {
    const onFault = (row: number | null, message: string) => problems.add(source.file, row, message);
    for await (const { row, fields } of source.scan(describedColumns, onFault)) {
      const read = readDescribed(fields);
      if ('faults' in read) {
        const id = typeof fields.item_id === 'string' ? `item ${quoted(fields.item_id)}: ` : '';
        for (const fault of read.faults) onFault(row, `${id}${fault}`);
        continue;
      }
      const found = { ...read.described, source, row };
      const { item_id, question_id, context_length } = found.answer;
      const question = canonicalJson([question_id, context_length]);
      const first = items.get(item_id);
      const sameQuestion = ofQuestions.get(question);
      if (first !== undefined) {
        onFault(row, `item ${quoted(item_id)}: there is one in ${placeOf(first)}; give each item once`);
      } else if (sameQuestion !== undefined) {
        onFault(
          row,
          `item ${quoted(item_id)}: question ${quoted(question_id)} has an item of ${context_length} in ${placeOf(sameQuestion)}`,
        );
      } else {
        items.set(item_id, found);
        ofQuestions.set(question, found);
      }
    }
  }
  return [...items.values()];
};

const select = (found: readonly Found[], selection: UnpackSelection): Found[] => {
  const { lengths, evidenceTypes, ids, limit } = selection;
  const known = new Set(found.flatMap(({ answer }) => [answer.item_id, answer.question_id]));
  const unknown = (ids ?? []).filter((id) => !known.has(id));
  if (unknown.length > 0) {
    const shown = unknown.slice(0, 5).map(quoted).join(', ');
    throw new TurnsweepError(errorNames.benchmarkInvalid, `no item or question has the id ${shown}`, {
      remedy: 'correct the selection',
    });
  }
  const wanted = ids === undefined || ids === null ? null : new Set(ids);
  const chosen = found
    .filter(({ answer }) => lengths?.includes(answer.context_length) ?? true)
    .filter(({ answer }) => evidenceTypes?.includes(answer.evidence_type) ?? true)
    .filter(({ answer }) => wanted === null || wanted.has(answer.item_id) || wanted.has(answer.question_id))
    .sort(byLength)
    .slice(0, limit ?? undefined);
  if (chosen.length > 0) return chosen;
  throw new TurnsweepError(errorNames.benchmarkInvalid, 'the selection holds no item', {
    remedy: found.length === 0 ? 'the data set has no rows' : 'choose lengths and types that are there',
  });
};

/** Members that are the same at all lengths of a question. */
const lastingMembers = [
  'family_id',
  'evidence_type',
  'memory_operation',
  'subtype',
  'question_text',
  'expected_response',
  'gold',
  'answer_type',
  'answer_normalization',
  'evidence_session_count',
] as const satisfies readonly (keyof AnswerRow)[];

/** Histories nest, and what is asked does not change with their length. `items` from short to long. */
const checkNesting = (items: readonly Unpacking[], problems: ProblemList): void => {
  const shorter = new Map<string, Unpacking>();
  for (const longer of items) {
    const { answer, source, row } = longer.found;
    const other = shorter.get(answer.question_id);
    shorter.set(answer.question_id, longer);
    if (other === undefined) continue;
    const than = `${quoted(other.item.item_id)} (${placeOf(other.found)})`;
    const fault = (message: string) =>
      problems.add(source.file, row, `item ${quoted(answer.item_id)}: ${message}`);
    for (const member of lastingMembers) {
      if (canonicalJson(answer[member]) !== canonicalJson(other.found.answer[member])) {
        fault(`${member === 'gold' ? 'gold_json' : member} differs from ${than}`);
      }
    }
    if (longer.item.question_audio !== other.item.question_audio)
      fault(`question_audio differs from ${than}`);
    const held = new Set(longer.item.session_keys);
    const lacking = other.item.session_keys.findIndex((key) => !held.has(key));
    if (lacking >= 0) fault(`sessions lacks sessions[${lacking}] of the shorter ${than}; histories nest`);
  }
};

/**
 * Unpacks rows of the data set into the form of `format.ts`. All rows are checked before any audio is read; of items
 * that are not selected no audio is. Equal rows in equal order give equal files, whatever they came from: items and
 * answers stand by length and id, sessions and transcripts in the order in which rows first have them.
 *
 * Throws `ProblemsFound` with every fault and its place, `BenchmarkInvalid` where a file cannot be read or nothing is
 * selected. What the sink holds then is of no use.
 */
export const unpack = async (wanted: {
  sources: readonly RowSource[];
  selection?: UnpackSelection;
  sink: UnpackSink;
  /** Problems listed before the rest is only counted; 1,000 unless given. */
  maxProblems?: number;
  onProgress?: (progress: UnpackProgress) => void;
}): Promise<Unpacked> => {
  const { sources, sink, onProgress } = wanted;
  const problems = createProblemList(wanted.maxProblems ?? 1_000);
  const found = await scan(sources, problems);
  throwProblems(problems);
  const selected = select(found, wanted.selection ?? {});

  const clips = createClipKeeper(sink);
  const unpacked: Unpacking[] = [];
  /** Transcript by session: two of the same speech must have been said alike. */
  const transcripts = new Map<string, string>();
  for (const source of sources) {
    const byRow = new Map(selected.filter((item) => item.source === source).map((item) => [item.row, item]));
    if (byRow.size === 0) continue;
    for await (const { row, fields } of source.read(new Set(byRow.keys()), clips.keep)) {
      const item = byRow.get(row)!;
      const { item_id, question_id, context_length, session_count } = item.answer;
      const fault = (message: string) =>
        problems.add(source.file, row, `item ${quoted(item_id)}: ${message}`);
      const spoken = readSpoken(fields, session_count, fault);
      if (spoken === null) continue;
      for (const [index, { session, transcript }] of spoken.sessions.entries()) {
        const { session_key } = session;
        const said = sha256(JSON.stringify(transcript.turns)).slice(0, 16);
        const known = transcripts.get(session_key);
        if (known === undefined) {
          transcripts.set(session_key, said);
          await sink.appendLine(sessionsFile, JSON.stringify(session));
          await sink.appendLine(transcriptsFile, JSON.stringify(transcript));
        } else if (known !== said) {
          fault(
            `sessions[${index}] has other texts of user turns than an earlier session with the same audio`,
          );
        }
      }
      unpacked.push({
        found: item,
        item: {
          item_id,
          question_id,
          context_length,
          session_keys: spoken.sessions.map(({ session }) => session.session_key),
          query_timestamp: item.queryTimestamp,
          question_audio: spoken.questionAudio,
        },
      });
      onProgress?.({
        file: source.file,
        itemsDone: unpacked.length,
        items: selected.length,
        clips: clips.clipCount(),
        clipBytes: clips.clipBytes(),
      });
    }
  }
  unpacked.sort((a, b) => byLength(a.found, b.found));
  checkNesting(unpacked, problems);
  throwProblems(problems);

  for (const { item, found: of } of unpacked) {
    await sink.appendLine(itemsFile, JSON.stringify(item));
    await sink.appendLine(answersFile, JSON.stringify(of.answer));
  }
  const manifest = clips.manifest();
  await sink.appendLine(mediaManifestFile, '{');
  for (const [index, { path, ...facts }] of manifest.entries()) {
    const comma = index + 1 < manifest.length ? ',' : '';
    await sink.appendLine(mediaManifestFile, `${JSON.stringify(path)}:${JSON.stringify(facts)}${comma}`);
  }
  await sink.appendLine(mediaManifestFile, '}');
  return {
    items: unpacked.length,
    sessions: transcripts.size,
    clips: manifest.length,
    clipBytes: clips.clipBytes(),
  };
};
