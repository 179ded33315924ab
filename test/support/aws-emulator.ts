import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const root = path.join(import.meta.dirname, '..', '..');
const python = path.join(root, 'node_modules', '.cache', 'aws-emulator', 'bin', 'python');
const launcher = path.join(import.meta.dirname, 'aws-emulator', 'launch.py');

const accountId = '000000000000';
const region = 'eu-west-1';
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const startSeconds = 60;

export interface AwsEmulator {
  endpoint: string;
  region: string;
  accountId: string;
  /** Options for the client of any service. */
  clientOptions: {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
    /** S3 alone reads it. */
    forcePathStyle: true;
  };
  /** Variables with which other programs (the CDK command line, our own) talk to the emulator. */
  environment: Readonly<Record<string, string>>;
  /** All that it and the Lambda handlers have written so far. */
  output(): string;
  /** Kills the emulator and all that it has started. */
  stop(): Promise<void>;
}

export interface AwsEmulatorOptions {
  /** Whether the policies of roles are enforced for handlers and whoever assumes a role; true unless given. */
  enforcesPolicies?: boolean;
  /** Step Functions' waits and retry delays take this share of their time; 1 unless given. */
  waitScale?: number;
  /** What a Batch job runs here in place of its container, beside the variables of its definition. */
  jobCommand?: readonly string[];
  /** Variables that every Lambda handler finds beside its own. */
  handlerEnvironment?: Readonly<Record<string, string>>;
}

/**
 * Starts an AWS emulator of its own on a free port of the loopback interface; it lives no longer than this
 * process. What it can do and what it gets wrong: docs/emulator.md. `scripts/install-aws-emulator.sh`
 * installs it. Lambda handlers run as child processes of it, under the Node that runs this.
 */
export const startAwsEmulator = async (options: AwsEmulatorOptions = {}): Promise<AwsEmulator> => {
  if (!existsSync(python))
    throw new Error('the AWS emulator is not installed; run scripts/install-aws-emulator.sh');
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const directory = mkdtempSync(path.join(tmpdir(), 'turnsweep-aws-'));
  // Handlers inherit all of this: nothing of the user's own environment, and above all no keys.
  const child = spawn(python, [launcher], {
    cwd: directory,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: [path.dirname(process.execPath), '/usr/bin', '/bin'].join(path.delimiter),
      HOME: directory,
      TMPDIR: directory,
      BIND_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      MINISTACK_HOST: '127.0.0.1',
      MINISTACK_REGION: region,
      AUTH: String(options.enforcesPolicies ?? true),
      SFN_WAIT_SCALE: String(options.waitScale ?? 1),
      LAMBDA_ACCOUNT_CONCURRENCY: '64',
      EMULATOR_JOB_COMMAND: JSON.stringify(options.jobCommand ?? []),
      IOT_MTLS_ENABLED: '0',
      PYTHONDONTWRITEBYTECODE: '1',
      ...options.handlerEnvironment,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = once(child, 'close');
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid!, 'SIGKILL');
      await ended;
    }
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };

  const giveUpAt = Date.now() + startSeconds * 1000;
  while (!(await answers(endpoint))) {
    if (child.exitCode !== null || Date.now() > giveUpAt) {
      await stop();
      throw new Error(`the AWS emulator did not start:\n${output}`);
    }
    await sleep(50);
  }
  return {
    endpoint,
    region,
    accountId,
    clientOptions: { endpoint, region, credentials, forcePathStyle: true },
    environment: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: region,
      AWS_DEFAULT_REGION: region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      AWS_EC2_METADATA_DISABLED: 'true',
    },
    output: () => output,
    stop,
  };
};

const answers = async (endpoint: string): Promise<boolean> => {
  try {
    return (await fetch(`${endpoint}/_ministack/health`)).ok;
  } catch {
    return false; // Not listening yet; the caller asks again.
  }
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port for the AWS emulator');
  return address.port;
};
