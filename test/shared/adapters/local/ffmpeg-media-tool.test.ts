import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createFfmpegMediaTool } from '../../../../shared/adapters/local/ffmpeg-media-tool.ts';
import { temporaryFolder } from '../../../support/command-line.ts';

/** A tool whose programs are shell scripts: what they do to us, whatever media are. */
const toolOf = (scripts: { ffmpeg?: string; ffprobe?: string }, deadlineSeconds = 60) => {
  const folder = temporaryFolder();
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(path.join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(path.join(folder, name), 0o755);
  }
  const ffmpeg = path.join(folder, 'ffmpeg');
  return createFfmpegMediaTool({ ffmpeg, remedy: 'install ffmpeg', deadlineSeconds });
};
const probeWith = async (script: string, deadlineSeconds?: number) => {
  const room = await toolOf({ ffprobe: script }, deadlineSeconds).open();
  try {
    return await room.probe('original.mp4');
  } finally {
    await room.close();
  }
};

describe('the programs', () => {
  it('are asked for with a remedy where they are missing', async () => {
    const room = await toolOf({}).open();

    await expect(room.probe('original.mp4')).rejects.toMatchObject({
      name: 'UsageWrong',
      message: expect.stringMatching(/^ffprobe is missing \(.*\); install ffmpeg$/),
    });
    await room.close();
  });

  it('say what they are', async () => {
    const tool = toolOf({ ffmpeg: 'echo "ffmpeg version 9.9-test Copyright (c) somebody"' });

    expect(await tool.version()).toBe('ffmpeg version 9.9-test');
  });

  it.each([
    ['refuse a file', 'echo "[mov @ 0x55d0c0ffee] moov atom not found" >&2; exit 1', 'MediaUnusable'],
    ['find no room', 'echo "av_write: No space left on device" >&2; exit 1', 'MediaToolFailed'],
    ['lack an encoder', `echo "Unknown encoder 'libx264'" >&2; exit 1`, 'MediaToolFailed'],
    ['are interrupted', 'exit 255', 'MediaToolFailed'],
    ['are killed', 'kill -9 $$', 'MediaToolFailed'],
  ])('that %s tell the fault of a file from that of the machine', async (_, script, name) => {
    await expect(probeWith(script)).rejects.toMatchObject({ name });
  });

  it('give their last words as the reason, without addresses', async () => {
    await expect(
      probeWith('echo first >&2; echo "[mov @ 0x55d0c0ffee] moov atom not found" >&2; exit 1'),
    ).rejects.toThrow('ffprobe cannot read it: [mov] moov atom not found');
  });

  it('that do not end are ended, and the file is at fault', async () => {
    await expect(probeWith('exec sleep 600', 0.05)).rejects.toMatchObject({
      name: 'MediaUnusable',
      message: 'ffprobe took longer than 0.05 s',
    });
  });

  it('see no key of a provider', async () => {
    vi.stubEnv('OMNI_API_KEY', 'a secret key');
    onTestFinished(() => void vi.unstubAllEnvs());

    await expect(probeWith('env >&2; echo "end $OMNI_API_KEY" >&2; exit 1')).rejects.toThrow(
      /cannot read it: end$/,
    );
  });
});

describe('a workspace', () => {
  it('gives the files that a conversion has made, and leaves nothing behind', async () => {
    const folder = temporaryFolder();
    const tool = toolOf({ ffmpeg: 'echo b > made-2.jpg; echo a > made-1.jpg' });
    vi.stubEnv('TMPDIR', folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const room = await tool.open();
    expect(readdirSync(folder)).toHaveLength(1);
    await room.put('original.mp4', Buffer.from('x'));

    const made = await room.make({
      form: 'frames',
      source: 'original.mp4',
      picture: { index: 0, width: 2, height: 2, rate: '2', samples: true, copies: false },
      sound: null,
    });
    const contents = await Promise.all(made.map(async (name) => String(await room.read(name))));
    await room.close();

    expect(made).toEqual(['made-1.jpg', 'made-2.jpg']);
    expect(contents).toEqual(['a\n', 'b\n']);
    expect(readdirSync(folder)).toEqual([]);
  });
});
