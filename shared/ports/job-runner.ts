export interface JobResult {
  exitCode: number;
  /** Last lines of the job's output, for people. */
  outputTail: string;
}

/** Runs a container job (AWS Batch) or its entry point as a child process. */
export interface JobRunner {
  run(
    job: { name: string; command: readonly string[]; environment: Readonly<Record<string, string>> },
    signal?: AbortSignal,
  ): Promise<JobResult>;
}
