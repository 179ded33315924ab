import { z } from 'zod';
import { mean, percent } from '../../domain/statistics.ts';
import { canonicalJson, sha256 } from '../../naming.ts';
import type { Prompts } from '../benchmark.ts';
import { findJson, type JsonValue } from '../json-in-prose.ts';
import {
  type AnswerRow,
  type EvidenceType,
  evidenceTypes,
  type ScoredItem,
  type TranscriptRow,
} from './format.ts';
import { goldText } from './judge.ts';
import { auditPrompts, promptText } from './prompts.ts';

const lacking = '(?:insufficient|not enough|not sufficient|no|no clear|no direct|no specific|lack of|lacks?)';
const knowledge = '(?:evidence|information|context|data|details?|mention|indication|record)';
const source =
  '(?:conversation|audio|recordings?|dialogue|history|sessions?|evidence|information|context|clips?|data)';
const saying = '(?:mention|specify|say|state|contain|provide|indicate|include|reveal|tell)';
const finding =
  '(?:determined?|answer(?:ed)?|tell|say|know|identif(?:y|ied)|confirm(?:ed)?|infer(?:red)?|establish(?:ed)?|verif(?:y|ied)|conclude)';
const unable =
  "(?:cannot|can not|can't|could not|couldn't|unable to|not able to|impossible to|not possible to)";

/** Ways to say that one does not answer, for want of evidence or on principle. Apostrophes are straight here. */
const abstaining = [
  new RegExp(`\\b${lacking} (?:\\w+ ){0,2}${knowledge}\\b`),
  new RegExp(
    `\\b${knowledge}\\b[^.!?]{0,40}\\b(?:is|are|was|were) (?:insufficient|missing|ambiguous|lacking|unclear|not (?:sufficient|enough|clear|provided|available|given))\\b`,
  ),
  new RegExp(`\\b${unable} (?:be )?(?:\\w+ )?${finding}\\b`),
  new RegExp(`\\b${source}\\b[^.!?]{0,20}\\b(?:do|does|did)(?: not|n't) (?:\\w+ )?${saying}\\b`),
  /\b(?:is|are|was|were)(?: not|n't| never) (?:\w+ )?(?:mentioned|specified|stated|provided|discussed)\b/,
  /\bi (?:do|did)(?: not|n't) (?:know|recall|remember|have)\b|\bi have no idea\b|\bi(?:'m| am) not (?:sure|certain)\b/,
  /\b(?:cannot|can't|won't|unable to|not able to) (?:help|assist|comply|process|listen|hear|access)\b/,
  /^\W*(?:unknown|unclear|unanswerable|n\/a)\W*$/,
];

/** Signs that an answer is given all the same. */
const committing =
  /\bguess(?:ing)?\b|\bmost likely\b|\bprobably\b|\bi (?:think|believe)\b|\bthe answer (?:is|would be|could be|might be) (?!not\b|un)/;

/**
 * Whether a response declines to answer, by its words: it says that the evidence does not suffice, that it does not know,
 * or that it will not, and shows no sign of a guess beside that. "I don't know, most likely Tuesday" commits to Tuesday.
 * The rule only keeps refusals from the auditor, who can still report that no answer was given.
 */
export const abstains = (response: string): boolean => {
  const text = response
    .toLowerCase()
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/\s+/g, ' ');
  return (
    abstaining.some((pattern) => pattern.test(text)) &&
    !committing.test(text.replace(/\b(?:do not|don't|cannot|can't|not) guess\b/g, ''))
  );
};

/** Kind of the failure that a reply cut by the length cap leaves behind. */
const cutOff = 'length_truncated';

export interface AuditSelection {
  /** Wrong answers that commit to something: what the auditor is asked about. */
  committed: ScoredItem[];
  /** Wrong answers that were removed first, by why. */
  abstained: number;
  empty: number;
  cutOff: number;
}

/**
 * Wrong answers to be traced (voxmem-protocol §6): judged incorrect, with a committed answer. An ungraded reply is not
 * known to be wrong, and a failed request has no answer.
 */
export const auditSelection = (items: readonly ScoredItem[]): AuditSelection => {
  const wrong = items.filter((item) => item.status === 'incorrect' && item.response.trim() !== '');
  const committed = wrong.filter((item) => !abstains(item.response));
  return {
    committed,
    abstained: wrong.length - committed.length,
    empty: items.filter((item) => item.status === 'empty').length,
    cutOff: items.filter((item) => item.failure === cutOff).length,
  };
};

