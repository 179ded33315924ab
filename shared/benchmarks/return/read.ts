import type { Problem } from '../../errors.ts';
import type { Lines } from '../benchmark.ts';
import {
  createProblemLog,
  type ProblemLog,
  quoted,
  type ReadLimits,
  readDocument,
  readRows,
  type TextFile,
} from '../read-rows.ts';
import { boundRequestIds, dependenciesFirst } from './bindings.ts';
import { laneTasks } from './plan.ts';
import {
  type AnswerRow,
  answerRowSchema,
  type InputRow,
  inputRowSchema,
  interfaces,
  mediaTurns,
  operationRoles,
  type RequiredModality,
  selectionManifestSchema,
  type TaskRow,
  taskRowSchema,
} from './release-format.ts';

export type { Lines, ReadLimits, TextFile };

export interface ReleaseTexts {
  tasks: TextFile;
  /** Null for a reader that asks nothing: requests are then neither read nor checked. */
  inputs: TextFile | null;
  /** Null for a reader that must not see gold: answers are then neither read nor checked. */
  answers: TextFile | null;
}

export interface Release {
  /** In file order. */
  tasks: TaskRow[];
  /** By `request_id`, in file order; empty where no inputs were given. */
  inputs: Map<string, InputRow>;
  /** By `request_id`, in file order; null where no answers were given. */
  answers: Map<string, AnswerRow> | null;
  /** Empty for a sound release. Rows with faults of form are missing above. */
  problems: Problem[];
}

/** Rows that passed their own checks, with their lines, and ids of rows that did not. */
interface Table<T> {
  file: string;
  rows: Map<string, { row: T; line: number }>;
  refusedIds: Set<string>;
}

const ownString = (value: unknown, key: string): string | null => {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return null;
  const inner = (value as Record<string, unknown>)[key];
  return typeof inner === 'string' ? inner : null;
};

async function readTable<T>(
  source: TextFile,
  schema: Parameters<typeof readRows<T>>[1],
  idOf: (row: T) => string,
  idKey: 'task_id' | 'request_id',
  log: ProblemLog,
  limits: ReadLimits,
  onRefused: (value: unknown) => void = () => {},
): Promise<Table<T>> {
  const table: Table<T> = { file: source.file, rows: new Map(), refusedIds: new Set() };
  const onRow = (row: T, line: number) => {
    const id = idOf(row);
    const first = table.rows.get(id);
    if (first === undefined) table.rows.set(id, { row, line });
    else log.add(source.file, line, `${idKey} ${quoted(id)} is already on line ${first.line}`);
  };
  await readRows(source, schema, log, onRow, {
    maxLineLength: limits.maxLineLength,
    onRefused: (value) => {
      const id = ownString(value, idKey);
      if (id !== null) table.refusedIds.add(id);
      onRefused(value);
    },
  });
  return table;
}

const mediaBearingTurns = (row: InputRow): number =>
  row.messages.filter(
    (message) => message.role === 'user' && message.content.some((part) => part.type !== 'text'),
  ).length;

function checkMessages(row: InputRow, fault: (message: string) => void): void {
  const outOfTurn = row.messages.findIndex(
    (message, index) => message.role !== (index % 2 === 0 ? 'user' : 'assistant'),
  );
  if (outOfTurn !== -1) {
    fault(`messages[${outOfTurn}]: user and assistant must alternate, the user first`);
  } else if (row.messages.at(-1)?.role === 'assistant') fault('messages must end with a user message');
  if (row.condition === 'C' && row.messages.length !== 1) {
    fault(`a C request is one user message, not ${row.messages.length} messages`);
  }
  if (row.condition === 'H0') {
    if (row.horizon === 'shared') fault('horizon "shared": an H0 request is short or long');
    else {
      const turns = mediaBearingTurns(row);
      const wanted = mediaTurns[row.horizon];
      if (turns !== wanted) fault(`${turns} user turns with media; horizon ${row.horizon} has ${wanted}`);
    }
  }
}

function checkInputs(
  inputs: Table<InputRow>,
  rows: ReadonlyMap<string, InputRow>,
  log: ProblemLog,
): Set<string> {
  for (const { row, line } of inputs.rows.values()) {
    const fault = (message: string) =>
      log.add(inputs.file, line, `request ${quoted(row.request_id)}: ${message}`);
    checkMessages(row, fault);
    for (const bound of new Set(boundRequestIds(row))) {
      if (!rows.has(bound) && !inputs.refusedIds.has(bound))
        fault(`bound to unknown request ${quoted(bound)}`);
    }
  }
  const inCycles = new Set<string>();
  dependenciesFirst(rows.keys(), rows, (cycle) => {
    for (const requestId of cycle) inCycles.add(requestId);
    const first = cycle[0]!;
    const shown = [...cycle.slice(0, 5), ...(cycle.length > 5 ? ['…'] : []), first].join(' → ');
    log.add(inputs.file, inputs.rows.get(first)!.line, `bindings form a cycle: ${quoted(shown)}`);
  });
  return inCycles;
}

