import type { ReviewItem } from '../../contracts/reviews.ts';
import { canonicalJson, sha256 } from '../../naming.ts';
import type {
  Benchmark,
  FollowUps,
  JudgeProtocol,
  LaneScores,
  Prompts,
  RuleScore,
  Verdict,
} from '../benchmark.ts';
import { aggregateLanes, type VoxmemLane } from './aggregate.ts';
import { compareJudges } from './agreement.ts';
import {
  type AttributedError,
  type AuditItem,
  type AuditRecord,
  attributionTable,
  auditItem,
  auditPromptVersion,
  auditSelection,
  buildAuditRequest,
  parseAuditReply,
  stageOf,
} from './attribution.ts';
import { predictionLines } from './export-predictions.ts';
import {
  answersFile,
  itemsFile,
  mediaManifestFile,
  type ScoredItem,
  sessionsFile,
  transcriptsFile,
} from './format.ts';
import { type ItemVerdict, importReviews, type VerdictItem, verdictProtocol } from './judge.ts';
import { frozenRequest, planItems, spoken } from './messages.ts';
import { type VoxmemOptions, voxmemOptions } from './options.ts';
import { auditPrompts, requestPrompts, rubrics, systemPrompt } from './prompts.ts';
import {
  mediaDigests,
  type Answers as ReadAnswers,
  type Inputs as ReadInputs,
  type Release,
  readRelease,
  selectItems,
} from './read.ts';
import { reportFiles, reportSummary, reportTables } from './report-tables.ts';
import { scoreItem, withVerdict } from './score.ts';
import { voxmemUnpacking } from './unpacking.ts';

/** What the release holds, and how the sweep wants it asked. */
interface Inputs extends ReadInputs {
  options: VoxmemOptions;
  prompts: Prompts;
}

interface Answers {
  byItem: ReadAnswers;
  /** Null unless errors are to be attributed. */
  transcripts: Release['transcripts'];
}

/** A scored reply as it waits for its verdict: `review` is what the judge is asked. */
interface ScoredRow {
  item: ScoredItem;
  review: VerdictItem | null;
}

const rowOf = ({ row }: RuleScore): ScoredRow => row as ScoredRow;

const judged = (score: RuleScore, verdict: (key: string) => Verdict | null): ScoredItem =>
  withVerdict(
    rowOf(score).item,
    score.reviewKey === null ? null : (verdict(score.reviewKey) as ItemVerdict | null),
  );

/** What the auditor said of a wrong answer; null where no record of it can be read. */
interface AuditVerdict {
  record: AuditRecord | null;
}

const isAudit = (items: readonly ReviewItem[]): boolean => items[0]?.rubric === 'audit';

/** Judge and auditor are one caller with different questions: what an item is tells which. */
const protocolOf = (prompts: Prompts): JudgeProtocol => {
  const verdicts = verdictProtocol(prompts);
  const onlyOf = (items: readonly ReviewItem[]): AuditItem => items[0] as unknown as AuditItem;
  return {
    ...verdicts,
    buildRequest: (items) =>
      isAudit(items) ? buildAuditRequest(onlyOf(items), prompts) : verdicts.buildRequest(items),
    parseReply(text, items) {
      if (!isAudit(items)) return verdicts.parseReply(text, items);
      const item = onlyOf(items);
      const read = parseAuditReply(text, item);
      return read.ok ? { ok: true, verdicts: new Map([[item.key, { record: read.record }]]) } : read;
    },
    unreadable: (items) =>
      isAudit(items)
        ? new Map(items.map((item) => [item.key, { record: null }]))
        : verdicts.unreadable!(items),
  };
};

const attributed = (
  { title, followUps }: LaneScores,
  items: readonly ScoredItem[],
  verdict: (key: string) => Verdict | null,
): AttributedError[] =>
  items.flatMap((item) => {
    const key = followUps.get(item.itemId);
    const audit = key === undefined ? null : (verdict(key) as AuditVerdict | null);
    const stage = audit?.record == null ? null : stageOf(audit.record);
    if (stage === null || item.status !== 'incorrect') return [];
    return [{ lane: title.id, displayName: title.displayName, evidenceType: item.evidenceType, stage }];
  });

/** Wrong answers with what the auditor is shown of them, by item. */
const auditItems =
  (inputs: Inputs): FollowUps<Answers> =>
  (answers, scores, verdict) => {
    const items = scores.map((score) => judged(score, verdict));
    // Records made under another wording of the auditor's prompt are not taken for these.
    const version = auditPromptVersion(inputs.prompts);
    return new Map(
      auditSelection(items).committed.map(({ itemId, response }): [string, ReviewItem] => {
        const sessions = inputs.items.get(itemId)!.session_keys;
        const transcripts = sessions.map((key) => answers.transcripts!.get(key)!);
        const item = auditItem(answers.byItem.get(itemId)!, transcripts, response);
        return [itemId, { ...item, key: sha256(canonicalJson([version, item.key])) }];
      }),
    );
  };

