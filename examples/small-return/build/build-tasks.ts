import { writeFileSync } from 'node:fs';
import type {
  AnswerRow,
  InputRow,
  Interface,
  TaskRow,
} from '../../../shared/benchmarks/return/release-format.ts';
import type { Answer, Aside, Clip, EvidenceRoot, TaskRoot } from './items.ts';
import { evidenceRoots, taskRoots } from './items.ts';

type Root = TaskRoot | EvidenceRoot;
type Operation = TaskRow['operation'];
type Horizon = TaskRow['history_horizon'];
type Message = InputRow['messages'][number];

/** What a request asks for, in terms of the items; the simulated models answer from it. */
export type Situation =
  | { kind: 'aside'; aside: Aside }
  /** The task's question about the only clip, single-turn or as the first turn. */
  | { kind: 'asked'; root: Root; interface: Interface; answer: Answer }
  | { kind: 'final'; root: Root; interface: Interface; operation: Operation; horizon: Horizon };

export interface ExampleRelease {
  tasks: TaskRow[];
  inputs: InputRow[];
  answers: AnswerRow[];
  situations: Map<string, Situation>;
}

const interfaces: Interface[] = ['openqa', 'mcq'];
const letters = ['A', 'B', 'C', 'D'] as const;
const ordinals = ['first', 'second', 'third', 'fourth'] as const;
const closing = { openqa: 'Keep the answer short.', mcq: 'Reply with the option letter only.' };
const again = {
  openqa: `Here is another clip. Answer my first question for this one. ${closing.openqa}`,
  mcq: `Here is another clip. Answer my first question for this one, with the options given there. ${closing.mcq}`,
};
const splits = { split: 'EXAMPLE', adapt_split: 'EXAMPLE', old_split: null };

export const letterOf = (root: Root, answer: Answer): string => {
  const letter = letters[root.options.indexOf(answer.text)];
  if (letter === undefined) throw new Error(`${root.id}: "${answer.text}" is not one of the options`);
  return letter;
};

const user = (clip: Clip, text: string): Message => ({
  role: 'user',
  content: [
    { type: 'audio', audio: `data/media/${clip}.wav` },
    { type: 'video', video: `data/media/${clip}.mp4` },
    { type: 'text', text },
  ],
});

const replyOf = (requestId: string): Message => ({
  role: 'assistant',
  content_binding: { kind: 'REQUEST_RAW', request_id: requestId },
});

