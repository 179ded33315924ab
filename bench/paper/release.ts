import { hash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import type {
  AnswerRow,
  InputRow,
  Operation,
  TaskRow,
} from '../../shared/benchmarks/return/release-format.ts';
import { mediaTurns } from '../../shared/benchmarks/return/release-format.ts';
import { wavFile } from '../../test/support/wav.ts';
import type { Composition, Horizon, Modality, Root, Side } from './composition.ts';
import { rootsOf } from './composition.ts';
import { pick } from './draw.ts';
import { closingOf, makeQuestion, makeSideQuestion, type Question } from './grammar.ts';

export type Interface = 'openqa' | 'mcq';
export type PairRole = 'reference' | 'conflict';

/** What the simulated fleet has to know of a request to answer it. */
export interface RequestFacts {
  /** Over all requests of the composition, whatever share of them is written. */
  index: number;
  id: string;
  interface: Interface;
  condition: 'C' | 'H0' | 'AUX';
  modality: Modality;
  question: Question;
  /** The history competes with the right answer. */
  isConflict: boolean;
  /** What a server sees of it, see `turnKey`. */
  key: string;
}

/** A pair of tasks with the indexes of its requests. */
export interface Pair {
  root: Root;
  side: Side;
  horizon: Horizon;
  views: Record<Interface, Record<PairRole, { control: number; history: number; native: number[] }>>;
}

export interface Split {
  roots: Root[];
  pairs: Pair[];
  requests: RequestFacts[];
  /** Clips of the written roots, by number. */
  clips: Set<number>;
}

interface Rows {
  tasks: TaskRow[];
  inputs: InputRow[];
  answers: AnswerRow[];
}

type Message = InputRow['messages'][number];

/** A request as a server sees it, turn by turn: a hash of the turns before, the clip and the text. */
export const turnKey = (before: string, clip: number, text: string): string =>
  hash('sha1', `${before}\n${clip}\n${text}`).slice(0, 20);

const clipName = (clip: number): string => `data/media/clip-${String(clip).padStart(5, '0')}`;
const letters = 'ABCD';
const ordinals = ['first', 'second', 'third', 'fourth'] as const;

export const operationsOf: Record<Side, Record<PairRole, Operation>> = {
  task: { reference: 'preserve', conflict: 'revise' },
  evidence: { reference: 'retrieve', conflict: 'rebind' },
};

/**
 * The whole split: what each root asks, in which requests, shared as in the public preview. The control belongs to both
 * members of a pair (on the evidence side to both horizons, as its id and its horizon `shared` say), the native turns of the
 * evidence side to both operations and both interfaces, those of the task side to one view. `onRoot` is given the rows of
 * every included root as the release has them.
 */
export const buildSplit = (
  composition: Composition,
  seed: number,
  share: number,
  onRoot: (rows: Rows) => void = () => {},
): Split => {
  const roots = rootsOf(composition, seed, share);
  const requests: RequestFacts[] = [];
  const pairs: Pair[] = [];
  const clips = new Set<number>();
  // Every root has a target clip of its own; the other clips are shared, as in the preview.
  const shelf = Math.ceil(roots.length * 1.7) + 8;
  const opened = new Set<string>();

  for (const root of roots) {
    const { draw, modality, side } = root;
    const rows: Rows = { tasks: [], inputs: [], answers: [] };
    const question = makeQuestion(modality, draw);
    const target = root.index;
    const used = new Set([target]);
    /** Another clip of the shelf; one that opens a history must not have opened one with these words before. */
    const another = (openingTexts: readonly string[] = []): number => {
      for (;;) {
        const clip = roots.length + Math.floor(draw() * shelf);
        const taken = openingTexts.some((text) => opened.has(`${clip}\n${text}`));
        if (used.has(clip) || taken) continue;
        for (const text of openingTexts) opened.add(`${clip}\n${text}`);
        used.add(clip);
        return clip;
      }
    };
    const turn = (clip: number, text: string): Message => ({
      role: 'user',
      content: [
        { type: 'audio', audio: `${clipName(clip)}.wav` },
        { type: 'video', video: `${clipName(clip)}.mp4` },
        { type: 'text', text },
      ],
    });
    const listed = question.options.map((option, at) => `${letters[at]}. ${option}`).join('\n');
    const bare: Record<Interface, string> = {
      openqa: question.text,
      mcq: `${question.text}\n${listed}`,
    };
    const asked = (name: Interface): string => `${bare[name]}\n${closingOf(name)}`;

    interface History {
      key: string;
      messages: Message[];
      native: { index: number; id: string }[];
    }
    const empty: History = { key: '', messages: [], native: [] };
    const add = (
      row: Pick<RequestFacts, 'id' | 'interface' | 'condition' | 'isConflict'> & {
        operation: string;
        horizon: InputRow['horizon'];
        scoringQuestion: string;
      },
      history: History,
      clip: number,
      text: string,
    ) => {
      const messages = [...history.messages, turn(clip, text)];
      const key = turnKey(history.key, clip, text);
      const index = requests.length;
      requests.push({
        index,
        id: row.id,
        interface: row.interface,
        condition: row.condition,
        modality,
        question,
        isConflict: row.isConflict,
        key,
      });
      rows.inputs.push({
        request_id: row.id,
        interface: row.interface,
        condition: row.condition,
        operation: row.operation,
        horizon: row.horizon,
        required_modality: modality,
        messages,
      });
      if (row.condition !== 'AUX') {
        const isChoice = row.interface === 'mcq';
        rows.answers.push({
          request_id: row.id,
          interface: row.interface,
          condition: row.condition,
          gold: isChoice ? letters[question.gold]! : question.aliases[0]!,
          aliases: isChoice ? [letters[question.gold]!] : [...question.aliases],
          choices: isChoice ? [...question.options] : [],
          scoring_question: row.scoringQuestion,
        });
      }
      return { index, id: row.id, key, messages };
    };
    const control = (prefix: string, name: Interface, horizon: InputRow['horizon']) =>
      add(
        {
          id: `${prefix}::C::${name}`,
          interface: name,
          condition: 'C',
          operation: 'paired_control',
          horizon,
          isConflict: false,
          scoringQuestion: side === 'task' ? bare[name] : asked(name),
        },
        empty,
        target,
        asked(name),
      );
    const grow = (
      history: History,
      row: { id: string; interface: Interface; operation: string; horizon: Horizon; isConflict: boolean },
      clip: number,
      text: string,
    ): History => {
      const added = add({ ...row, condition: 'AUX', scoringQuestion: '' }, history, clip, text);
      return {
        key: added.key,
        messages: [
          ...added.messages,
          { role: 'assistant', content_binding: { kind: 'REQUEST_RAW', request_id: added.id } },
        ],
        native: [...history.native, { index: added.index, id: added.id }],
      };
    };

    const controls =
      side === 'evidence'
        ? {
            openqa: control(`wording-2::${root.id}`, 'openqa', 'shared'),
            mcq: control(`wording-2::${root.id}`, 'mcq', 'shared'),
          }
        : null;
    for (const horizon of root.horizons) {
      const pastTurns = mediaTurns[horizon] - 1;
      const sideTurns = Array.from({ length: pastTurns }, () => makeSideQuestion(draw));
      const pairId = side === 'task' ? root.id : `${root.id}::${horizon}`;
      const prefix = side === 'task' ? root.id : `${root.id}::${horizon}`;
      const controlOf = controls ?? {
        openqa: control(root.id, 'openqa', horizon),
        mcq: control(root.id, 'mcq', horizon),
      };
      const place = Math.floor(draw() * pastTurns);
      let evidence = empty;
      if (side === 'evidence') {
        if (place === 0) {
          // The other horizon may open with the target as well, but not with the same words.
          while (opened.has(`${target}\n${sideTurns[0]}`)) sideTurns[0] = makeSideQuestion(draw);
          opened.add(`${target}\n${sideTurns[0]}`);
        }
        for (const [at, text] of sideTurns.entries()) {
          const row = { interface: 'openqa', operation: 'history', horizon, isConflict: false } as const;
          const clip = at === place ? target : another(at === 0 ? [text] : []);
          evidence = grow(evidence, { ...row, id: `${prefix}::NATIVE${at}` }, clip, text);
        }
      }
      const midClips = side === 'task' ? sideTurns.slice(1).map(() => another()) : [];
      const views: Partial<Pair['views']> = {};
      const taskViews: Partial<Record<PairRole, Partial<TaskRow['views']>>> = {};
      for (const role of ['reference', 'conflict'] as const) {
        const operation = operationsOf[side][role];
        const isConflict = role === 'conflict';
        const newClip = another(side === 'task' ? [asked('openqa'), asked('mcq')] : []);
        taskViews[role] = {};
        for (const name of ['openqa', 'mcq'] as const) {
          const facts = { interface: name, operation, horizon, isConflict };
          let history = evidence;
          let final: ReturnType<typeof add>;
          if (side === 'evidence') {
            const text = `This is about the ${ordinals[place]} clip that I sent you.\n${asked(name)}`;
            const id = `wording-2::${prefix}::${operation}::${name}`;
            final = add({ ...facts, id, condition: 'H0', scoringQuestion: text }, history, newClip, text);
          } else {
            const stem = `${prefix}::${operation}::${name}`;
            history = grow(empty, { ...facts, id: `${stem}::OLD` }, newClip, asked(name));
            for (const [at, clip] of midClips.entries()) {
              history = grow(history, { ...facts, id: `${stem}::MID${at + 2}` }, clip, sideTurns[at + 1]!);
            }
            const options = name === 'mcq' ? ' Its options still hold.' : '';
            final = add(
              { ...facts, id: `${stem}::H0`, condition: 'H0', scoringQuestion: bare[name] },
              history,
              target,
              `Here is a new clip. Go back to my first question and answer it for this one.${options} ${closingOf(name)}`,
            );
          }
          const native = history.native;
          views[name] = {
            ...views[name],
            [role]: {
              control: controlOf[name].index,
              history: final.index,
              native: native.map(({ index }) => index),
            },
          } as Pair['views'][Interface];
          taskViews[role][name] = {
            view_id: `${prefix}::${operation}::${name}`,
            control_request_id: controlOf[name].id,
            history_request_id: final.id,
            native_dependency_request_ids: native.map(({ id }) => id),
          };
        }
        rows.tasks.push({
          task_id: `test-task-${String(2 * pairs.length + (isConflict ? 2 : 1)).padStart(6, '0')}`,
          pair_id: pairId,
          source_root_id: root.id,
          operation,
          history_horizon: horizon,
          required_modality: modality,
          family: question.family,
          history_side: side,
          split: 'TEST',
          adapt_split: null,
          old_split: pick(['TRAIN', 'TEST'], draw),
          views: taskViews[role] as TaskRow['views'],
        });
      }
      pairs.push({ root, side, horizon, views: views as Pair['views'] });
    }
    if (root.included) {
      for (const clip of used) clips.add(clip);
      onRoot(rows);
    }
  }
  if (new Set(requests.map(({ key }) => key)).size !== requests.length)
    throw new Error('two requests look the same to a server; another seed may help');
  return { roots, pairs, requests, clips };
};

/** Bytes that differ by clip and begin as MP4 or WAV do; they carry the number that the fleet reads. */
const clipBytes = (clip: number, medium: 'wav' | 'mp4'): Buffer => {
  const label = Buffer.from(`clip-${String(clip).padStart(5, '0')};`);
  if (medium === 'mp4') {
    const box = Buffer.alloc(8);
    box.writeUInt32BE(8 + label.length, 0);
    box.write('free', 4);
    return Buffer.concat([Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isomiso2', 'latin1'), box, label]);
  }
  return wavFile(Buffer.concat([label, Buffer.alloc(52)]));
};

/**
 * Writes the split as a release: tasks, requests, answers, clips and their digests, and the seeds in `generated.json`. The
 * folder appears whole or not at all.
 */
export const writeRelease = (
  directory: string,
  composition: Composition,
  seed: number,
  share: number,
): Split => {
  const building = `${directory}.building`;
  rmSync(building, { recursive: true, force: true });
  mkdirSync(path.join(building, 'data/tasks'), { recursive: true });
  mkdirSync(path.join(building, 'data/media'));
  const files = (['tasks', 'inputs', 'answers'] as const).map(
    (name) => [name, openSync(path.join(building, `data/tasks/${name}.jsonl`), 'w')] as const,
  );
  const split = buildSplit(composition, seed, share, (rows) => {
    for (const [name, file] of files) {
      writeSync(file, rows[name].map((row) => `${JSON.stringify(row)}\n`).join(''));
    }
  });
  for (const [, file] of files) closeSync(file);
  const digests: string[] = [];
  for (const clip of split.clips) {
    for (const medium of ['wav', 'mp4'] as const) {
      const bytes = clipBytes(clip, medium);
      writeFileSync(path.join(building, `${clipName(clip)}.${medium}`), bytes);
      digests.push(`${hash('sha256', bytes)}  ${clipName(clip)}.${medium}\n`);
    }
  }
  writeFileSync(path.join(building, 'data/media_sha256.txt'), digests.sort().join(''));
  writeFileSync(
    path.join(building, 'generated.json'),
    `${JSON.stringify({ by: 'bench/paper', seed, share, composition }, null, 2)}\n`,
  );
  renameSync(building, directory);
  return split;
};
