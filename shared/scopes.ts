/**
 * What each stage may read and write, as key prefixes in which `*` stands for one path segment. The local
 * home enforces it; the roles on AWS are made from it. This is where blindness is decided: the stage that
 * calls evaluated models reads no answers and no reviews; the stage that calls the judge reads review items
 * only, nothing that names a model, a condition or a task.
 */
export interface Scope {
  read: readonly string[];
  write: readonly string[];
}

export const scopes = {
  'plan-sweep': {
    read: [
      'runs/*/contract.json',
      'runs/*/settings.json',
      'runs/*/plan/',
      'runs/*/lanes/',
      'benchmarks/*/inputs/',
      'derived/',
    ],
    write: ['runs/*/plan/', 'runs/*/lanes/'],
  },
  /** Knows clips by their content only: nothing of runs, tasks or models. */
  'prepare-media': { read: ['media/', 'derived/'], write: ['derived/'] },
  'generate-turns': {
    read: [
      'runs/*/contract.json',
      'runs/*/settings.json',
      'runs/*/plan/groups/',
      'runs/*/lanes/',
      'benchmarks/*/recordings/',
      'media/',
      'derived/',
    ],
    write: [
      'runs/*/lanes/*/requests/',
      'runs/*/lanes/*/failures/',
      'runs/*/lanes/*/attempts/',
      'runs/*/lanes/*/stopped.json',
    ],
  },
  'exclude-request': {
    read: ['runs/*/plan/groups/', 'runs/*/lanes/'],
    write: ['runs/*/lanes/*/failures/'],
  },
  'stop-lane': { read: ['runs/*/lanes/*/stopped.json'], write: ['runs/*/lanes/*/stopped.json'] },
  'plan-judging': {
    read: ['runs/', 'benchmarks/', 'reviews/'],
    write: ['runs/*/judging/', 'runs/*/lanes/*/views.jsonl', 'runs/*/lanes/*/costs.json'],
  },
  'judge-answers': {
    read: [
      'runs/*/judging/judge.json',
      'runs/*/judging/stopped.json',
      'runs/*/judging/chunks/',
      'runs/*/judging/attempts/',
    ],
    write: ['runs/*/judging/stopped.json', 'runs/*/judging/attempts/', 'reviews/'],
  },
  'submit-judge-batch': {
    read: [
      'runs/*/judging/judge.json',
      'runs/*/judging/chunks.jsonl',
      'runs/*/judging/chunks/',
      'runs/*/judging/attempts/',
      'runs/*/judging/batch/',
    ],
    write: ['runs/*/judging/stopped.json', 'runs/*/judging/batch/'],
  },
  'poll-judge-batch': {
    read: [
      'runs/*/judging/judge.json',
      'runs/*/judging/chunks/',
      'runs/*/judging/attempts/',
      'runs/*/judging/batch/',
    ],
    write: ['runs/*/judging/stopped.json', 'runs/*/judging/attempts/', 'runs/*/judging/batch/', 'reviews/'],
  },
  'aggregate-run': {
    read: ['runs/', 'benchmarks/*/inputs/', 'reviews/'],
    write: ['runs/*/scores/', 'runs/*/report/'],
  },
  'publish-report': {
    read: ['runs/*/report/'],
    write: ['runs/*/report/'],
  },
  /** Starts a stored run again under another name, see the schedules. */
  'start-sweep': {
    read: ['runs/*/contract.json', 'runs/*/settings.json', 'runs/*/judging/imported.jsonl'],
    write: ['runs/*/contract.json', 'runs/*/settings.json', 'runs/*/judging/imported.jsonl'],
  },
} as const satisfies Record<string, Scope>;

export type StageName = keyof typeof scopes;
