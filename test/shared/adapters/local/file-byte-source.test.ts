import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFolder } from '../../../../shared/adapters/local/file-byte-source.ts';
import { byteSourceContract } from '../../../contracts/byte-source.contract.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';

byteSourceContract('files', async () => {
  const folder = temporaryDirectory();
  return {
    files: await openFolder(folder),
    async write(name, content) {
      const file = path.join(folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
    },
  };
});

describe('files of a folder', () => {
  const linkedFolder = () => {
    const folder = temporaryDirectory();
    writeFileSync(path.join(folder, 'real.wav'), 'x');
    symlinkSync('real.wav', path.join(folder, 'link.wav'));
    mkdirSync(path.join(folder, 'audio'));
    writeFileSync(path.join(folder, 'audio', 'deep.wav'), 'yy');
    symlinkSync('audio', path.join(folder, 'linked-audio'));
    return folder;
  };

  it.each(['link.wav', 'linked-audio/deep.wav'])('are not reached through links: %s', async (name) => {
    const files = await openFolder(linkedFolder());

    await expect(files.open(name)).rejects.toMatchObject({
      name: 'BenchmarkInvalid',
      message: expect.stringContaining('link'),
    });
  });

  it('may be links where the user named the folder', async () => {
    const files = await openFolder(linkedFolder(), { followsLinks: true });

    const listed = await files.list();

    expect(listed.map(({ name, bytes }) => [name, bytes])).toEqual([
      ['audio/deep.wav', 2],
      ['link.wav', 1],
      ['real.wav', 1],
    ]);
  });

  it('lists no links otherwise', async () => {
    const files = await openFolder(linkedFolder());

    const listed = await files.list();

    expect(listed.map(({ name }) => name)).toEqual(['audio/deep.wav', 'real.wav']);
  });
});
