import { describe, expect, it } from 'vitest';
import { parseMediaDigests } from '../../../../shared/benchmarks/return/media-digests.ts';
import {
  mediaDigestsFile,
  predictionRowSchema,
} from '../../../../shared/benchmarks/return/release-format.ts';

const digest = (character: string) => character.repeat(64);

const parse = (text: string) => {
  const { sha256ByPath, problems } = parseMediaDigests(mediaDigestsFile, text);
  return {
    digests: Object.fromEntries(sha256ByPath),
    problems: problems.map(({ line, message }) => [line, message]),
  };
};

describe('media digests', () => {
  it('come as lines of sha256sum, text or binary mode', () => {
    const text = `${digest('a')}  data/media/one clip.mp4\n${digest('B')} *data/media/two.wav\r\n\n`;

    expect(parse(text)).toEqual({
      digests: { 'data/media/one clip.mp4': digest('a'), 'data/media/two.wav': digest('b') },
      problems: [],
    });
  });

  it('come as a JSON array', () => {
    const text = JSON.stringify([
      { path: 'a.mp4', sha256: digest('1') },
      { video: 'b.mp4', sha256: digest('2'), bytes: 7 },
      { audio: 'b.wav', sha256: digest('3') },
    ]);

    expect(parse(text)).toEqual({
      digests: { 'a.mp4': digest('1'), 'b.mp4': digest('2'), 'b.wav': digest('3') },
      problems: [],
    });
  });

  it('are refused line by line where they are malformed', () => {
    const text = [
      `${digest('a')}  ../secret`,
      `${digest('a').slice(1)}  short.mp4`,
      `${digest('a')}  twice.mp4`,
      `${digest('b')}  twice.mp4`,
      `${digest('a')}  twice.mp4`,
    ].join('\n');

    expect(parse(text)).toEqual({
      digests: { 'twice.mp4': digest('a') },
      problems: [
        [1, '"../secret" is a path with ".."; media paths are relative to the release'],
        [2, `"${digest('a').slice(1)}  short.mp4" is not "<sha256>  <path>"`],
        [4, '"twice.mp4" has two digests'],
      ],
    });
  });

  it.each([
    [
      '[{"path":"a","video":"b","sha256":"@"}]',
      'an entry has a sha256 and exactly one of path, video, audio',
    ],
    ['[{"sha256":"@"}]', 'an entry has a sha256 and exactly one of path, video, audio'],
    ['[{"path":"/a","sha256":"@"}]', 'is an absolute path'],
    ['[{"path":"a","sha256":"12"}]', 'is not a SHA-256 in hexadecimal'],
    ['{"path":"a"}', 'expected array'],
    ['[', 'not valid JSON'],
  ])('are refused as JSON: %s', (text, message) => {
    const { digests, problems } = parse(text.replaceAll('@', digest('c')));

    expect(digests).toEqual({});
    expect(problems).toHaveLength(1);
    expect(problems[0]![1]).toContain(message);
  });
});

describe('recorded predictions', () => {
  it('keep keys that are not named', () => {
    const row = { request_id: 'r', raw_text: 'B', status: 'ok', error: null, usage: { prompt_tokens: 3 } };

    expect(predictionRowSchema.parse(row)).toEqual(row);
  });

  it.each([
    [{ status: 'ok' }],
    [{ request_id: 'r', raw_text: 1, status: 'ok' }],
    [{ request_id: 'r', raw_text: 'x', status: 'fine' }],
  ])('are refused: %j', (row) => {
    expect(predictionRowSchema.safeParse(row).success).toBe(false);
  });
});
