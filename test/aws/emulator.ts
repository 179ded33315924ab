import { afterAll, beforeAll } from 'vitest';
import { type AwsEmulator, type AwsEmulatorOptions, startAwsEmulator } from '../support/aws-emulator.ts';

/** One emulator for the tests of a file. */
export const useAwsEmulator = (options?: AwsEmulatorOptions): (() => AwsEmulator) => {
  let emulator: AwsEmulator | undefined;
  beforeAll(async () => {
    emulator = await startAwsEmulator(options);
  });
  afterAll(() => emulator?.stop());
  return () => {
    if (emulator === undefined) throw new Error('the emulator runs only while tests do');
    return emulator;
  };
};
