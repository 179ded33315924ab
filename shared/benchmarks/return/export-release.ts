import type { FailureRecord, RequestRecord } from '../../contracts/records.ts';
import type { Benchmark, ReportFile } from '../benchmark.ts';
import { jsonl } from '../csv.ts';
import { aggregateLane, releaseSummary } from './aggregate.ts';
import type { Inputs } from './benchmark.ts';
import { exportOrder, planViews } from './plan.ts';
import type { Interface, TaskRow } from './release-format.ts';
import { groupsCsv } from './report-tables.ts';
import { type ScoredRecord, scoringSummary } from './scored-record.ts';

const lastAttempt = (record: RequestRecord | FailureRecord) => record.attempts.at(-1);

const elapsedSeconds = (record: RequestRecord | FailureRecord): number =>
  record.attempts.reduce((sum, attempt) => sum + attempt.elapsedSeconds, 0);

/** A row of the release's predictions.jsonl, members in its order. */
const predictionRow = (
  requestId: string,
  record: RequestRecord | FailureRecord,
  model: string,
  isFinal: boolean,
  replyOf: (requestId: string) => string | null,
): Record<string, unknown> => {
  const replied = 'rawText' in record ? record : null;
  const failed = 'kind' in record ? record : null;
  const usage = lastAttempt(record)?.usage;
  return {
    raw_text: replied?.rawText ?? null,
    status: failed?.status ?? 'ok',
    error: failed?.kind ?? null,
    finish_reason: replied?.finishReason ?? null,
    usage:
      usage === undefined
        ? null
        : {
            prompt_tokens: usage.inputTokens,
            completion_tokens: usage.outputTokens,
            prompt_tokens_details: {
              cached_tokens: usage.cachedInputTokens,
              audio_tokens: usage.audioInputTokens,
              video_tokens: usage.videoInputTokens,
              text_tokens: usage.textInputTokens,
            },
          },
    response_id: lastAttempt(record)?.responseId ?? null,
    decode_max_tokens: replied?.decodeMaxTokens ?? lastAttempt(record)?.maxTokens ?? null,
    attempts: record.attempts.map((attempt) => ({
      time_utc: attempt.timeUtc,
      attempt: attempt.attempt,
      max_tokens: attempt.maxTokens,
      http_status: attempt.httpStatus,
      request_id: attempt.responseId,
      error: attempt.kind,
      elapsed_s: attempt.elapsedSeconds,
    })),
    user_turns: replied?.userTurns ?? null,
    native_history: (replied?.history ?? []).map((dependency) => ({
      request_id: dependency,
      raw_text: replyOf(dependency),
    })),
    elapsed_s: Math.round(elapsedSeconds(record) * 1000) / 1000,
    request_id: requestId,
    backend: replied?.provider ?? null,
    model,
    time_utc: lastAttempt(record)?.timeUtc ?? null,
    is_final: isFinal,
    record_type: 'turnsweep',
    contract_media_counts: replied?.offered ?? null,
    consumed_media_counts: replied?.consumed ?? null,
  };
};

const document = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** One lane in the formats of the release: predictions, scoring and report, with its names and orders. */
export const exportLane: Benchmark<Inputs, unknown>['exportLane'] = (
  inputs,
  _answers,
  wanted,
): ReportFile[] => {
  const { title, record } = wanted;
  const byId = new Map(inputs.tasks.map((task) => [task.task_id, task]));
  const tasks: TaskRow[] = wanted.taskIds.map((taskId) => byId.get(taskId)!);
  const rows = wanted.scoredRows as readonly ScoredRecord[];
  const scores = new Map(rows.map((row) => [row.request_id, row]));
  const report = aggregateLane(tasks, wanted.interfaces, (id) => scores.get(id));
  const requestIds = planViews(tasks, wanted.interfaces as readonly Interface[]).flatMap(
    (view) => view.requestIds,
  );
  const replyOf = (requestId: string): string | null => {
    const found = record(requestId);
    return found !== null && 'rawText' in found ? found.rawText : null;
  };
  const predictions = exportOrder(new Set(requestIds), inputs.inputs).flatMap((requestId) => {
    const found = record(requestId);
    return found === null
      ? []
      : [predictionRow(requestId, found, title.model, scores.has(requestId), replyOf)];
  });
  const file = (path: string, content: string): ReportFile => ({ path: `${title.id}/${path}`, content });
  return [
    file('predictions.jsonl', [...jsonl(predictions)].join('')),
    file('scoring/scored_records.jsonl', [...jsonl(rows)].join('')),
    file('scoring/summary.json', document(scoringSummary(rows))),
    file('report/summary.json', document(releaseSummary(title.model, report))),
    file('report/groups.csv', [...groupsCsv(report.groups)].join('')),
    file('report/paired_items.jsonl', [...jsonl(report.pairedItems)].join('')),
    file('report/excluded_items.jsonl', [...jsonl(report.excludedItems)].join('')),
    file('report/operation_pairs.jsonl', [...jsonl(report.operationPairs)].join('')),
    file('report/excluded_pairs.jsonl', [...jsonl(report.excludedPairs)].join('')),
  ];
};
