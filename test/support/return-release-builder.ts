import {
  type AnswerRow,
  type Horizon,
  type InputRow,
  type Interface,
  interfaces,
  mediaTurns,
  type Operation,
  type RequiredModality,
  type TaskRow,
} from '../../shared/benchmarks/return/release-format.ts';

export interface BuiltRelease {
  /** Texts by path inside the release. */
  files: Record<string, string>;
  /** In file order. */
  taskIds: string[];
  /** Every clip that the requests name, sorted. */
  mediaPaths: string[];
  /** The rows behind the files, to be altered and written again with `toJsonl`. */
  rows: { tasks: TaskRow[]; inputs: InputRow[]; answers: AnswerRow[] };
}

export const toJsonl = (rows: readonly unknown[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** Rows that have no object in common, so that changing one leaves the others alone. */
const unshared = <Row>(rows: Row[]): Row[] => JSON.parse(JSON.stringify(rows));

type Message = InputRow['messages'][number];

const subjects: Record<RequiredModality, { question: string; words: string[] }> = {
  V: { question: 'Which tool lies on the bench?', words: ['hammer', 'chisel', 'wrench', 'pliers'] },
  A: { question: 'Which town does the voice name?', words: ['Lisbon', 'Bergen', 'Trieste', 'Malmö'] },
};

const letters = ['A', 'B', 'C', 'D'];

/** Numbers in [0, 1) of a 32-bit linear congruential generator. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const closing: Record<Interface, string> = {
  openqa: 'Answer briefly.',
  mcq: 'Answer with only the option letter.',
};

const reply = (requestId: string): Message => ({
  role: 'assistant',
  content_binding: { kind: 'REQUEST_RAW', request_id: requestId },
});

/**
 * A small valid release. Each root has four pairs (task and evidence side, short and long) of one
 * modality (V for even roots, A for odd ones): 8 tasks, 16 views, 47 requests (22 final, 25 native),
 * 5 view groups. As in the real release, evidence-side native turns serve both operations and both
 * interfaces, and the evidence-side control both horizons.
 */
export function buildRelease({ roots = 2, seed = 1 }: { roots?: number; seed?: number } = {}): BuiltRelease {
  const random = seeded(seed);
  const tasks: TaskRow[] = [];
  const inputs: InputRow[] = [];
  const answers: AnswerRow[] = [];
  const mediaPaths = new Set<string>();

  const turn = (clip: string, text: string): Message => {
    const [audio, video] = [`data/media/${clip}.wav`, `data/media/${clip}.mp4`];
    mediaPaths.add(audio).add(video);
    return {
      role: 'user',
      content: [
        { type: 'audio', audio },
        { type: 'video', video },
        { type: 'text', text },
      ],
    };
  };

  for (let index = 0; index < roots; index += 1) {
    const root = `root-${String(index + 1).padStart(3, '0')}`;
    const modality: RequiredModality = index % 2 === 0 ? 'V' : 'A';
    const { question, words } = subjects[modality];
    const turned = Math.floor(random() * words.length);
    const choices = [...words.slice(turned), ...words.slice(0, turned)];
    const goldIndex = Math.floor(random() * choices.length);
    const listed = choices.map((choice, at) => `${letters[at]}. ${choice}`).join('\n');
    const asked: Record<Interface, string> = { openqa: question, mcq: `${question}\n${listed}` };

    const input = (row: Omit<InputRow, 'required_modality'>) =>
      inputs.push({ ...row, required_modality: modality });
    const final = (row: Omit<InputRow, 'required_modality' | 'condition'> & { condition: 'C' | 'H0' }) => {
      input(row);
      const gold = row.interface === 'mcq' ? letters[goldIndex]! : choices[goldIndex]!;
      answers.push({
        request_id: row.request_id,
        interface: row.interface,
        condition: row.condition,
        gold,
        aliases: row.interface === 'mcq' ? [gold] : [gold, `the ${gold}`],
        choices: row.interface === 'mcq' ? choices : [],
        scoring_question: asked[row.interface],
      });
    };
    const control = (requestId: string, name: Interface, horizon: InputRow['horizon']) =>
      final({
        request_id: requestId,
        interface: name,
        condition: 'C',
        operation: 'paired_control',
        horizon,
        messages: [turn(`${root}-target`, `${asked[name]}\n${closing[name]}`)],
      });
    /** Native turns of one history, each answered by its own request; returns the history they leave. */
    const nativeTurns = (
      row: { prefix: string; interface: Interface; operation: string; horizon: Horizon },
      texts: readonly string[],
    ): { ids: string[]; history: Message[] } => {
      const ids: string[] = [];
      let history: Message[] = [];
      for (const [at, text] of texts.entries()) {
        const requestId = `${row.prefix}::N${at}`;
        const messages = [...history, turn(`${root}-past-${at}`, text)];
        input({
          request_id: requestId,
          interface: row.interface,
          condition: 'AUX',
          operation: row.operation,
          horizon: row.horizon,
          messages,
        });
        ids.push(requestId);
        history = [...messages, reply(requestId)];
      }
      return { ids, history };
    };
    const task = (
      operation: Operation,
      horizon: Horizon,
      side: TaskRow['history_side'],
      views: TaskRow['views'],
    ) =>
      tasks.push({
        task_id: `${root}-${horizon}-${operation}`,
        pair_id: `${root}::${side}::${horizon}`,
        source_root_id: root,
        operation,
        history_horizon: horizon,
        required_modality: modality,
        family: modality === 'V' ? 'tool' : 'town',
        history_side: side,
        split: 'DEVELOPMENT',
        adapt_split: 'ADAPT_TRAIN',
        old_split: 'TRAIN',
        views,
      });
    const view = (name: Interface, history: string, controlId: string, native: string[]) => ({
      view_id: `${history}::view::${name}`,
      control_request_id: controlId,
      history_request_id: history,
      native_dependency_request_ids: native,
    });

    for (const name of interfaces) control(`${root}::evidence::C::${name}`, name, 'shared');
    for (const horizon of ['short', 'long'] as const) {
      const pastTurns = mediaTurns[horizon] - 1;
      const past = Array.from({ length: pastTurns }, (_, at) => `What happens in clip ${at + 1}?`);
      const evidence = nativeTurns(
        { prefix: `${root}::evidence::${horizon}`, interface: 'openqa', operation: 'history', horizon },
        past,
      );
      for (const operation of ['retrieve', 'rebind'] as const) {
        const one = (name: Interface) => {
          const history = `${root}::evidence::${horizon}::${operation}::${name}`;
          const pointer =
            operation === 'retrieve' ? 'For the first clip' : 'For the newest clip, not the first';
          final({
            request_id: history,
            interface: name,
            condition: 'H0',
            operation,
            horizon,
            messages: [
              ...evidence.history,
              turn(`${root}-target`, `${pointer}: ${asked[name]}\n${closing[name]}`),
            ],
          });
          return view(name, history, `${root}::evidence::C::${name}`, evidence.ids);
        };
        task(operation, horizon, 'evidence', { openqa: one('openqa'), mcq: one('mcq') });
      }

      for (const name of interfaces) control(`${root}::task::${horizon}::C::${name}`, name, horizon);
      for (const operation of ['preserve', 'revise'] as const) {
        const one = (name: Interface) => {
          const prefix = `${root}::task::${horizon}::${operation}::${name}`;
          const opening = operation === 'preserve' ? asked[name] : `Which colour is the wall?`;
          const native = nativeTurns({ prefix, interface: name, operation, horizon }, [
            opening,
            ...past.slice(1),
          ]);
          final({
            request_id: `${prefix}::H0`,
            interface: name,
            condition: 'H0',
            operation,
            horizon,
            messages: [
              ...native.history,
              turn(
                `${root}-target`,
                operation === 'preserve'
                  ? `Answer the first question again for this clip. ${closing[name]}`
                  : `Now another question: ${asked[name]}\n${closing[name]}`,
              ),
            ],
          });
          return view(name, `${prefix}::H0`, `${root}::task::${horizon}::C::${name}`, native.ids);
        };
        task(operation, horizon, 'task', { openqa: one('openqa'), mcq: one('mcq') });
      }
    }
  }

  const taskIds = tasks.map((row) => row.task_id);
  return {
    files: {
      'data/tasks/tasks.jsonl': toJsonl(tasks),
      'data/tasks/inputs.jsonl': toJsonl(inputs),
      'data/tasks/answers.jsonl': toJsonl(answers),
      'data/first_pair_manifest.json': `${JSON.stringify({ task_ids: taskIds.slice(0, 2) })}\n`,
    },
    taskIds,
    mediaPaths: [...mediaPaths].sort(),
    rows: { tasks: unshared(tasks), inputs: unshared(inputs), answers: unshared(answers) },
  };
}
