import { z } from 'zod';
import type { FailureRecord, RequestRecord } from '../../contracts/records.ts';
import type { Benchmark, ReportFile, RuleScore, Verdict } from '../benchmark.ts';
import { jsonl } from '../csv.ts';
import {
  audioVisualDeltas,
  cellExceptions,
  cellRows,
  interfaceDifferences,
  type LaneItems,
  ladderRows,
  medians,
  modelMeanLadders,
  modelRows,
  paperTable,
} from './across-models.ts';
import { aggregateLane, type LaneReport, releaseSummary } from './aggregate.ts';
import { laneIntervals } from './bootstrap.ts';
import { exportLane } from './export-release.ts';
import { importReviews } from './import-reviews.ts';
import { buildJudgeRequest, promptVersion, type ReviewItem } from './judge-prompt.ts';
import { type JudgeVerdict, parseJudgeReply } from './judge-reply.ts';
import { parseMediaDigests } from './media-digests.ts';
import { groupViews, laneTasks, planViews, toFrozenRequest } from './plan.ts';
import { type Release, readRelease, selectTasks } from './read.ts';
import {
  type AnswerRow,
  type Interface,
  interfaces,
  mediaDigestsFile,
  type TaskRow,
} from './release-format.ts';
import { cellsCsv, groupsCsv, laddersCsv, modelsCsv } from './report-tables.ts';
import { reviewIdentity, reviewKey } from './review-identity.ts';
import { byRequestId, type RequestOutcome, type ScoredRecord, toScoredRecord } from './scored-record.ts';

const tasksFile = 'data/tasks/tasks.jsonl';
const inputsFile = 'data/tasks/inputs.jsonl';
const answersFile = 'data/tasks/answers.jsonl';

export type Inputs = Pick<Release, 'tasks' | 'inputs'>;
type Answers = NonNullable<Release['answers']>;

export const tasksOf = (inputs: Inputs, taskIds: readonly string[]): TaskRow[] => {
  const byId = new Map(inputs.tasks.map((task) => [task.task_id, task]));
  return taskIds.map((taskId) => byId.get(taskId)!);
};

const outcomeOf = (record: RequestRecord | FailureRecord | null): RequestOutcome | null => {
  if (record === null) return null;
  if ('rawText' in record) return { status: 'ok', rawText: record.rawText };
  return { status: record.status, error: record.kind };
};

const keyOf = (row: ScoredRecord): string =>
  reviewKey(
    reviewIdentity({
      scoringQuestion: row.scoring_question,
      gold: row.gold,
      aliases: row.aliases,
      choices: row.choices,
      interface: row.interface,
      raw: row.raw_text ?? '',
    }),
  );

/** An answer as the judge sees it, with the key that its review is stored by. */
type KeyedItem = ReviewItem & { key: string };

const reviewed = (score: RuleScore, given: Verdict | null): ScoredRecord => {
  const row = score.row as ScoredRecord;
  if (given === null || row.score_status !== 'review_pending') return row;
  const verdict = given as unknown as JudgeVerdict;
  return toScoredRecord(
    row as unknown as AnswerRow,
    { status: 'ok', rawText: row.raw_text! },
    { verdict: verdict.verdict, format_compliant: verdict.formatCompliant, reason: verdict.reason },
  );
};

const itemId = (index: number): string => `item-${String(index).padStart(6, '0')}`;

const concat = (parts: Iterable<string>): string => [...parts].join('');

interface Lane extends LaneItems {
  /** Of `summary.json`. */
  summary: unknown;
}

const oneDecimal = (value: number): string => value.toFixed(1);
const signed = (value: number): string => `${value > 0 ? '+' : ''}${value.toFixed(1)}`;

const laneFiles = (lane: string, report: LaneReport): ReportFile[] => {
  const file = (name: string, content: Iterable<string>): ReportFile => ({
    path: `${lane}/${name}`,
    content: concat(content),
  });
  return [
    file('groups.csv', groupsCsv(report.groups)),
    file('paired_items.jsonl', jsonl(report.pairedItems)),
    file('excluded_items.jsonl', jsonl(report.excludedItems)),
    file('operation_pairs.jsonl', jsonl(report.operationPairs)),
    file('excluded_pairs.jsonl', jsonl(report.excludedPairs)),
  ];
};