/**
 * All that the auditor may know of a wrong answer; `key` is the SHA-256 of everything else in it. Neither model nor kind
 * of evidence, operation or subtype is in it.
 */
export const auditRequestItem = z.strictObject({
  key: z.string().regex(/^[0-9a-f]{64}$/),
  rubric: z.literal('audit'),
  question: z.string(),
  /** As `goldText` writes it; null for items to be refused. */
  gold: z.string().nullable(),
  response: z.string(),
  /** In the order of the history; the auditor knows them by their position, from 1. */
  sessions: z.array(
    z.strictObject({
      timestamp: z.string(),
      turns: z.array(z.strictObject({ role: z.enum(['user', 'assistant']), text: z.string() })),
    }),
  ),
});
export type AuditItem = z.infer<typeof auditRequestItem>;

/**
 * The item to audit. Equal items have equal keys, whoever answered.
 *
 * @param transcripts of the item's sessions in the order of its history
 */
export const auditItem = (
  answer: Pick<AnswerRow, 'question_text' | 'gold' | 'expected_response'>,
  transcripts: readonly TranscriptRow[],
  response: string,
): AuditItem => {
  const item = {
    rubric: 'audit' as const,
    question: answer.question_text,
    gold: answer.expected_response === 'insufficient_evidence' ? null : goldText(answer.gold),
    response,
    sessions: transcripts.map(({ timestamp, turns }) => ({ timestamp, turns })),
  };
  return { key: sha256(canonicalJson(item)), ...item };
};

/** Names the wording of the auditor's prompt: records made under another one are not mixed with these. */
export const auditPromptVersion = (prompts: Prompts): string =>
  `voxmem-audit-${sha256(promptText(prompts, auditPrompts[0])).slice(0, 12)}`;

/** Asks the auditor about one answer. Throws `BenchmarkInvalid` where its prompt is missing. */
export const buildAuditRequest = (item: AuditItem, prompts: Prompts): { system: string; user: string } => ({
  system: promptText(prompts, auditPrompts[0]),
  user: JSON.stringify({
    question: item.question,
    right_answer: item.gold,
    reply: item.response,
    sessions: item.sessions.map(({ timestamp, turns }, index) => ({
      number: index + 1,
      timestamp,
      turns: turns.map(({ role, text }) => ({ speaker: role, text })),
    })),
  }),
});

const ascending = (numbers: readonly number[]): boolean =>
  numbers.every((number, index) => index === 0 || number > numbers[index - 1]!);

const sessionNumbers = z
  .array(z.number().int().positive())
  .refine(ascending, { error: 'session numbers do not ascend' });

/** What the auditor found; `prompts/auditor.md` says what the words mean. */
export const auditRecord = z
  .strictObject({
    answer: z.string().trim().min(1).nullable(),
    needed_sessions: sessionNumbers,
    matched_sessions: sessionNumbers,
    matched_content: z.enum(['asked', 'other_speaker', 'other_time', 'other_value', 'unrelated', 'none']),
    rendering: z.enum(['faithful', 'altered', 'absent', 'unclear']),
    result: z.enum(['follows', 'does_not_follow', 'unclear']),
    note: z.string(),
  })
  .refine((record) => (record.matched_content === 'none') === (record.matched_sessions.length === 0), {
    error: 'matched_content is "none" if and only if no session is matched',
  });
export type AuditRecord = z.infer<typeof auditRecord>;

const plain = (value: JsonValue): unknown => {
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
  return value;
};

export type AuditReply =
  | { ok: true; record: AuditRecord }
  | { ok: false; kind: 'audit_unparsed' | 'audit_invalid'; message: string };

/**
 * Reads an auditor's reply: exactly one JSON value, prose and fences around it aside, and exactly the record that was
 * asked for. Anything else is void and asked again: a fact is never guessed.
 */
export const parseAuditReply = (text: string | null, item: Pick<AuditItem, 'sessions'>): AuditReply => {
  const found = findJson(text ?? '');
  if ('broken' in found)
    return { ok: false, kind: 'audit_unparsed', message: `broken JSON: ${found.broken}` };
  if (found.values.length !== 1) {
    return { ok: false, kind: 'audit_unparsed', message: `${found.values.length} JSON values, not one` };
  }
  const read = auditRecord.safeParse(plain(found.values[0]!));
  if (!read.success) {
    const { path, message } = read.error.issues[0]!;
    return { ok: false, kind: 'audit_invalid', message: [...path, message].join(': ') };
  }
  const { needed_sessions, matched_sessions } = read.data;
  const beyond = [...needed_sessions, ...matched_sessions].find((number) => number > item.sessions.length);
  if (beyond !== undefined) {
    return { ok: false, kind: 'audit_invalid', message: `there is no session ${beyond}` };
  }
  return { ok: true, record: read.data };
};