function checkTasks(
  tasks: Table<TaskRow>,
  inputs: Table<InputRow> | null,
  rows: ReadonlyMap<string, InputRow>,
  inCycles: ReadonlySet<string>,
  log: ProblemLog,
): void {
  const viewOwners = new Map<string, string>();
  for (const { row: task, line } of tasks.rows.values()) {
    const fault = (message: string) => log.add(tasks.file, line, message);
    const side = operationRoles[task.operation].side;
    if (task.history_side !== side) {
      fault(`history_side ${quoted(task.history_side)}: operation ${task.operation} belongs to "${side}"`);
    }
    for (const name of interfaces) {
      const view = task.views[name];
      const owner = viewOwners.get(view.view_id);
      if (owner === undefined) viewOwners.set(view.view_id, task.task_id);
      else fault(`view_id ${quoted(view.view_id)} is already used by task ${quoted(owner)}`);
      if (inputs === null) continue;

      const find = (requestId: string, role: string): InputRow | undefined => {
        const row = rows.get(requestId);
        if (row === undefined && !inputs.refusedIds.has(requestId)) {
          fault(`views.${name}: ${role} request ${quoted(requestId)} is not in ${inputs.file}`);
        }
        return row;
      };
      const expect = (row: InputRow, condition: InputRow['condition'], wantedHorizons: string[]) => {
        const differs = (what: string, found: string, wanted: string) =>
          fault(
            `views.${name}: request ${quoted(row.request_id)} has ${what} ${quoted(found)}, not ${wanted}`,
          );
        if (row.condition !== condition) differs('condition', row.condition, condition);
        if (row.interface !== name) differs('interface', row.interface, name);
        if (row.required_modality !== task.required_modality) {
          differs('required_modality', row.required_modality, task.required_modality);
        }
        if (!wantedHorizons.includes(row.horizon)) {
          differs('horizon', row.horizon, wantedHorizons.join(' or '));
        }
        if (condition === 'H0' && row.operation !== task.operation) {
          differs('operation', row.operation, task.operation);
        }
      };
      const control = find(view.control_request_id, 'control');
      if (control !== undefined) expect(control, 'C', [task.history_horizon, 'shared']);
      const history = find(view.history_request_id, 'history');
      if (history !== undefined) expect(history, 'H0', [task.history_horizon]);
      for (const dependency of view.native_dependency_request_ids) find(dependency, 'native dependency');

      if (history === undefined) continue;
      const reached = dependenciesFirst([history.request_id], rows);
      if (reached.some((id) => inCycles.has(id) || !rows.has(id))) continue;
      const bound = reached.slice(0, -1);
      const listed = view.native_dependency_request_ids;
      if (bound.length !== listed.length || bound.some((id, index) => id !== listed[index])) {
        fault(
          `views.${name}: native_dependency_request_ids ${quoted(listed)} are not what the history request is bound to, ${quoted(bound)}`,
        );
      }
    }
  }
}

function checkPairs(tasks: Table<TaskRow>, refusedPairs: ReadonlySet<string>, log: ProblemLog): void {
  const pairs = new Map<string, { row: TaskRow; line: number }[]>();
  for (const entry of tasks.rows.values()) {
    const members = pairs.get(entry.row.pair_id);
    if (members === undefined) pairs.set(entry.row.pair_id, [entry]);
    else members.push(entry);
  }
  for (const [pairId, members] of pairs) {
    const [first, second] = members;
    const fault = (message: string) =>
      log.add(tasks.file, members.at(-1)!.line, `pair ${quoted(pairId)}: ${message}`);
    if (first === undefined || second === undefined || members.length > 2) {
      if (members.length > 2 || !refusedPairs.has(pairId)) {
        fault(`${members.length} tasks; a pair is one reference and one conflict task`);
      }
      continue;
    }
    const [a, b] = [operationRoles[first.row.operation], operationRoles[second.row.operation]];
    if (a.side !== b.side || a.role === b.role) {
      fault(
        `operations ${first.row.operation} and ${second.row.operation}; a pair is preserve and revise, or retrieve and rebind`,
      );
    }
    for (const key of ['history_horizon', 'required_modality', 'source_root_id'] as const) {
      const [one, other] = [first.row[key], second.row[key]];
      if (one !== other) fault(`${key} differs: ${quoted(one)} and ${quoted(other)}`);
    }
    for (const name of interfaces) {
      const one = first.row.views[name].control_request_id;
      const other = second.row.views[name].control_request_id;
      if (one !== other) fault(`control requests of ${name} differ: ${quoted(one)} and ${quoted(other)}`);
    }
  }
}

/** For a reader without the requests: each one that is scored has its answer. */
function checkAnswersOfTasks(answers: Table<AnswerRow>, tasks: Table<TaskRow>, log: ProblemLog): void {
  for (const { row, line } of tasks.rows.values()) {
    for (const name of interfaces) {
      const view = row.views[name];
      for (const id of [view.control_request_id, view.history_request_id]) {
        if (answers.rows.has(id) || answers.refusedIds.has(id)) continue;
        log.add(tasks.file, line, `request ${quoted(id)} has no answer in ${answers.file}`);
      }
    }
  }
}

