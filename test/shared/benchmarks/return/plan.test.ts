import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byCodePoint } from '../../../../shared/benchmarks/return/code-point-order.ts';
import type { View } from '../../../../shared/benchmarks/return/plan.ts';
import {
  distinctRequests,
  exportOrder,
  groupViews,
  laneTasks,
  planViews,
  requestDepths,
  reviewItemsAtMost,
  toFrozenRequest,
} from '../../../../shared/benchmarks/return/plan.ts';
import { readRelease } from '../../../../shared/benchmarks/return/read.ts';
import type { InputRow } from '../../../../shared/benchmarks/return/release-format.ts';
import { buildRelease } from '../../../support/return-release-builder.ts';
import { releaseTexts } from './release-files.ts';

const released = resolve(import.meta.dirname, '../../../../../shared/reference/return-release');
const both = ['openqa', 'mcq'] as const;

const inputsOf = (rows: InputRow[]) => new Map(rows.map((row) => [row.request_id, row]));

const aView = (viewId: string, ...requestIds: string[]): View => ({
  viewId,
  taskId: viewId,
  interface: 'openqa',
  targetRequestIds: [requestIds[0]!, requestIds.at(-1)!],
  requestIds,
});

describe('views', () => {
  it('run the control, the native turns in order, then the history', () => {
    const { rows } = buildRelease({ roots: 1 });
    const task = rows.tasks.find(({ task_id }) => task_id === 'root-001-long-rebind')!;

    const views = planViews([task], ['mcq', 'openqa']);

    expect(views[0]).toEqual({
      viewId: 'root-001::evidence::long::rebind::mcq::view::mcq',
      taskId: 'root-001-long-rebind',
      interface: 'mcq',
      targetRequestIds: ['root-001::evidence::C::mcq', 'root-001::evidence::long::rebind::mcq'],
      requestIds: [
        'root-001::evidence::C::mcq',
        'root-001::evidence::long::N0',
        'root-001::evidence::long::N1',
        'root-001::evidence::long::N2',
        'root-001::evidence::long::N3',
        'root-001::evidence::long::rebind::mcq',
      ],
    });
    expect(views.map((view) => view.interface)).toEqual(['mcq', 'openqa']);
  });

  it('of a built release come to what its construction says', () => {
    // A root: 2 evidence controls, 5 native turns, 8 histories; 2 × (2 controls, 4 histories) and 4 + 16 native turns.
    const { rows } = buildRelease({ roots: 3 });

    const views = planViews(rows.tasks, both);

    expect(views).toHaveLength(3 * 16);
    expect(distinctRequests(views)).toHaveLength(3 * 47);
    expect(reviewItemsAtMost(views)).toBe(3 * 22);
    expect(groupViews(views)).toHaveLength(3 * 5);
    expect(laneTasks(rows.tasks, ['V'])).toHaveLength(16);
    expect(laneTasks(rows.tasks, ['A'])).toHaveLength(8);
    expect(laneTasks(rows.tasks, ['V', 'A'])).toEqual(rows.tasks);
  });
});

describe('groups', () => {
  it('are joined over chains of shared requests and ordered by their first view', () => {
    const views = [aView('b', 'r1', 'r2'), aView('c', 'r3', 'r4'), aView('x', 'r5'), aView('a', 'r2', 'r9')];

    const groups = groupViews(views);

    // SHA-256 of "a\nb", "c" and "x".
    expect(
      groups.map(({ groupId, views: members }) => [groupId, members.map((view) => view.viewId)]),
    ).toEqual([
      ['g-7e18f737311b2dc3', ['b', 'a']],
      ['g-2e7d2c03a9507ae2', ['c']],
      ['g-2d711642b726b044', ['x']],
    ]);
  });

  it('are one when a late view bridges two', () => {
    const views = [aView('v1', 'a'), aView('v2', 'b'), aView('v3', 'c'), aView('v4', 'c', 'b', 'a')];

    const groups = groupViews(views);

    expect(groups.map((group) => group.views.map((view) => view.viewId))).toEqual([['v1', 'v2', 'v3', 'v4']]);
  });

  it('never share a request, hold every view once and keep the order', () => {
    const someViews = fc
      .array(fc.uniqueArray(fc.nat(30), { minLength: 1, maxLength: 3 }), { maxLength: 30 })
      .map((lists) => lists.map((list, index) => aView(`v${index}`, ...list.map((id) => `r${id}`))));

    fc.assert(
      fc.property(someViews, (views) => {
        const groups = groupViews(views);

        const owners = new Map<string, string>();
        for (const group of groups) {
          for (const requestId of distinctRequests(group.views)) {
            expect(owners.has(requestId)).toBe(false);
            owners.set(requestId, group.groupId);
          }
          const positions = group.views.map((view) => views.indexOf(view));
          expect(positions).toEqual(positions.toSorted((a, b) => a - b));
        }
        expect(groups.flatMap((group) => group.views)).toHaveLength(views.length);
        const firsts = groups.map((group) => views.indexOf(group.views[0]!));
        expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
      }),
    );
  });

  it('plan a benchmark of 5,000 tasks', () => {
    const { rows } = buildRelease({ roots: 625 });

    const views = planViews(rows.tasks, both);

    expect(views).toHaveLength(10_000);
    expect(groupViews(views)).toHaveLength(625 * 5);
    expect(distinctRequests(views)).toHaveLength(625 * 47);
  });
});

