import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '..', '..');

/**
 * A provider that is an AWS service speaks through the SDK, which signs its calls and reads its event stream. One file
 * may import it; it is loaded by the first call, so that nobody else pays for it.
 */
const sdkOfBedrock = 'shared/providers/bedrock/converse-sdk.ts';

/** Rooms and what each may import besides itself. `shared` files of one place each may be used by all. */
const mayImport: Record<string, readonly string[]> = {
  'shared/(root)': [],
  'shared/domain': ['shared/(root)', 'shared/contracts'],
  'shared/contracts': ['shared/(root)', 'shared/domain'],
  /** A data set is unpacked through the port of files. */
  'shared/benchmarks': ['shared/(root)', 'shared/domain', 'shared/contracts', 'shared/ports'],
  'shared/pricing': ['shared/(root)', 'shared/domain', 'shared/contracts'],
  'shared/ports': ['shared/(root)', 'shared/domain', 'shared/contracts'],
  'shared/providers': ['shared/(root)', 'shared/domain', 'shared/contracts', 'shared/ports'],
  'shared/adapters': ['shared/(root)', 'shared/domain', 'shared/contracts', 'shared/ports'],
  'shared/stages': [
    'shared/(root)',
    'shared/domain',
    'shared/contracts',
    'shared/ports',
    'shared/benchmarks',
  ],
  /** Puts ports and stages together for AWS, as `local/home.ts` does for one machine. */
  'shared/(wiring)': ['shared'],
  report: [],
  functions: ['shared', 'report'],
  local: ['shared', 'functions'],
  workers: ['shared', 'functions'],
  mock: ['shared/(root)', 'shared/domain', 'shared/ports', 'shared/adapters'],
  cli: ['shared', 'functions', 'local', 'mock', 'package.json'],
};

const roomOf = (file: string): string => {
  if (file === 'shared/adapters/aws/stage-environment.ts') return 'shared/(wiring)';
  const [first, second, ...rest] = file.split('/');
  if (first !== 'shared') return first!;
  return rest.length === 0 ? 'shared/(root)' : `shared/${second}`;
};

const filesBelow = (folder: string): string[] =>
  readdirSync(path.join(root, folder)).flatMap((name) => {
    const file = `${folder}/${name}`;
    if (statSync(path.join(root, file)).isDirectory()) return filesBelow(file);
    return file.endsWith('.ts') ? [file] : [];
  });

const importsOf = (file: string): string[] =>
  [...readFileSync(path.join(root, file), 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)].map(
    (match) => match[1]!,
  );

const sources = ['shared', 'functions', 'local', 'workers', 'cli', 'report', 'mock'].flatMap(filesBelow);

describe('imports', () => {
  it('go only in the direction of the architecture', () => {
    const breaches: string[] = [];
    for (const file of sources) {
      const room = roomOf(file);
      for (const target of importsOf(file).filter((name) => name.startsWith('.'))) {
        const imported = path.posix.normalize(`${path.posix.dirname(file)}/${target}`);
        const targetRoom = roomOf(imported);
        const allowed = mayImport[room] ?? [];
        const isAllowed =
          targetRoom === room ||
          allowed.some((name) => targetRoom === name || targetRoom.startsWith(`${name}/`));
        if (!isAllowed) breaches.push(`${file} imports ${imported}`);
      }
    }
    expect(sources.length).toBeGreaterThan(60);
    expect(breaches).toEqual([]);
  });

  it('never lead from one stage or one benchmark to another', () => {
    const cells = (file: string) => /^(functions\/[^/]+|shared\/benchmarks\/[^/]+)\//.exec(file)?.[1] ?? null;
    const breaches = sources.flatMap((file) =>
      importsOf(file)
        .filter((name) => name.startsWith('.'))
        .map((name) => path.posix.normalize(`${path.posix.dirname(file)}/${name}`))
        .filter(
          (imported) => cells(file) !== null && cells(imported) !== null && cells(file) !== cells(imported),
        )
        .map((imported) => `${file} imports ${imported}`),
    );
    expect(breaches).toEqual([]);
  });

  it('keep the AWS SDK in its adapters and file access out of pure rooms', () => {
    const breaches = sources.flatMap((file) =>
      importsOf(file)
        .filter(
          (name) =>
            (name.startsWith('@aws-sdk/') &&
              !file.startsWith('shared/adapters/aws/') &&
              file !== sdkOfBedrock) ||
            (/^node:(fs|net|http|https|child_process)/.test(name) &&
              /^(shared\/(domain|contracts|benchmarks|ports|stages)|functions)\//.test(file)),
        )
        .map((name) => `${file} imports ${name}`),
    );
    expect(breaches).toEqual([]);
  });

  it('load the SDK of Bedrock with its first call only', () => {
    const eager = sources.filter((file) =>
      /^import (?!type )[^;]*from '[^']*\/converse-sdk\.ts';/m.test(
        readFileSync(path.join(root, file), 'utf8'),
      ),
    );
    expect(sources).toContain(sdkOfBedrock);
    expect(eager).toEqual([]);
  });

  it("keep the benchmarks' words inside their plug-ins", () => {
    const words = /\b(reground|reconfirm|rebind|preserve|history_side|openqa|mcq)\b/i;
    const breaches = sources
      .filter((file) => !file.startsWith('shared/benchmarks/return/') && !file.startsWith('mock/'))
      .filter((file) => words.test(readFileSync(path.join(root, file), 'utf8')));
    expect(breaches).toEqual([]);
  });
});
