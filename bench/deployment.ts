/**
 * What is deployed, measured: time of a synthesis, size of each stage's bundle, and how long Node takes to
 * import it (the part of a cold start that is ours), as medians. Needs no account.
 *
 * node bench/deployment.ts [--runs 5]
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { StageVariables } from '../shared/contracts/stage-environment.ts';
import { median } from './measure.ts';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' } } });
const runs = Number(values.runs);
const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-deployment-'));

const synthesize = (): number => {
  const started = performance.now();
  const cdk = path.join(root, 'node_modules/aws-cdk/bin/cdk');
  const options = {
    cwd: root,
    stdio: ['ignore', 'ignore', 'ignore'] as const,
    env: { ...process.env, CI: 'true' },
  };
  execFileSync(process.execPath, [cdk, 'synth', '--strict', '--quiet', '--output', folder], options as never);
  return (performance.now() - started) / 1000;
};

const variables: StageVariables = {
  TURNSWEEP_BUCKET: 'bucket',
  TURNSWEEP_LEDGER_TABLE: 'ledger',
  TURNSWEEP_QUEUE_URL_PREFIX: 'https://sqs.us-east-1.amazonaws.com/123456789012/turnsweep-',
  TURNSWEEP_DEPLOYMENT: 'turnsweep',
  TURNSWEEP_TIMEOUT_SECONDS: '660',
  TURNSWEEP_VISIBILITY_SECONDS: '3960',
  TURNSWEEP_MAX_RECEIVE_COUNT: '4',
  TURNSWEEP_RETURN_SECONDS: '60,300,900',
  TURNSWEEP_SWEEP_MACHINE: 'arn:aws:states:us-east-1:123456789012:stateMachine:turnsweep-sweep',
};

const importTime = path.join(folder, 'import-time.mjs');
const importOnce = (bundle: string): { ms: number; mebibytes: number } =>
  JSON.parse(
    execFileSync(process.execPath, [importTime, bundle], {
      env: { ...variables, AWS_REGION: 'us-east-1', PATH: process.env.PATH },
      encoding: 'utf8',
    }),
  );

try {
  const seconds = Array.from({ length: Math.min(runs, 3) }, synthesize);
  console.log(`synthesis of all stacks: ${median(seconds).toFixed(1)} s`);
  writeFileSync(
    importTime,
    `const started = performance.now();
    const { handler } = await import(process.argv[2]);
    if (typeof handler !== 'function') throw new Error('no handler');
    const ms = performance.now() - started;
    console.log(JSON.stringify({ ms, mebibytes: process.memoryUsage().rss / 2 ** 20 }));
    process.exit(0);`,
  );
  const { Resources } = JSON.parse(readFileSync(path.join(folder, 'Sweep.template.json'), 'utf8')) as {
    Resources: Record<
      string,
      { Type: string; Properties: { FunctionName: string }; Metadata: Record<string, string> }
    >;
  };
  for (const { Type, Properties, Metadata } of Object.values(Resources)) {
    if (Type !== 'AWS::Lambda::Function') continue;
    const bundle = path.join(folder, Metadata['aws:asset:path']!, 'index.mjs');
    const imports = Array.from({ length: runs }, () => importOnce(bundle));
    console.log(
      [
        Properties.FunctionName.padEnd(28),
        `${Math.round(statSync(bundle).size / 1024)} KiB`.padStart(9),
        `${median(imports.map(({ ms }) => ms)).toFixed(0)} ms`.padStart(8),
        `${median(imports.map(({ mebibytes }) => mebibytes)).toFixed(0)} MiB`.padStart(8),
      ].join(' '),
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
