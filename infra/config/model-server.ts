import type { GpuLane } from './lanes.ts';

const address = '127.0.0.1';

/** Program and arguments that serve a model on the loopback interface, by engine. */
const commands: Record<GpuLane['server']['engine'], (model: string) => string[]> = {
  vllm: (model) => ['vllm', 'serve', model],
  sglang: (model) => ['python3', '-m', 'sglang.launch_server', '--model-path', model],
};

/** The lane's server as a command; the worker starts it and waits for its health address. */
export const serverCommand = ({ server, gpus }: GpuLane): string[] => [
  ...commands[server.engine](server.model),
  '--host',
  address,
  '--port',
  String(server.port),
  // Both engines know it: the model is cut over all GPUs of the job.
  '--tensor-parallel-size',
  String(gpus),
  ...server.arguments,
];

/** 200 once the weights are loaded, in both engines. */
export const serverHealthUrl = ({ server }: GpuLane): string => `http://${address}:${server.port}/health`;