describe('order and depth', () => {
  const inputs = inputsOf(buildRelease({ roots: 1 }).rows.inputs);

  it('put final requests by id, each behind its native turns', () => {
    const order = exportOrder(
      [
        'root-001::task::short::C::mcq',
        'root-001::evidence::short::N0',
        'root-001::evidence::short::retrieve::openqa',
        'root-001::evidence::short::retrieve::mcq',
        'root-001::evidence::C::openqa',
        'root-001::task::short::revise::mcq::N0',
      ],
      inputs,
    );

    expect(order).toEqual([
      'root-001::evidence::C::openqa',
      'root-001::evidence::short::N0',
      'root-001::evidence::short::retrieve::mcq',
      'root-001::evidence::short::retrieve::openqa',
      'root-001::task::short::C::mcq',
      'root-001::task::short::revise::mcq::N0',
    ]);
  });

  it('leave out requests that were not asked for', () => {
    expect(exportOrder(['root-001::evidence::long::rebind::mcq'], inputs)).toEqual([
      'root-001::evidence::long::rebind::mcq',
    ]);
  });

  it('count the longest chain of bindings', () => {
    const depths = requestDepths(
      ['root-001::evidence::long::rebind::mcq', 'root-001::evidence::long::N2', 'root-001::evidence::C::mcq'],
      inputs,
    );

    expect([...depths]).toEqual([
      ['root-001::evidence::long::rebind::mcq', 4],
      ['root-001::evidence::long::N2', 2],
      ['root-001::evidence::C::mcq', 0],
    ]);
  });

  it('sort by code points, as Python does', () => {
    // Python: sorted(['\uffee', '\U0001d54f', 'a', 'ab', '']) == ['', 'a', 'ab', '\uffee', '\U0001d54f']
    expect(['\uffee', '\u{1d54f}', 'ab', 'a', ''].sort(byCodePoint)).toEqual([
      '',
      'a',
      'ab',
      '\uffee',
      '\u{1d54f}',
    ]);
  });

  it('agree with a comparison of code point lists', () => {
    const text = fc.string({ unit: 'binary' });
    const points = (value: string) => Array.from(value, (character) => character.codePointAt(0)!);
    const bySlowList = (a: string, b: string): number => {
      const [left, right] = [points(a), points(b)];
      const at = left.findIndex((point, index) => point !== right[index]);
      return at === -1 ? left.length - right.length : left[at]! - (right[at] ?? -1);
    };

    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(byCodePoint(a, b))).toBe(Math.sign(bySlowList(a, b)));
      }),
    );
  });
});

describe('frozen requests', () => {
  it('keep the order of parts and name bound replies', () => {
    const row = inputsOf(buildRelease({ roots: 1 }).rows.inputs).get(
      'root-001::task::short::preserve::openqa::H0',
    )!;

    const frozen = toFrozenRequest(row);

    expect(frozen).toEqual({
      requestId: 'root-001::task::short::preserve::openqa::H0',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'audio', path: 'data/media/root-001-past-0.wav' },
            { type: 'video', path: 'data/media/root-001-past-0.mp4' },
            { type: 'text', text: 'Which tool lies on the bench?' },
          ],
        },
        { role: 'assistant', replyOf: 'root-001::task::short::preserve::openqa::N0' },
        {
          role: 'user',
          content: [
            { type: 'audio', path: 'data/media/root-001-target.wav' },
            { type: 'video', path: 'data/media/root-001-target.mp4' },
            { type: 'text', text: 'Answer the first question again for this clip. Answer briefly.' },
          ],
        },
      ],
    });
  });
});

describe.runIf(existsSync(released))('the real release (needs ../shared/reference/return-release)', () => {
  const read = () =>
    readRelease(
      releaseTexts(
        Object.fromEntries(
          ['tasks', 'inputs', 'answers'].map((name) => [
            `data/tasks/${name}.jsonl`,
            readFileSync(`${released}/data/tasks/${name}.jsonl`, 'utf8'),
          ]),
        ),
      ),
    );

  // Counted by an independent Python script over the same files.
  it.each([
    [['V', 'A'], both, 160, 490, 240, 60],
    [['V'], both, 80, 245, 120, 30],
    [['A'], both, 80, 245, 120, 30],
    [['V', 'A'], ['openqa'], 80, 270, 120, 40],
    [['V', 'A'], ['mcq'], 80, 270, 120, 40],
    [['V'], ['mcq'], 40, 135, 60, 20],
  ] as const)(
    'plans a lane of %j with %j',
    async (modalities, interfaces, views, requests, finals, groups) => {
      const release = await read();

      const planned = planViews(laneTasks(release.tasks, modalities), interfaces);

      expect(planned).toHaveLength(views);
      expect(distinctRequests(planned)).toHaveLength(requests);
      expect(reviewItemsAtMost(planned)).toBe(finals);
      expect(groupViews(planned)).toHaveLength(groups);
    },
  );

  it('has the groups and group ids that the script found', async () => {
    const release = await read();

    const groups = groupViews(planViews(release.tasks, both));

    expect(groups[0]!.groupId).toBe('g-b3d9cbd863af289f');
    expect(groups.at(-1)!.groupId).toBe('g-8ef28b963baabb0c');
    expect(groups.filter((group) => group.views.length === 4)).toHaveLength(20);
    expect(groups.filter((group) => group.views.length === 2)).toHaveLength(40);
  });

  it('is at most four replies deep', async () => {
    const { inputs } = await read();

    const depths = [...requestDepths(inputs.keys(), inputs).values()];

    expect(depths.filter((depth) => depth === 4)).toHaveLength(80);
    expect(Math.max(...depths)).toBe(4);
  });

  it.each(['qwen38_api', 'qwen3_vl', 'stepaudio_api'])('was recorded in export order by %s', async (run) => {
    const { inputs } = await read();
    const recorded = readFileSync(`${released}/examples/current_validation/${run}/predictions.jsonl`, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).request_id as string);

    const order = exportOrder(recorded.toSorted(), inputs);

    expect(order).toEqual(recorded);
  });
});
