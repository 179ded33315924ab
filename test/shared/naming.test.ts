import { expect, it } from 'vitest';
import { lanesOutput, parseLanesOutput } from '../../shared/naming.ts';

it('lanes of a deployment are told as one text and read back', () => {
  const lanes = [
    { id: 'qwen3.8-omni_flash', serverPort: null },
    { id: 'local-omni', serverPort: 8000 },
  ];

  const text = lanesOutput(lanes);

  expect(text).toBe('qwen3.8-omni_flash,local-omni@8000');
  expect(parseLanesOutput(text)).toEqual(lanes);
});