function checkAnswers(answers: Table<AnswerRow>, inputs: Table<InputRow>, log: ProblemLog): void {
  for (const { row, line } of answers.rows.values()) {
    const fault = (message: string) =>
      log.add(answers.file, line, `answer to ${quoted(row.request_id)}: ${message}`);
    const request = inputs.rows.get(row.request_id)?.row;
    if (request === undefined) {
      if (!inputs.refusedIds.has(row.request_id)) fault(`no such request in ${inputs.file}`);
      continue;
    }
    if (request.condition === 'AUX') fault('an AUX request has no answer');
    else if (request.condition !== row.condition) {
      fault(`condition ${row.condition}, but the request has ${request.condition}`);
    }
    if (request.interface !== row.interface) {
      fault(`interface ${row.interface}, but the request has ${request.interface}`);
    }
  }
  for (const { row, line } of inputs.rows.values()) {
    const id = row.request_id;
    if (row.condition !== 'AUX' && !answers.rows.has(id) && !answers.refusedIds.has(id)) {
      log.add(inputs.file, line, `request ${quoted(id)} has no answer in ${answers.file}`);
    }
  }
}

const plainRows = <T>(table: Table<T>): Map<string, T> =>
  new Map(Array.from(table.rows, ([id, { row }]) => [id, row]));

/**
 * Reads a ReTurn release (return-protocol §2) and checks it as a whole: form of every row, references,
 * bindings, pairs, answers; what needs a file that was not given is left out. Bad data never throws; each fault is a problem with file and line.
 */
export async function readRelease(texts: ReleaseTexts, limits: ReadLimits = {}): Promise<Release> {
  const files = [texts.tasks, texts.inputs, texts.answers].flatMap((text) => text?.file ?? []);
  const log = createProblemLog(files, limits.maxProblems);
  const refusedPairs = new Set<string>();
  const tasks = await readTable<TaskRow>(
    texts.tasks,
    taskRowSchema,
    (row) => row.task_id,
    'task_id',
    log,
    limits,
    (value) => refusedPairs.add(ownString(value, 'pair_id') ?? ''),
  );
  const inputs =
    texts.inputs &&
    (await readTable<InputRow>(
      texts.inputs,
      inputRowSchema,
      (row) => row.request_id,
      'request_id',
      log,
      limits,
    ));
  const rows = inputs === null ? new Map<string, InputRow>() : plainRows(inputs);
  const inCycles = inputs === null ? new Set<string>() : checkInputs(inputs, rows, log);
  checkTasks(tasks, inputs, rows, inCycles, log);
  checkPairs(tasks, refusedPairs, log);
  let answers: Table<AnswerRow> | null = null;
  if (texts.answers !== null) {
    answers = await readTable<AnswerRow>(
      texts.answers,
      answerRowSchema,
      (row) => row.request_id,
      'request_id',
      log,
      limits,
    );
    if (inputs === null) checkAnswersOfTasks(answers, tasks, log);
    else checkAnswers(answers, inputs, log);
  }
  return {
    tasks: Array.from(tasks.rows.values(), ({ row }) => row),
    inputs: rows,
    answers: answers === null ? null : plainRows(answers),
    problems: log.list(),
  };
}

export interface TaskSelection {
  /** A selection manifest's text; tasks then come in its order. */
  manifest?: { file: string; text: string };
  /** At most so many tasks, counted after the other filters. */
  limit?: number;
  /** Only tasks whose evidence is in one of these channels. */
  modalities?: readonly RequiredModality[];
}

/**
 * Chooses tasks. Unknown, repeated, malformed and no ids in a manifest are problems (return-protocol §2);
 * the tasks are of use only where there are none.
 */
export function selectTasks(
  tasks: readonly TaskRow[],
  selection: TaskSelection,
): { tasks: TaskRow[]; problems: Problem[] } {
  const log = createProblemLog();
  let chosen = [...tasks];
  if (selection.manifest !== undefined) {
    const { file, text } = selection.manifest;
    const byId = new Map(tasks.map((task) => [task.task_id, task]));
    const seen = new Set<string>();
    chosen = [];
    for (const id of readDocument(file, text, selectionManifestSchema, log)?.task_ids ?? []) {
      const task = byId.get(id);
      if (seen.has(id)) log.add(file, null, `task ${quoted(id)} is named more than once`);
      else if (task === undefined) log.add(file, null, `task ${quoted(id)} is not in the release`);
      else chosen.push(task);
      seen.add(id);
    }
  }
  const { modalities, limit } = selection;
  if (modalities !== undefined) chosen = laneTasks(chosen, modalities);
  if (limit !== undefined) {
    if (!Number.isInteger(limit) || limit < 1)
      log.add('limit', null, `${limit} is not a whole number above 0`);
    chosen = chosen.slice(0, Math.max(0, limit));
  }
  return { tasks: chosen, problems: log.list() };
}
