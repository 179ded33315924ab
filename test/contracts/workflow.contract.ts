import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ExecutionDescription, Workflow } from '../../shared/ports/workflow.ts';

export interface WorkflowUnderTest {
  workflow: Workflow;
  /** The machine of the states that were asked for, as `start` knows it. */
  machine: string;
  /** Token of the next task that waits. */
  nextToken(): Promise<string>;
}

type States = Record<string, object>;

/** How an execution ended. */
const ending = async (workflow: Workflow, id: string): Promise<ExecutionDescription> => {
  for (;;) {
    const description = await workflow.describe(id);
    if (description.status !== 'RUNNING') return description;
    await sleep(20);
  }
};

const echo = (): States => ({ Done: { Type: 'Succeed' } });

const waiting = (queueUrl: string): States => ({
  Wait: {
    Type: 'Task',
    Resource: 'arn:aws:states:::sqs:sendMessage.waitForTaskToken',
    Parameters: { QueueUrl: queueUrl, MessageBody: { 'taskToken.$': '$$.Task.Token' } },
    TimeoutSeconds: 60,
    End: true,
  },
});

/**
 * What every Workflow does. `makeWorkflow` gives one with a machine of the states that it is told, the first of
 * which the machine starts at.
 */
export const workflowContract = (
  name: string,
  makeWorkflow: (states: (queueUrl: string) => States) => Promise<WorkflowUnderTest>,
): void => {
  describe(`Workflow contract: ${name}`, () => {
    it('runs a machine to its end with the input it was given', async () => {
      const { workflow, machine } = await makeWorkflow(echo);

      const id = await workflow.start(machine, 'one', { run: 'r', list: [1, null] });

      expect(await ending(workflow, id)).toEqual({
        name: 'one',
        status: 'SUCCEEDED',
        output: { run: 'r', list: [1, null] },
        error: null,
        cause: null,
      });
    });

    it('starts a name once: the same input gives the first execution, another is refused', async () => {
      const { workflow, machine } = await makeWorkflow(echo);
      const first = await workflow.start(machine, 'one', { a: 1, b: 2 });

      const again = await workflow.start(machine, 'one', { b: 2, a: 1 });
      const other = workflow.start(machine, 'one', { a: 2 });

      expect(again).toBe(first);
      await expect(other).rejects.toMatchObject({ name: 'ContractDiffers' });
    });

    it('goes on with what the token is answered, once', async () => {
      const { workflow, machine, nextToken } = await makeWorkflow(waiting);
      const id = await workflow.start(machine, 'one', {});
      const token = await nextToken();

      const answers = [await workflow.succeed(token, { calls: 3 })];
      const end = await ending(workflow, id);
      answers.push(await workflow.succeed(token, { calls: 4 }), await workflow.fail(token, 'Late', ''));

      expect(answers).toEqual([true, false, false]);
      expect(end).toMatchObject({ status: 'SUCCEEDED', output: { calls: 3 } });
    });

    it('fails with the error and cause that the token is answered', async () => {
      const { workflow, machine, nextToken } = await makeWorkflow(waiting);
      const id = await workflow.start(machine, 'one', {});

      const answered = await workflow.fail(await nextToken(), 'MessagePoisoned', 'eight times');

      expect(answered).toBe(true);
      expect(await ending(workflow, id)).toMatchObject({
        status: 'FAILED',
        output: null,
        error: 'MessagePoisoned',
        cause: 'eight times',
      });
    });

    it('stops an execution, after which nobody waits for its token', async () => {
      const { workflow, machine, nextToken } = await makeWorkflow(waiting);
      const id = await workflow.start(machine, 'one', {});
      const token = await nextToken();

      await workflow.stop(id, 'enough');

      expect(await ending(workflow, id)).toMatchObject({ status: 'ABORTED', output: null });
      await expect.poll(() => workflow.succeed(token, {}), { timeout: 5_000 }).toBe(false);
      await expect(workflow.stop(id, 'again')).resolves.toBeUndefined();
    });

    it('knows no token and no execution that it did not make', async () => {
      const { workflow, machine } = await makeWorkflow(echo);
      const id = await workflow.start(machine, 'one', {});

      expect(await workflow.succeed('no-such-token', {})).toBe(false);
      expect(await workflow.heartbeat('no-such-token')).toBe(false);
      await expect(workflow.describe(`${id}-not`)).rejects.toMatchObject({ name: 'ObjectMissing' });
    });
  });
};
