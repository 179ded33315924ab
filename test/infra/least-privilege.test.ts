import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { acknowledgements } from '../../infra/checks/acknowledgements.ts';
import { readLanes } from '../../infra/config/lanes.ts';
import { keys } from '../../shared/keys.ts';
import {
  actionsOf,
  mayList,
  mayTouch,
  resourcesOf,
  type Statement,
  type Synthesized,
  statementsOf,
  synthesize,
} from './synthesized.ts';

const config = readLanes(path.join(import.meta.dirname, '..', '..', 'infra', 'config', 'lanes.json'));
const hash = '0123456789abcdef0123456789abcdef';
const run = 'demo-0123456789ab';
/** One key of every kind that the system has. */
const everyKey = {
  answers: keys.benchmark.answers('b1', 'answers.jsonl'),
  inputs: keys.benchmark.input('b1', 'inputs.jsonl'),
  recording: keys.benchmark.recording('b1', hash),
  media: keys.media(hash, 'mp4'),
  derived: keys.derived.record(hash, 'wav-16khz-mono-r1'),
  derivedFile: keys.derived.file(hash, 'wav-16khz-mono-r1', '000001-a.wav'),
  contract: keys.run.contract(run),
  settings: keys.run.settings(run),
  planSummary: keys.run.planSummary(run),
  planGroup: keys.run.group(run, 'g1'),
  planGroups: keys.run.laneGroups(run, 'gpt'),
  planClips: keys.run.clips(run),
  planPendingClips: keys.run.pendingClips(run),
  clipMapResult: `${keys.run.clipMapResults(run)}/x/manifest.json`,
  planPending: keys.run.lanePending(run, 'gpt'),
  planViews: keys.run.laneViews(run, 'gpt'),
  reply: keys.lane.request(run, 'gpt', 'r1'),
  failure: keys.lane.failure(run, 'gpt', 'r1'),
  attempts: keys.lane.attempts(run, 'gpt', 'r1'),
  stopped: keys.lane.stopped(run, 'gpt'),
  laneViews: keys.lane.views(run, 'gpt'),
  laneCosts: keys.lane.costs(run, 'gpt'),
  mapResult: `${keys.lane.mapResults(run, 'gpt')}/x/manifest.json`,
  judge: keys.judging.judge(run),
  chunks: keys.judging.chunks(run),
  chunk: keys.judging.chunk(run, 'c1'),
  chunkAttempts: keys.judging.chunkAttempts(run, 'c1'),
  judgeBatch: keys.judging.batch(run, '000001'),
  ruleScores: keys.judging.ruleScores(run, 'gpt'),
  judgingSummary: keys.judging.summary(run),
  imported: keys.judging.imported(run),
  review: keys.reviews.review('judge-1', hash),
  scores: keys.run.scores(run, 'gpt'),
  report: keys.run.report(run, 'summary.json'),
};
type KeyKind = keyof typeof everyKey;

let app: Synthesized;
beforeAll(() => {
  app = synthesize();
});

const roleOf = (stage: string): Statement[] => {
  const [, { Properties }] = app.named(
    'Sweep',
    'AWS::Lambda::Function',
    'FunctionName',
    `turnsweep-${stage}`,
  );
  return statementsOf(app, 'Sweep', Properties.Role['Fn::GetAtt'][0]);
};
const gpuRole = (): Statement[] => {
  const roles = Object.keys(app.resources('Gpu', 'AWS::IAM::Role')).filter((id) => id.includes('JobRole'));
  expect(roles).toHaveLength(1);
  return statementsOf(app, 'Gpu', roles[0]!);
};
const kinds = (statements: readonly Statement[], action: string): KeyKind[] =>
  (Object.keys(everyKey) as KeyKind[])
    .filter((kind) => mayTouch(statements, action, everyKey[kind]))
    .toSorted();