const count = (items: readonly ScoredItem[], statuses: readonly ScoredItem['status'][]): number =>
  items.filter(({ status }) => statuses.includes(status)).length;

/** VoxMem (voxmem-protocol): what does a model remember of spoken conversations, and for how long? */
export const voxmemBenchmark: Benchmark<Inputs, Answers> = {
  kind: 'voxmem',
  interfaces: [spoken],
  options: voxmemOptions,
  prompts: {
    request: (options) => [requestPrompts[(options as VoxmemOptions).abstention ? 0 : 1]],
    judge: [...rubrics, ...auditPrompts],
  },
  exportFormat: 'voxmem-release',
  unpacking: voxmemUnpacking,
  inputFiles: [itemsFile, sessionsFile],
  answerFiles: [answersFile, transcriptsFile],
  mediaManifest: mediaManifestFile,
  mediaDigests,

  async read(openInputs, openAnswers, { options, prompts }, withRequests = true) {
    const wanted = voxmemOptions.parse(options);
    const release = await readRelease({
      items: { file: itemsFile, lines: openInputs(itemsFile) },
      sessions: withRequests ? { file: sessionsFile, lines: openInputs(sessionsFile) } : null,
      answers: openAnswers === null ? null : { file: answersFile, lines: openAnswers(answersFile) },
      transcripts:
        openAnswers === null || !wanted.attribution
          ? null
          : { file: transcriptsFile, lines: openAnswers(transcriptsFile) },
      media: null,
    });
    const { items, sessions, answers, transcripts, problems } = release;
    return {
      inputs: { items, sessions, options: wanted, prompts },
      answers: answers === null ? null : { byItem: answers, transcripts },
      problems,
    };
  },

  select(inputs, answers, { manifest, limit }) {
    const { lengths, evidenceTypes, ids } = inputs.options;
    const wanted = { lengths, evidenceTypes, ids, manifest, limit };
    const { itemIds, problems } = selectItems(inputs.items, answers.byItem, wanted);
    return { taskIds: itemIds, problems };
  },

  planLane: (_inputs, { taskIds, modalities }) => planItems(taskIds, modalities),

  frozenRequest: (inputs, requestId) =>
    frozenRequest(inputs, requestId, systemPrompt(inputs.prompts, inputs.options)),

  score(inputs, answers, { taskIds }, record) {
    return taskIds.map((itemId) => {
      const row: ScoredRow = scoreItem(answers.byItem.get(itemId)!, record(itemId), inputs.options);
      return { requestId: itemId, reviewKey: row.review?.key ?? null, row };
    });
  },

  reviewItem: (score) => rowOf(score).review!,

  followUps: (inputs) => (inputs.options.attribution ? auditItems(inputs) : null),

  importReviews,

  judge: protocolOf,

  async aggregate(inputs, { seed, lanes, onLane, verdict, judges }) {
    const kept: VoxmemLane[] = [];
    const byJudge = judges.map(({ judge, model }) => ({
      judge,
      family: inputs.options.families[model] ?? null,
      lanes: [] as { lane: string; displayName: string; family: string | null; items: ScoredItem[] }[],
    }));
    const errors: AttributedError[] = [];
    for await (const lane of lanes) {
      const { title, scores } = lane;
      const items = scores.map((score) => judged(score, verdict));
      kept.push({ title, items });
      errors.push(...attributed(lane, items, verdict));
      for (const [index, one] of judges.entries()) {
        byJudge[index]!.lanes.push({
          lane: title.id,
          displayName: title.displayName,
          family: inputs.options.families[title.id] ?? null,
          items: scores.map((score) => judged(score, one.verdict)),
        });
      }
      await onLane({
        lane: title.id,
        valid: count(items, ['correct', 'incorrect', 'ungraded']),
        excluded: count(items, ['failed', 'empty', 'rejected']),
        pending: count(items, ['pending']),
        open: count(items, ['open']),
        scoredRows: items,
        files: [],
      });
    }
    const sources = {
      report: aggregateLanes(kept, { seed }),
      judges: byJudge.length < 2 ? null : compareJudges(byJudge),
      attribution: errors.length === 0 ? null : attributionTable(errors),
    };
    return { files: reportFiles(sources), summary: reportSummary(sources), ...reportTables(sources) };
  },

  exportLane(inputs, answers, { title, scoredRows, judge, record }) {
    const { abstention, grader } = inputs.options;
    const lines = predictionLines(inputs, answers.byItem, {
      model: title.model,
      abstention,
      judge: grader === 'exact-match' ? grader : judge,
      items: scoredRows as readonly ScoredItem[],
      record,
    });
    return [{ path: `${title.id}/predictions.jsonl`, content: [...lines].join('') }];
  },
};