/** Release rows of the items (return-protocol §2): inputs and answers by request id, tasks in order of the items. */
export const buildRelease = (): ExampleRelease => {
  const tasks: TaskRow[] = [];
  const inputs: InputRow[] = [];
  const answers: AnswerRow[] = [];
  const situations = new Map<string, Situation>();

  const request = (row: Omit<InputRow, 'required_modality'>, root: Root, situation: Situation) => {
    inputs.push({
      request_id: row.request_id,
      interface: row.interface,
      condition: row.condition,
      operation: row.operation,
      horizon: row.horizon,
      required_modality: root.modality,
      messages: row.messages,
    });
    situations.set(row.request_id, situation);
  };

  const answer = (
    requestId: string,
    root: Root,
    name: Interface,
    condition: 'C' | 'H0',
    scoringQuestion: string,
  ) => {
    const gold = name === 'mcq' ? letterOf(root, root.gold) : root.gold.text;
    answers.push({
      request_id: requestId,
      interface: name,
      condition,
      gold,
      aliases: name === 'mcq' ? [gold] : [gold, ...(root.gold.aliases ?? [])],
      choices: name === 'mcq' ? [...root.options] : [],
      scoring_question: scoringQuestion,
    });
  };

  /** Turns that the model has answered itself; `ids` are their requests. */
  const historyOf = (turns: { id: string; message: Message }[]): Message[] =>
    turns.flatMap(({ id, message }) => [message, replyOf(id)]);

  const task = (
    root: Root,
    pairId: string,
    operation: Operation,
    horizon: Horizon,
    views: Record<Interface, { historyRequestId: string; nativeIds: string[] }>,
  ) => {
    const view = (name: Interface) => ({
      view_id: `${pairId}::${operation}::${name}`,
      control_request_id: `${root.id}::C::${name}`,
      history_request_id: views[name].historyRequestId,
      native_dependency_request_ids: views[name].nativeIds,
    });
    tasks.push({
      task_id: `example-${String(tasks.length + 1).padStart(3, '0')}`,
      pair_id: pairId,
      source_root_id: root.id,
      operation,
      history_horizon: horizon,
      required_modality: root.modality,
      family: root.family,
      views: { openqa: view('openqa'), mcq: view('mcq') },
      history_side: root.side,
      ...splits,
    });
  };

  for (const root of taskRoots) {
    const listed = root.options.map((option, index) => `${letters[index]}. ${option}`).join('\n');
    const scoring = { openqa: root.question, mcq: `${root.question}\n${listed}` };
    const asking = {
      openqa: `${root.question}\n${closing.openqa}`,
      mcq: `${root.question}\nOptions:\n${listed}\n${closing.mcq}`,
    };
    for (const name of interfaces) {
      const id = `${root.id}::C::${name}`;
      const messages = [user(root.target, asking[name])];
      request(
        {
          request_id: id,
          interface: name,
          condition: 'C',
          operation: 'paired_control',
          horizon: root.horizon,
          messages,
        },
        root,
        { kind: 'asked', root, interface: name, answer: root.gold },
      );
      answer(id, root, name, 'C', scoring[name]);
    }
    for (const [operation, role] of [
      ['preserve', 'reference'],
      ['revise', 'conflict'],
    ] as const) {
      const views = {} as Record<Interface, { historyRequestId: string; nativeIds: string[] }>;
      for (const name of interfaces) {
        const prefix = `${root.id}::${operation}::${name}`;
        const shape = { interface: name, operation, horizon: root.horizon };
        const firstAnswer = role === 'reference' ? root.gold : root.other;
        const turns = [{ id: `${prefix}::OLD`, message: user(root.first[role], asking[name]) }];
        request(
          { request_id: `${prefix}::OLD`, condition: 'AUX', ...shape, messages: [turns[0]!.message] },
          root,
          {
            kind: 'asked',
            root,
            interface: name,
            answer: firstAnswer,
          },
        );
        for (const between of root.between) {
          const id = `${prefix}::MID${turns.length + 1}`;
          const message = user(between.clip, `${between.question}\n${closing.openqa}`);
          request(
            { request_id: id, condition: 'AUX', ...shape, messages: [...historyOf(turns), message] },
            root,
            {
              kind: 'aside',
              aside: between,
            },
          );
          turns.push({ id, message });
        }
        const id = `${prefix}::H0`;
        const messages = [...historyOf(turns), user(root.target, again[name])];
        request({ request_id: id, condition: 'H0', ...shape, messages }, root, {
          kind: 'final',
          root,
          interface: name,
          operation,
          horizon: root.horizon,
        });
        answer(id, root, name, 'H0', scoring[name]);
        views[name] = { historyRequestId: id, nativeIds: turns.map((turn) => turn.id) };
      }
      task(root, root.id, operation, root.horizon, views);
    }
  }

  for (const root of evidenceRoots) {
    const listed = root.options.map((option, index) => `${letters[index]}. ${option}`).join('\n');
    const asking = {
      openqa: `${root.question}\n${closing.openqa}`,
      mcq: `${root.question}\n${listed}\n${closing.mcq}`,
    };
    for (const name of interfaces) {
      const id = `${root.id}::C::${name}`;
      const messages = [user(root.target.clip, asking[name])];
      request(
        {
          request_id: id,
          interface: name,
          condition: 'C',
          operation: 'paired_control',
          horizon: 'shared',
          messages,
        },
        root,
        { kind: 'asked', root, interface: name, answer: root.gold },
      );
      answer(id, root, name, 'C', asking[name]);
    }
    for (const horizon of ['short', 'long'] as const) {
      const pairId = `${root.id}::${horizon}`;
      const seen = horizon === 'short' ? (['target'] as const) : root.long;
      const turns: { id: string; message: Message }[] = [];
      for (const turn of seen) {
        const shown = turn === 'target' ? root.target : turn;
        const id = `${pairId}::NATIVE${turns.length}`;
        const message = user(shown.clip, `${shown.question}\n${closing.openqa}`);
        const messages = [...historyOf(turns), message];
        request(
          { request_id: id, interface: 'openqa', condition: 'AUX', operation: 'history', horizon, messages },
          root,
          { kind: 'aside', aside: shown },
        );
        turns.push({ id, message });
      }
      const position = ordinals[[...seen].indexOf('target')]!;
      for (const [operation, role] of [
        ['retrieve', 'reference'],
        ['rebind', 'conflict'],
      ] as const) {
        const views = {} as Record<Interface, { historyRequestId: string; nativeIds: string[] }>;
        for (const name of interfaces) {
          const id = `${pairId}::${operation}::${name}`;
          const text = `Now a question about the ${position} clip of this conversation.\n${asking[name]}`;
          const messages = [...historyOf(turns), user(root.last[role], text)];
          request({ request_id: id, interface: name, condition: 'H0', operation, horizon, messages }, root, {
            kind: 'final',
            root,
            interface: name,
            operation,
            horizon,
          });
          answer(id, root, name, 'H0', text);
          views[name] = { historyRequestId: id, nativeIds: turns.map((turn) => turn.id) };
        }
        task(root, pairId, operation, horizon, views);
      }
    }
  }

  const byRequestId = (a: { request_id: string }, b: { request_id: string }) =>
    a.request_id < b.request_id ? -1 : 1;
  return { tasks, inputs: inputs.toSorted(byRequestId), answers: answers.toSorted(byRequestId), situations };
};

const jsonl = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** The task files as texts, by path inside the release. */
export const releaseFiles = (): Record<string, string> => {
  const { tasks, inputs, answers } = buildRelease();
  const manifest = { task_ids: tasks.map((row) => row.task_id) };
  return {
    'data/tasks/tasks.jsonl': jsonl(tasks),
    'data/tasks/inputs.jsonl': jsonl(inputs),
    'data/tasks/answers.jsonl': jsonl(answers),
    'data/example_manifest.json': `${JSON.stringify(manifest, null, 2)}\n`,
  };
};

if (import.meta.main) {
  for (const [path, text] of Object.entries(releaseFiles())) {
    writeFileSync(new URL(`../release/${path}`, import.meta.url), text);
  }
}