/** Where an answer went wrong, earliest first; `unsupported`: no stage explains it. */
export const stages = ['recognition_localization', 'binding', 'operation', 'unsupported'] as const;
export type Stage = (typeof stages)[number];

/**
 * The earliest stage at which an answer failed (voxmem-protocol §6), by the first rule that holds:
 *
 * - recognition or localization: evidence was taken up as something else than was said or sounded; or the answer comes
 *   from something unrelated; or it is about the right thing but misses a session that was needed.
 * - binding: the answer is content of another speaker, time or thing than the one asked about.
 * - operation: the right content was found and the wrong thing made of it.
 * - unsupported: none of these, as where no session holds the answer.
 *
 * Null where the auditor finds no committed answer: there is nothing to attribute.
 */
export const stageOf = (record: AuditRecord): Stage | null => {
  const { matched_content: content, matched_sessions: matched, needed_sessions: needed } = record;
  if (record.answer === null) return null;
  if (record.rendering === 'altered' || content === 'unrelated') return 'recognition_localization';
  if (content === 'none') return 'unsupported';
  if (content !== 'asked') return 'binding';
  if (needed.some((session) => !matched.includes(session))) return 'recognition_localization';
  return record.result === 'does_not_follow' ? 'operation' : 'unsupported';
};

/** An error that the auditor has traced. */
export interface AttributedError {
  lane: string;
  displayName: string;
  evidenceType: EvidenceType;
  stage: Stage;
}

/** Cells with fewer errors say too little of proportions. */
export const leastErrors = 5;

export interface AttributionCell {
  lane: string;
  displayName: string;
  evidenceType: EvidenceType;
  errors: number;
  counts: Record<Stage, number>;
  sharesPct: Record<Stage, number>;
  /** Whether the cell has errors enough to stand in averages. */
  averaged: boolean;
}

/** Mean of the shares of cells, each weighing the same. */
export interface AttributionAverage {
  cells: number;
  sharesPct: Record<Stage, number>;
}

export interface AttributionTable {
  /** By lane in the order given, then evidence type; cells without errors are absent. */
  cells: AttributionCell[];
  /** Null where no cell has errors enough. */
  overall: AttributionAverage | null;
  byLane: (AttributionAverage & { lane: string; displayName: string })[];
  byEvidenceType: (AttributionAverage & { evidenceType: EvidenceType })[];
}

const byStage = <Value>(valueAt: (stage: Stage) => Value): Record<Stage, Value> =>
  Object.fromEntries(stages.map((stage) => [stage, valueAt(stage)])) as Record<Stage, Value>;

const averageOf = (cells: readonly AttributionCell[]): AttributionAverage | null => {
  const averaged = cells.filter((cell) => cell.averaged);
  if (averaged.length === 0) return null;
  return {
    cells: averaged.length,
    sharesPct: byStage((stage) => mean(averaged.map((cell) => cell.sharesPct[stage]))),
  };
};

/** Proportions of stages, macro-averaged over model × evidence-type cells with at least five errors (§6). */
export const attributionTable = (errors: readonly AttributedError[]): AttributionTable => {
  const byLane = [...Map.groupBy(errors, (error) => error.lane).values()];
  const cells = byLane.flatMap((ofLane) =>
    evidenceTypes.flatMap((evidenceType): AttributionCell[] => {
      const members = ofLane.filter((error) => error.evidenceType === evidenceType);
      if (members.length === 0) return [];
      const counts = byStage((stage) => members.filter((error) => error.stage === stage).length);
      return [
        {
          lane: members[0]!.lane,
          displayName: members[0]!.displayName,
          evidenceType,
          errors: members.length,
          counts,
          sharesPct: byStage((stage) => percent(counts[stage], members.length)),
          averaged: members.length >= leastErrors,
        },
      ];
    }),
  );
  return {
    cells,
    overall: averageOf(cells),
    byLane: byLane.flatMap(([first]) => {
      const { lane, displayName } = first!;
      const average = averageOf(cells.filter((cell) => cell.lane === lane));
      return average === null ? [] : [{ lane, displayName, ...average }];
    }),
    byEvidenceType: evidenceTypes.flatMap((evidenceType) => {
      const average = averageOf(cells.filter((cell) => cell.evidenceType === evidenceType));
      return average === null ? [] : [{ evidenceType, ...average }];
    }),
  };
};
