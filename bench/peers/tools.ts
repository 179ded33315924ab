import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Measured, measureNode, measurePython, wellEnded } from '../measure.ts';
import { installPeer, type PeerName, pinned } from './install.ts';
import { runPromptfoo } from './promptfoo.ts';

/** The same for every tool: so many chat calls with a short text each, whose replies are to be `answer`. */
export interface Work {
  /** Base URL of the mock. */
  url: string;
  questions: readonly string[];
  answer: string;
  concurrency: number;
  /** An empty folder for what the tool writes. */
  folder: string;
}

export interface Tool {
  name: string;
  /** Throws where the tool fails; `answered` are the calls whose reply the tool scored as it should. */
  run(work: Work): Promise<{ measured: Measured; answered: number }>;
}

export const questionAt = (index: number): string => `Question ${index}: which tool lies on the bench?`;

export const plainLoop: Tool = {
  name: 'plain loop (undici)',
  run: async ({ url, questions, answer, concurrency }) => {
    const args = [url, questions.length, concurrency, answer].map(String);
    const measured = await measureNode(['bench/peers/plain-loop.ts', ...args]);
    return { measured, answered: Number(measured.lastLine) };
  },
};

const inspect =
  (installed: string): Tool['run'] =>
  async ({ url, questions, answer, concurrency, folder }) => {
    const samples = path.join(folder, 'questions.jsonl');
    writeFileSync(
      samples,
      questions.map((input) => `${JSON.stringify({ input, target: answer })}\n`).join(''),
    );
    // Inspect takes the files of its tasks by relative names only.
    copyFileSync(path.join(import.meta.dirname, 'inspect_task.py'), path.join(folder, 'task.py'));
    const python = path.join(installed, 'bin/python');
    const logs = path.join(folder, 'logs');
    const measured = await measurePython(
      python,
      [
        ...['inspect_ai', 'eval', 'task.py'],
        ...['-T', `questions=${samples}`, '--model', 'openai-api/mock/m', '--max-tokens', '64'],
        ...['--max-connections', String(concurrency), '--max-samples', String(concurrency)],
        ...['--log-dir', logs, '--display', 'none'],
      ],
      { cwd: folder, env: { MOCK_BASE_URL: url, MOCK_API_KEY: 'none' } },
    );
    wellEnded(measured);
    const log = path.join(logs, readdirSync(logs)[0]!);
    const { results } = JSON.parse(
      execFileSync(python, ['-m', 'inspect_ai', 'log', 'dump', '--header-only', log], { encoding: 'utf8' }),
    ) as { results: { completed_samples: number; scores: [{ metrics: { mean: { value: number } } }] } };
    const { completed_samples: completed, scores } = results;
    return { measured, answered: Math.round(completed * scores[0].metrics.mean.value) };
  };

const lmEval =
  (installed: string): Tool['run'] =>
  async ({ url, questions, answer, concurrency, folder }) => {
    const documents = path.join(folder, 'questions.jsonl');
    writeFileSync(
      documents,
      questions.map((question) => `${JSON.stringify({ question, answer })}\n`).join(''),
    );
    writeFileSync(
      path.join(folder, 'single_call.yaml'),
      JSON.stringify({
        task: 'single_call',
        dataset_path: 'json',
        dataset_kwargs: { data_files: { test: documents } },
        test_split: 'test',
        output_type: 'generate_until',
        doc_to_text: '{{question}}',
        doc_to_target: '{{answer}}',
        generation_kwargs: { until: [], max_gen_toks: 64, do_sample: false },
        metric_list: [{ metric: 'exact_match', aggregation: 'mean', higher_is_better: true }],
      }),
    );
    const output = path.join(folder, 'output');
    const model = [`model=m`, `base_url=${url}/chat/completions`, `num_concurrent=${concurrency}`];
    const measured = await measurePython(
      path.join(installed, 'bin/python'),
      [
        ...['lm_eval', 'run', '--model', 'local-chat-completions', '--model_args', model.join(',')],
        ...['--include_path', folder, '--tasks', 'single_call', '--apply_chat_template'],
        ...['--output_path', output],
      ],
      {
        cwd: folder,
        env: { HF_HOME: path.join(folder, 'hf'), HF_HUB_OFFLINE: '1', HF_DATASETS_OFFLINE: '1' },
      },
    );
    wellEnded(measured);
    const found = readdirSync(output, { recursive: true, encoding: 'utf8' }).find((file) =>
      path.basename(file).startsWith('results_'),
    )!;
    const { results, 'n-samples': samples } = JSON.parse(readFileSync(path.join(output, found), 'utf8')) as {
      results: { single_call: { 'exact_match,none': number } };
      'n-samples': { single_call: { effective: number } };
    };
    const { effective } = samples.single_call;
    return { measured, answered: Math.round(effective * results.single_call['exact_match,none']) };
  };

const runs: Record<PeerName, (installed: string) => Tool['run']> = {
  promptfoo: (installed) => async (work) => {
    const { measured, stats } = await runPromptfoo(installed, work);
    return { measured: wellEnded(measured), answered: stats.successes };
  },
  'inspect-ai': inspect,
  'lm-eval': lmEval,
};

export const peerNames = Object.keys(runs) as PeerName[];

/** Of the named peers those that install; says of the others why not. */
export const installedPeers = async (names: readonly PeerName[]): Promise<Tool[]> => {
  const tools: Tool[] = [];
  for (const name of names) {
    const [main] = pinned[name].packages;
    const installed = await installPeer(name);
    if ('reason' in installed) console.log(`skipped: ${main} does not install here: ${installed.reason}`);
    else tools.push({ name: main, run: runs[name](installed.folder) });
  }
  return tools;
};
