import type { ConnectedDeployment } from '../../shared/adapters/aws/connect.ts';
import { errorNames, isNamed } from '../../shared/errors.ts';
import { startName } from '../../shared/naming.ts';
import type { ExecutionDescription } from '../../shared/ports/workflow.ts';

/** One start of a run: an execution of the sweep machine. */
export interface Start {
  executionId: string;
  execution: ExecutionDescription;
}

type Machines = Pick<ConnectedDeployment, 'deployment' | 'workflow'>;

/** Every start of a run, first one first; whoever knows the run knows their names. */
export const findStarts = async (run: string, { deployment, workflow }: Machines): Promise<Start[]> => {
  const prefix = deployment.sweepMachine.replace(':stateMachine:', ':execution:');
  const starts: Start[] = [];
  for (;;) {
    const executionId = `${prefix}:${startName(run, starts.length + 1)}`;
    const execution = await workflow.describe(executionId).catch((error: unknown) => {
      if (isNamed(error, errorNames.objectMissing)) return null;
      throw error;
    });
    if (execution === null) return starts;
    starts.push({ executionId, execution });
  }
};

/** Joins the run's latest start while it runs; else begins the next one. Gives the execution. */
export const startOrJoin = async (run: string, retryErrors: boolean, machines: Machines): Promise<string> => {
  const starts = await findStarts(run, machines);
  const running = starts.find(({ execution }) => execution.status === 'RUNNING');
  if (running !== undefined) return running.executionId;
  const { deployment, workflow } = machines;
  return workflow.start(deployment.sweepMachine, startName(run, starts.length + 1), { run, retryErrors });
};