describe('blindness', () => {
  it.each([
    ['the function', () => roleOf('generate-turns')],
    ['the worker on a GPU', gpuRole],
  ])('%s that calls evaluated models reads no answer, no review and no score', (_, role) => {
    const statements = role();

    expect(kinds(statements, 's3:GetObject')).toEqual(
      (
        [
          'attempts',
          'contract',
          'derived',
          'derivedFile',
          'failure',
          'laneCosts',
          'laneViews',
          'mapResult',
          'media',
          'planGroup',
          'recording',
          'reply',
          'settings',
          'stopped',
        ] as KeyKind[]
      ).toSorted(),
    );
    expect(kinds(statements, 's3:PutObject')).toEqual(['attempts', 'failure', 'reply', 'stopped']);
    expect(kinds(statements, 's3:DeleteObject')).toEqual([]);
    for (const prefix of [
      '',
      'benchmarks/',
      'benchmarks/b1/answers/',
      'reviews/',
      'reviews/judge-1/',
      `runs/${run}/`,
    ]) {
      expect(mayList(statements, prefix)).toBe(false);
    }
  });

  it('the function that calls the judge reads review items only and writes reviews and its attempts', () => {
    const statements = roleOf('judge-answers');

    expect(kinds(statements, 's3:GetObject')).toEqual(['chunk', 'chunkAttempts', 'judge']);
    expect(kinds(statements, 's3:PutObject')).toEqual(['chunkAttempts', 'review']);
    expect(kinds(statements, 's3:DeleteObject')).toEqual([]);
    for (const prefix of [
      '',
      'benchmarks/',
      'runs/',
      `runs/${run}/lanes/`,
      `runs/${run}/plan/`,
      'reviews/',
    ]) {
      expect(mayList(statements, prefix)).toBe(false);
    }
  });

  it('the functions that talk to its batch interface read no more, and only the one that collects writes reviews', () => {
    const [submit, poll] = [roleOf('submit-judge-batch'), roleOf('poll-judge-batch')];

    expect(kinds(submit, 's3:GetObject')).toEqual([
      'chunk',
      'chunkAttempts',
      'chunks',
      'judge',
      'judgeBatch',
    ]);
    expect(kinds(submit, 's3:PutObject')).toEqual(['judgeBatch']);
    expect(kinds(poll, 's3:GetObject')).toEqual(['chunk', 'chunkAttempts', 'judge', 'judgeBatch']);
    expect(kinds(poll, 's3:PutObject')).toEqual(['chunkAttempts', 'judgeBatch', 'review']);
    for (const statements of [submit, poll]) {
      expect(kinds(statements, 's3:DeleteObject')).toEqual([]);
      for (const prefix of [
        '',
        'benchmarks/',
        'runs/',
        `runs/${run}/lanes/`,
        `runs/${run}/judging/`,
        'reviews/',
      ]) {
        expect(mayList(statements, prefix)).toBe(false);
      }
    }
  });

  it.each(['judge-answers', 'submit-judge-batch', 'poll-judge-batch'])(
    'the role of %s cannot look up what a lane has spent',
    (stage) => {
      const denials = roleOf(stage).filter(({ Effect }) => Effect === 'Deny');

      expect(denials).toHaveLength(1);
      expect(actionsOf(denials[0]!)).toContain('dynamodb:GetItem');
      expect(denials[0]!.Condition).toEqual({
        'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': ['*run/*/lane/*'] },
      });
    },
  );

  it('nobody but the planner writes plans, and only planners delete anything', () => {
    const stages = [
      'plan-sweep',
      'generate-turns',
      'exclude-request',
      'plan-judging',
      'judge-answers',
      'submit-judge-batch',
      'poll-judge-batch',
      'aggregate-run',
      'publish-report',
      'start-sweep',
    ];
    const plan: KeyKind[] = [
      'planClips',
      'planGroup',
      'planGroups',
      'planPending',
      'planPendingClips',
      'planSummary',
      'planViews',
    ];
    const writers = stages.filter((stage) =>
      kinds(roleOf(stage), 's3:PutObject').some((kind) => plan.includes(kind)),
    );
    const deleters = stages.filter((stage) => kinds(roleOf(stage), 's3:DeleteObject').length > 0);

    expect(writers).toEqual(['plan-sweep']);
    expect(kinds(roleOf('plan-sweep'), 's3:PutObject')).toEqual(expect.arrayContaining(plan));
    expect(deleters).toEqual(['plan-sweep', 'plan-judging']);
    for (const id of Object.keys(app.resources('Sweep', 'AWS::IAM::Role')).filter((name) =>
      name.includes('Machine'),
    )) {
      expect(
        kinds(statementsOf(app, 'Sweep', id), 's3:PutObject').filter((kind) => plan.includes(kind)),
      ).toEqual([]);
    }
  });

  it('the function that makes clips knows nothing but clips', () => {
    const statements = roleOf('prepare-media');

    expect(kinds(statements, 's3:GetObject')).toEqual(['derived', 'derivedFile', 'media']);
    expect(kinds(statements, 's3:PutObject')).toEqual(['derived', 'derivedFile']);
    expect(kinds(statements, 's3:DeleteObject')).toEqual([]);
    for (const prefix of ['', 'benchmarks/', 'runs/', 'reviews/'])
      expect(mayList(statements, prefix)).toBe(false);
  });

  it('only the planner of judging reads answers', () => {
    const readers = [
      'plan-sweep',
      'generate-turns',
      'plan-judging',
      'judge-answers',
      'submit-judge-batch',
      'poll-judge-batch',
      'aggregate-run',
    ].filter((stage) => mayTouch(roleOf(stage), 's3:GetObject', everyKey.answers));

    expect(readers).toEqual(['plan-judging']);
  });
});