/** ReTurn (return-protocol): does a model use the right part of a conversation? */
export const returnBenchmark: Benchmark<Inputs, Answers> = {
  kind: 'return',
  interfaces,
  options: z.strictObject({}),
  prompts: { request: () => [], judge: [] },
  exportFormat: 'return-release',
  inputFiles: [tasksFile, inputsFile],
  answerFiles: [answersFile],
  mediaManifest: mediaDigestsFile,
  mediaDigests: parseMediaDigests,

  async read(openInputs, openAnswers, _setting, withRequests = true) {
    const { tasks, inputs, answers, problems } = await readRelease({
      tasks: { file: tasksFile, lines: openInputs(tasksFile) },
      inputs: withRequests ? { file: inputsFile, lines: openInputs(inputsFile) } : null,
      answers: openAnswers === null ? null : { file: answersFile, lines: openAnswers(answersFile) },
    });
    // Apart: whoever keeps the inputs must not keep the answers with them.
    return { inputs: { tasks, inputs }, answers, problems };
  },

  select(inputs, _answers, { manifest, limit }) {
    const { tasks, problems } = selectTasks(inputs.tasks, {
      manifest: manifest ?? undefined,
      limit: limit ?? undefined,
    });
    return { taskIds: tasks.map((task) => task.task_id), problems };
  },

  planLane(inputs, wanted) {
    const tasks = laneTasks(tasksOf(inputs, wanted.taskIds), wanted.modalities);
    const views = planViews(tasks, wanted.interfaces as readonly Interface[]);
    return {
      taskIds: tasks.map((task) => task.task_id),
      views,
      groups: groupViews(views).map((group) => ({
        groupId: group.groupId,
        viewIds: group.views.map((view) => view.viewId),
      })),
    };
  },

  frozenRequest(inputs, requestId) {
    return toFrozenRequest(inputs.inputs.get(requestId)!);
  },

  score(inputs, answers, { taskIds, interfaces: wantedInterfaces }, record) {
    const requestIds = new Set<string>();
    for (const task of tasksOf(inputs, taskIds)) {
      for (const name of wantedInterfaces) {
        const view = task.views[name as Interface];
        requestIds.add(view.control_request_id).add(view.history_request_id);
      }
    }
    const rows = [...requestIds].map((id) => toScoredRecord(answers.get(id)!, outcomeOf(record(id)), null));
    return rows.sort(byRequestId).map((row) => ({
      requestId: row.request_id,
      reviewKey: row.score_status === 'review_pending' ? keyOf(row) : null,
      row,
    }));
  },

  reviewItem(score) {
    const row = score.row as ScoredRecord;
    return {
      key: score.reviewKey!,
      question: row.scoring_question,
      gold: row.gold,
      aliases: row.aliases,
      options: row.interface === 'mcq' ? row.choices : [],
      candidate: row.raw_text ?? '',
      answerType: row.interface as Interface,
    } satisfies KeyedItem;
  },

  async importReviews(file, lines) {
    const { verdicts, problems } = await importReviews([{ file, lines }]);
    const reviews = new Map<string, Verdict>();
    for (const [identity, { verdict, formatCompliant, reason }] of verdicts) {
      reviews.set(reviewKey(identity), { verdict, formatCompliant, reason });
    }
    return { reviews, problems };
  },

  judge: () => ({
    promptVersion,
    itemsPerRequestAtMost: null,
    buildRequest: (items) => buildJudgeRequest(items as unknown as KeyedItem[]),
    parseReply(text, items) {
      const parsed = parseJudgeReply(
        text,
        items.map((_, index) => itemId(index)),
      );
      if (!parsed.ok) return parsed;
      return {
        ok: true,
        verdicts: new Map(items.map((item, index) => [item.key, { ...parsed.verdicts.get(itemId(index))! }])),
      };
    },
  }),

  async aggregate(inputs, { interfaces: wantedInterfaces, seed, lanes: laneScores, verdict, onLane }) {
    const rootOf = new Map(inputs.tasks.map((task) => [task.task_id, task.source_root_id]));
    const lanes: Lane[] = [];
    for await (const scores of laneScores) {
      const rows = scores.scores.map((score) =>
        reviewed(score, score.reviewKey === null ? null : verdict(score.reviewKey)),
      );
      const byId = new Map(rows.map((row) => [row.request_id, row]));
      const report = aggregateLane(tasksOf(inputs, scores.taskIds), wantedInterfaces, (id) => byId.get(id));
      const { id, displayName, family, model } = scores.title;
      await onLane({
        lane: id,
        valid: report.pairedItems.length,
        ...splitExcluded(report),
        deltas: report.groups
          .filter((row) => row.group === 'interface')
          .map((row) => ({ interface: row.interface, deltaPp: row.delta_conv_pp })),
        scoredRows: rows,
        files: laneFiles(id, report),
      });
      lanes.push({
        lane: id,
        displayName,
        family,
        items: report.pairedItems,
        excluded: report.excludedItems,
        summary: {
          title: scores.title,
          ...releaseSummary(model, report),
          intervals: laneIntervals(report.pairedItems, (taskId) => rootOf.get(taskId)!, { seed }),
        },
      });
    }
    const models = modelRows(lanes);
    const cells = cellRows(lanes);
    const ladders = ladderRows(lanes);
    const table = paperTable(lanes);
    const columns = ['Overall', 'Reconfirm', 'Reground', 'Retrieve', 'Rebind'];
    return {
      files: [
        { path: 'models.csv', content: concat(modelsCsv(models)) },
        { path: 'cells.csv', content: concat(cellsCsv(cells)) },
        { path: 'ladders.csv', content: concat(laddersCsv(ladders)) },
        { path: 'medians.json', content: `${JSON.stringify(medians(lanes), null, 2)}\n` },
      ],
      summary: {
        lanes: Object.fromEntries(lanes.map(({ lane, summary }) => [lane, summary])),
        models,
        cells,
        cellExceptions: cellExceptions(lanes),
        ladders,
        modelMeanLadders: modelMeanLadders(ladders),
        audioVisualDeltas: audioVisualDeltas(lanes),
        interfaceDifferences: interfaceDifferences(lanes),
        medians: medians(lanes),
      },
      table: {
        header: ['Model', 'Interface', 'Horizon', ...columns],
        rows: table.map((row) => [
          row.model,
          row.interface,
          row.horizon,
          ...columns.map((column) => {
            const cell = row.cells[column];
            return cell === undefined ? '–' : `${oneDecimal(cell.multi_pct)} (${signed(cell.change_pp)})`;
          }),
        ]),
      },
      tables: [
        {
          title: 'Ladders on complete pairs: single turn → reference → conflict',
          header: ['Model', 'Side', 'Interface', 'Pairs', 'Single', 'Reference', 'Conflict'],
          rows: ladders.map((row) => [
            row.model,
            row.role,
            row.interface,
            String(row.n),
            oneDecimal(row.single),
            oneDecimal(row.reference),
            oneDecimal(row.conflict),
          ]),
        },
      ],
    };
  },

  exportLane,
};

/** Views that are not valid, by what they lack: a failure counts before a missing reply, that before a review. */
const splitExcluded = (report: LaneReport): { excluded: number; pending: number; open: number } => {
  const counts = { excluded: 0, pending: 0, open: 0 };
  for (const { control_reason, history_reason } of report.excludedItems) {
    const reasons = [control_reason, history_reason].filter((reason) => reason !== null);
    if (reasons.every((reason) => reason === 'review_pending')) counts.pending += 1;
    else if (reasons.every((reason) => reason === 'review_pending' || reason === 'missing')) counts.open += 1;
    else counts.excluded += 1;
  }
  return counts;
};
