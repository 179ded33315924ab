import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot, turnsweep } from '../support/command-line.ts';

it('the command starts with the Node that the machine has, whatever its version', () => {
  const withoutOurs = process.env
    .PATH!.split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(path.delimiter);
  const env = { ...process.env, PATH: withoutOurs };

  const { status, stdout, stderr } = spawnSync('node', [path.join('bin', 'turnsweep.js'), '--help'], {
    cwd: projectRoot,
    env,
    encoding: 'utf8',
  });

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('run');
});

it('the command tells which version of the package it is', async () => {
  const { version } = JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8'));

  const told = await turnsweep(['--version']);

  expect(told).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
});
