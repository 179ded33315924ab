import { createGenerateTurns } from '../functions/generate-turns/generate-turns.ts';
import { turnsWorker } from '../shared/adapters/aws/stage-environment.ts';
import { workerEnvironment } from '../shared/contracts/stage-environment.ts';
import { startQueueConsumer } from '../shared/stages/queue-consumer.ts';
import { type ModelServer, startModelServer } from './model-server.ts';

/**
 * Entry point of the container that runs a lane on its own GPUs: starts the model's server, empties the lane's queue
 * against it with many views at work, and ends when there was nothing to do for a while. Each turn is recorded before
 * the next one, so that a reclaimed host costs the calls in flight and no more.
 *
 * On SIGTERM it takes no further message, lets calls in flight end for a moment, and gives back what is unfinished.
 * Exit codes: 0 idle, 143 told to stop, 1 fault.
 */

/** A container has 30 seconds between SIGTERM and SIGKILL. */
const graceMs = 15_000;
/** Short, so that no message is handed to a poll that nobody waits for any more. */
const pollSeconds = 5;

const settings = workerEnvironment.parse(process.env);
const { TURNSWEEP_LANE: lane, TURNSWEEP_MAX_IN_FLIGHT: maxInFlight } = settings;
const stopping = new AbortController();
const handBack = new AbortController();
let exitCode = 0;

const { queue, stage, clock, log } = turnsWorker(createGenerateTurns, {
  queueUrl: settings.TURNSWEEP_QUEUE_URL,
  maxInFlight,
  hiddenSeconds: settings.TURNSWEEP_HIDDEN_SECONDS,
  // A delivery makes all turns of its view, unless somebody wants us gone.
  hasTimeLeft: () => !stopping.signal.aborted,
  handBack: handBack.signal,
});

const fault = (error: unknown) => {
  if (exitCode !== 0) return;
  exitCode = 1;
  log.error('worker-failed', { lane }, error);
};

const startServer = async (): Promise<ModelServer | null> => {
  const command = settings.TURNSWEEP_SERVER_COMMAND;
  if (command.length === 0) return null;
  return startModelServer({
    command,
    healthUrl: settings.TURNSWEEP_SERVER_HEALTH_URL,
    startSeconds: settings.TURNSWEEP_SERVER_START_SECONDS,
    signal: stopping.signal,
    clock,
  });
};

const serveLane = async (server: ModelServer | null): Promise<void> => {
  const consumer = startQueueConsumer({
    queue,
    concurrency: maxInFlight,
    handler: stage,
    onFault: fault,
    clock,
    pollSeconds,
    hiddenSeconds: settings.TURNSWEEP_HIDDEN_SECONDS,
    stopWhenIdleSeconds: settings.TURNSWEEP_IDLE_SECONDS,
    handBack: handBack.signal,
  });
  let isOver = false;
  const stop = async (patienceMs: number) => {
    const drained = consumer.drain();
    await Promise.race([drained, clock.sleep(patienceMs)]);
    handBack.abort(new Error('the worker stops'));
    await drained;
  };
  stopping.signal.addEventListener('abort', () => stop(graceMs).catch(fault), { once: true });
  // Without it every further call fails: nothing may count as an attempt that the model never saw.
  server?.ended.then((words) => {
    if (!isOver) fault(new Error(`the model server: ${words}`));
    return stop(0);
  });
  await consumer.ended;
  isOver = true;
};

process.on('SIGTERM', () => {
  exitCode ||= 143;
  log.info('worker-stopping', { lane });
  stopping.abort(new Error('the worker was told to stop'));
});

try {
  const server = await startServer();
  log.info('worker-started', { lane, maxInFlight });
  await serveLane(server);
  await server?.stop();
} catch (error) {
  fault(error);
}
log.info('worker-ended', { lane, exitCode });
// Connections that are kept would hold the process, and with it a machine that is paid for.
process.exit(exitCode);
