import { expect, it } from 'vitest';
import { startCommand, turnsweep } from '../support/command-line.ts';

it('turnsweep mock speaks the dialect that is named and tells its address and key', async () => {
  const command = startCommand(['mock', '--provider', 'stepfun', '--time-scale', '0.01']);
  await expect.poll(() => command.output().stdout, { timeout: 20_000 }).toContain('ctrl-c');

  const [, url, key] = /mock provider on (\S+); key (\S+);/.exec(command.output().stdout)!;
  const response = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'step-audio-2', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  command.kill('SIGINT');

  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/step\/v1$/);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('turns=1;media=none;sha=none');
  expect((await command.ended).code).toBe(0);
});

it.each([
  ['--provider', 'acme'],
  ['--time-scale', '0'],
])('turnsweep mock refuses %s %s', async (option, value) => {
  const { code, stderr } = await turnsweep(['mock', option, value]);

  expect(code).toBe(1);
  expect(stderr).toContain(option);
});
