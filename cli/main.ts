#!/usr/bin/env node
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { CommanderError } from 'commander';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { exitCodes } from './exit-codes.ts';
import { buildProgram } from './program.ts';
import { reportError } from './terminal.ts';

/**
 * Left to itself, V8 lets the heap grow to a multiple of what was alive before it collects: of what a sweep of 95,000
 * views then holds, a third is garbage. Collecting at half as much again takes a tenth more CPU time where all is
 * recorded, nothing that could be measured where models are asked. It is no limit: what is alive may grow as it must.
 */
const heapGrowingPercent = 50;

/** What the environment has already goes before `.env`. */
const readEnvironmentFile = (): void => {
  if (!existsSync('.env')) return;
  try {
    process.loadEnvFile('.env');
  } catch (error) {
    throw new TurnsweepError(errorNames.usage, 'cannot read the environment file', {
      where: path.resolve('.env'),
      remedy: 'make it a readable file with lines NAME=value, or remove it',
      cause: error,
    });
  }
};

/** Whoever reads the output may stop early (`| head`): no reason to fail. */
const endQuietlyWithReader = (): void => {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
};

const main = async (): Promise<void> => {
  const debug = process.argv.includes('--debug');
  endQuietlyWithReader();
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`);
  try {
    readEnvironmentFile();
    await buildProgram().parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? exitCodes.complete : exitCodes.failed;
      return;
    }
    reportError(error, debug);
    process.exitCode = exitCodes.failed;
  }
};

if (process.env.TURNSWEEP_TIED_TO_PARENT !== undefined && process.channel) {
  process.channel.unref();
  process.on('disconnect', () => process.exit(exitCodes.interrupted));
}

await main();
