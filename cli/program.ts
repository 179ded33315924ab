import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { providerNames } from '../mock/dialects/dialect.ts';
import project from '../package.json' with { type: 'json' };
import { releaseFormats } from '../shared/benchmarks/registry.ts';
import { cancel, download, pause, redrive, resume } from './commands/aws-operations.ts';
import { demo, demoNames } from './commands/demo.ts';
import { exportRun } from './commands/export.ts';
import { judge, report, score } from './commands/later-phases.ts';
import { mock } from './commands/mock.ts';
import { plan } from './commands/plan.ts';
import { run } from './commands/run.ts';
import { status } from './commands/status.ts';
import { validate } from './commands/validate.ts';
import { printable } from './terminal.ts';

const wholeNumber =
  (most: number) =>
  (text: string): number => {
    if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`give a whole number from 1 to ${most}.`);
  };
const taskLimit = wholeNumber(999_999_999);
/** As in the sweep file. */
const jobLimit = wholeNumber(10_000);
const portNumber = wholeNumber(65_535);

const positiveNumber = (text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('give a number above 0.');
};

const collect = (text: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), text];

const deployment = (): Option =>
  new Option('--deployment <name>', 'deployment in the AWS account')
    .env('TURNSWEEP_DEPLOYMENT')
    .default('turnsweep');

/** All commands with their options; parsing a command line runs its command and sets the exit code. */
export const buildProgram = (): Command => {
  const program = new Command('turnsweep')
    .description('Batch evaluator for multi-turn, multimodal history-use benchmarks')
    .version(project.version, '--version', 'print the version')
    .option('--debug', 'show stacks of errors')
    .showSuggestionAfterError()
    .configureOutput({ outputError: (text, write) => write(`${printable(text.trim())}\n`) })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  const command = (name: string, description: string) => program.command(name).description(description);
  const ends =
    (action: (...args: never[]) => Promise<number>) =>
    async (...args: unknown[]) => {
      process.exitCode = await (action as (...args: unknown[]) => Promise<number>)(...args);
    };

  command('validate <sweep>', 'read the sweep file and the benchmark, list every problem; no calls').action(
    ends(validate),
  );
  command('plan <sweep>', 'count views, groups, requests and projected cost; no calls')
    .option('--limit <n>', 'only the first n tasks of the selection', taskLimit)
    .option('--json', 'print JSON')
    .action(ends(plan));
  command('run <sweep>', 'plan, generate, judge, aggregate and report; again with the same contract resumes')
    .option('--out <dir>', 'output folder (default: runs/<sweep name>)')
    .addOption(new Option('--on <home>', 'where to run').choices(['local', 'aws']).default('local'))
    .addOption(deployment())
    .option('--resume', 'only go on with a run that is there')
    .option('--retry-errors', 'ask failed requests again (never provider refusals)')
    .option('--limit <n>', 'only the first n tasks of the selection', taskLimit)
    .option('-j, --jobs <n>', 'calls in flight per lane, instead of maxInFlight', jobLimit)
    .option('--reviews <dir>', 'folder of reviews shared between runs (default: inside the output folder)')
    .option(
      '--media <dir>',
      'folder of what is made of clips, shared between runs (default: inside the output folder)',
    )
    .option('--json', 'progress and result as JSON lines')
    .action(ends(run));
  command(
    'status [run]',
    'how far a run is: its folder, or with --on aws its id; without one, the runs on AWS',
  )
    .addOption(new Option('--on <home>', 'where it runs').choices(['local', 'aws']).default('local'))
    .addOption(deployment())
    .option('--json', 'print JSON')
    .action(ends(status));
  command('pause', 'AWS: stop all runs of the deployment: let no stage take a message')
    .addOption(deployment())
    .action(ends(pause));
  command('resume', 'AWS: let the stages take messages again').addOption(deployment()).action(ends(resume));
  command('cancel <run>', 'AWS: stop a run; what is recorded stays')
    .addOption(deployment())
    .action(ends(cancel));
  command('redrive <run>', 'AWS: start a run again by its id; what failed or was left open goes on')
    .addOption(deployment())
    .option('--out <dir>', 'folder to bring it to (default: runs/<run>)')
    .option('--retry-errors', 'ask failed requests again (never provider refusals)')
    .option('--json', 'progress and result as JSON lines')
    .action(ends(redrive));
  command('download <run>', 'AWS: bring the folder of a run home as it is now')
    .addOption(deployment())
    .option('--out <dir>', 'folder to bring it to (default: runs/<run>)')
    .action(ends(download));
  command('score <dir>', 'score by rules and the reviews that are there; no calls')
    .option('--review-cache <file>', 'reviews made elsewhere; may be given several times', collect)
    .option('--reviews <dir>', 'folder of reviews shared between runs')
    .action(ends(score));
  command('judge <dir>', 'judge what the rules left open, then report; no calls to evaluated models')
    .option('--reviews <dir>', 'folder of reviews shared between runs')
    .option('--json', 'progress and result as JSON lines')
    .action(ends(judge));
  command('report <dir>', 'aggregate and write the report again; no calls')
    .option('--reviews <dir>', 'folder of reviews shared between runs')
    .action(ends(report));
  command('export <dir>', 'write a finished run in another format')
    .addOption(
      new Option('--to <format>', 'format').choices([...releaseFormats, 'csv']).makeOptionMandatory(),
    )
    .option('--out <dir>', 'folder to write to (default: <dir>/export/<format>)')
    .action(ends(exportRun));
  command('mock', 'fake provider for tries, tests and benchmarks')
    .option('--port <p>', 'port (default: any free one)', portNumber)
    .option('--scenario <file>', 'what it answers, how fast and with which faults')
    .addOption(new Option('--provider <name>', 'provider whose dialect it speaks').choices(providerNames))
    .option('--time-scale <x>', 'real seconds for one second that it waits (default: 1)', positiveNumber)
    .action(ends(mock));
  command('demo', 'sweep an example benchmark over HTTP against simulated models')
    .addArgument(new Argument('[benchmark]', 'which one').choices(demoNames).default(demoNames[0]))
    .option('--out <dir>', 'output folder (default: a new folder under runs/)')
    .action(ends(demo));
  return program;
};
