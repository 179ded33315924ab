import { onTestFinished } from 'vitest';
import { createAslRuntime } from '../../../local/asl/runtime.ts';
import { createMemoryStageQueue } from '../../../shared/adapters/local/memory-stage-queue.ts';
import { createSeededRandom } from '../../../shared/adapters/local/seeded-random.ts';
import { createSystemClock } from '../../../shared/adapters/local/system-clock.ts';
import { workflowContract } from '../../contracts/workflow.contract.ts';

workflowContract('embedded runtime', async (states) => {
  const clock = createSystemClock();
  const queue = createMemoryStageQueue({ visibilitySeconds: 60, maxReceiveCount: 3 }, { clock });
  const all = states('lane/a');
  const runtime = createAslRuntime({
    machines: { machine: { StartAt: Object.keys(all)[0], States: all } },
    integrations: {
      invokeFunction: async () => ({}),
      sendMessage: async (_queueUrl, body) => ({ messageId: await queue.send(body) }),
      submitJob: async () => ({}),
      readLines: async function* () {},
      writeLines: async () => {},
    },
    clock,
    random: createSeededRandom(1),
  });
  onTestFinished(() => runtime.close());
  const nextToken = async (): Promise<string> => {
    const [message] = await queue.receive(1, 20);
    return JSON.parse(message!.body).taskToken;
  };
  return { workflow: runtime, machine: 'machine', nextToken };
});