describe('roles', () => {
  it('name every action in full', () => {
    const wild = ['Sweep', 'Gpu', 'Schedule'].flatMap((stack) =>
      Object.keys(app.resources(stack, 'AWS::IAM::Role')).flatMap((id) =>
        statementsOf(app, stack, id)
          .flatMap(actionsOf)
          .filter((action) => action.includes('*'))
          .map((action) => `${id}: ${action}`),
      ),
    );

    expect(wild).toEqual([]);
  });

  it('have no wildcard resource that is not acknowledged with a reason', () => {
    const known = acknowledgements('turnsweep', config).map(({ id }) => id);
    const unknown = ['Sweep', 'Gpu', 'Schedule'].flatMap((stack) =>
      Object.keys(app.resources(stack, 'AWS::IAM::Role')).flatMap((role) =>
        statementsOf(app, stack, role)
          .flatMap(resourcesOf)
          .filter((resource) => resource.includes('*'))
          .map((resource) => resource.replace(/^<(turnsweep-data:[^>]*)>/, '$1'))
          .filter((resource) => !known.includes(`AwsSolutions::AwsSolutions-IAM5[Resource::${resource}]`)),
      ),
    );

    expect(unknown).toEqual([]);
    expect(acknowledgements('turnsweep', config).every(({ reason }) => reason.length > 20)).toBe(true);
  });

  it('read only the keys of the providers that they call', () => {
    const secretsOf = (stage: string) =>
      roleOf(stage)
        .filter((statement) => actionsOf(statement).some((action) => action.startsWith('secretsmanager:')))
        .flatMap(resourcesOf);

    expect(secretsOf('generate-turns')).toHaveLength(2);
    for (const stage of ['judge-answers', 'submit-judge-batch', 'poll-judge-batch']) {
      expect(secretsOf(stage)).toEqual(secretsOf('judge-answers'));
      expect(secretsOf(stage)).toHaveLength(1);
    }
    for (const stage of [
      'plan-sweep',
      'plan-judging',
      'exclude-request',
      'aggregate-run',
      'publish-report',
    ]) {
      expect(secretsOf(stage)).toEqual([]);
    }
  });

  it('may answer task tokens only where the workflow waits for them', () => {
    const answerers = [
      'plan-sweep',
      'generate-turns',
      'exclude-request',
      'plan-judging',
      'judge-answers',
      'submit-judge-batch',
      'poll-judge-batch',
    ].filter((stage) =>
      roleOf(stage).some((statement) => actionsOf(statement).includes('states:SendTaskSuccess')),
    );

    expect(answerers).toEqual(['generate-turns', 'judge-answers']);
  });
});
