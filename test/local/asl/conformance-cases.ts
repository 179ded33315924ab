import { type Functions, invoke, machineOf, named } from './fixture.ts';

/**
 * What a machine must do, by hand from the Amazon States Language specification (states-language.net) and the Step
 * Functions guide. `alone` says why the peer engine does not take part in a case.
 */
export interface ConformanceCase {
  name: string;
  machine: object;
  input?: unknown;
  expect: { output: unknown } | { error: string };
  /** Made anew for each engine: some of them count. */
  functions?: () => Functions;
  alone?: string;
}

const pass = (fields: object, input: unknown, output: unknown) => ({
  machine: machineOf({ Only: { Type: 'Pass', End: true, ...fields } }),
  input,
  expect: { output },
});

const passError = (fields: object, input: unknown, error: string) => ({
  ...pass(fields, input, null),
  expect: { error },
});

const choose = (rule: object, input: unknown, matches: boolean) => ({
  machine: machineOf({
    Only: { Type: 'Choice', Choices: [{ ...rule, Next: 'Yes' }], Default: 'No' },
    Yes: { Type: 'Pass', Result: 'yes', End: true },
    No: { Type: 'Pass', Result: 'no', End: true },
  }),
  input,
  expect: { output: matches ? 'yes' : 'no' },
});

const fails = (errorName: string) => () => ({
  broken: () => {
    throw named(errorName);
  },
});

const caughtBy = (errors: string[], rest: object = {}) =>
  machineOf({
    Work: invoke('broken', { Catch: [{ ErrorEquals: errors, Next: 'Saved', ...rest }], End: true }),
    Saved: { Type: 'Pass', OutputPath: '$.kept', End: true },
  });

const failsThenWorks = (times: number) => (): Functions => {
  let calls = 0;
  return {
    flaky: () => {
      calls += 1;
      if (calls <= times) throw named('Busy');
      return { calls };
    },
  };
};

const mapOf = (fields: object, states: Record<string, object>, mode?: object) => ({
  Type: 'Map',
  ItemProcessor: { ...(mode === undefined ? {} : { ProcessorConfig: mode }), ...machineOf(states) },
  End: true,
  ...fields,
});

const echo = { Echo: { Type: 'Pass', End: true } };
const distributedMode = { Mode: 'DISTRIBUTED', ExecutionType: 'STANDARD' };

const dataFlow: ConformanceCase[] = [
  { name: 'Pass hands its input on', ...pass({}, { a: 1 }, { a: 1 }) },
  { name: 'Result replaces the input', ...pass({ Result: { b: 2 } }, { a: 1 }, { b: 2 }) },
  {
    name: 'Result under a ResultPath is added',
    ...pass({ Result: 2, ResultPath: '$.b' }, { a: 1 }, { a: 1, b: 2 }),
  },
  {
    name: 'ResultPath creates what is missing on its way',
    ...pass({ Result: 2, ResultPath: '$.b.c.d' }, { a: 1 }, { a: 1, b: { c: { d: 2 } } }),
  },
  {
    name: 'ResultPath overwrites and keeps the neighbours',
    ...pass({ Result: 2, ResultPath: '$.a.b' }, { a: { b: 1, c: 3 } }, { a: { b: 2, c: 3 } }),
  },
  { name: 'ResultPath null drops the result', ...pass({ Result: 2, ResultPath: null }, { a: 1 }, { a: 1 }) },
  {
    name: 'ResultPath replaces an array element',
    ...pass({ Result: 9, ResultPath: '$.list[1]' }, { list: [1, 2, 3] }, { list: [1, 9, 3] }),
  },
  {
    name: 'ResultPath into a string does not fit',
    ...passError({ Result: 2, ResultPath: '$.a.b' }, { a: 'text' }, 'States.ResultPathMatchFailure'),
    alone: 'the peer lets it pass',
  },
  {
    name: 'ResultPath beyond an array does not fit',
    ...passError({ Result: 2, ResultPath: '$.list[3]' }, { list: [1] }, 'States.ResultPathMatchFailure'),
    alone: 'the peer lets it pass',
  },
  { name: 'InputPath narrows', ...pass({ InputPath: '$.a' }, { a: { b: 1 } }, { b: 1 }) },
  { name: 'InputPath null is an empty object', ...pass({ InputPath: null }, { a: 1 }, {}) },
  { name: 'OutputPath narrows', ...pass({ OutputPath: '$.a.b[1]' }, { a: { b: [1, 2] } }, 2) },
  { name: 'OutputPath null is an empty object', ...pass({ OutputPath: null }, { a: 1 }, {}) },
  { name: 'bracket names', ...pass({ InputPath: "$['a b']['c']" }, { 'a b': { c: 5 } }, 5) },
  { name: 'InputPath that misses', ...passError({ InputPath: '$.nope' }, { a: 1 }, 'States.Runtime') },
  { name: 'OutputPath that misses', ...passError({ OutputPath: '$.a.nope' }, { a: 1 }, 'States.Runtime') },
  { name: 'a null value is there', ...pass({ InputPath: '$.a' }, { a: null }, null) },
  {
    name: 'ResultPath joins with the raw input, not with what InputPath left',
    ...pass({ InputPath: '$.a', ResultPath: '$.copy' }, { a: 1, b: 2 }, { a: 1, b: 2, copy: 1 }),
  },
  {
    name: 'Parameters mix constants and paths, at any depth',
    ...pass(
      { Parameters: { fixed: [1, { 'x.$': '$.a' }], deep: { 'y.$': '$.b.c', z: null } } },
      { a: 1, b: { c: [2] } },
      { fixed: [1, { x: 1 }], deep: { y: [2], z: null } },
    ),
  },
  {
    name: 'Parameters with a path that misses',
    ...passError({ Parameters: { 'x.$': '$.nope' } }, {}, 'States.Runtime'),
  },
  {
    name: 'names of object properties of the language are not data',
    ...passError({ Parameters: { 'x.$': '$.constructor' } }, {}, 'States.Runtime'),
  },
  {
    name: 'the length of an array is not data',
    ...passError({ Parameters: { 'x.$': '$.list.length' } }, { list: [1, 2] }, 'States.Runtime'),
    alone: 'the peer reads it',
  },
  {
    name: 'the execution input from the context',
    machine: machineOf({
      First: { Type: 'Pass', Result: 'gone', Next: 'Second' },
      Second: { Type: 'Pass', Parameters: { 'x.$': '$$.Execution.Input.a' }, End: true },
    }),
    input: { a: 4 },
    expect: { output: { x: 4 } },
  },
  {
    name: 'names, times and ids from the context',
    machine: machineOf({
      Only: {
        Type: 'Pass',
        Parameters: {
          'state.$': '$$.State.Name',
          'run.$': '$$.Execution.Name',
          'machine.$': '$$.StateMachine.Name',
          'started.$': '$$.Execution.StartTime',
          'entered.$': '$$.State.EnteredTime',
          'retries.$': '$$.State.RetryCount',
        },
        End: true,
      },
    }),
    expect: {
      output: {
        state: 'Only',
        run: 'case',
        machine: 'main',
        started: '2030-01-01T00:00:00.000Z',
        entered: '2030-01-01T00:00:00.000Z',
        retries: 0,
      },
    },
    alone: 'the peer knows only Execution.Input and StartTime',
  },
  {
    name: 'a shared constant is not changed by later states',
    machine: machineOf({
      Count: { Type: 'Pass', Result: { inner: { n: 0 } }, ResultPath: '$.state', Next: 'Raise' },
      Raise: {
        Type: 'Pass',
        Parameters: { 'n.$': 'States.MathAdd($.state.inner.n, 1)' },
        ResultPath: '$.state.inner',
        Next: 'Again',
      },
      Again: {
        Type: 'Choice',
        Choices: [{ Variable: '$.second', IsPresent: true, Next: 'Out' }],
        Default: 'Mark',
      },
      Mark: { Type: 'Pass', Result: true, ResultPath: '$.second', Next: 'Count' },
      Out: { Type: 'Succeed', OutputPath: '$.state' },
    }),
    expect: { output: { inner: { n: 1 } } },
  },
];

const format = (expression: string, input: unknown, output: unknown) =>
  pass({ Parameters: { 'x.$': expression }, OutputPath: '$.x' }, input, output);
const formatError = (expression: string, input: unknown) =>
  passError({ Parameters: { 'x.$': expression } }, input, 'States.IntrinsicFailure');
const peerErrors = 'the peer reports other errors';

const intrinsics: ConformanceCase[] = [
  {
    name: 'States.Format with every scalar',
    ...format("States.Format('{}|{}|{}|{}', $.s, 1.5, true, null)", { s: 'text' }, 'text|1.5|true|null'),
  },
  {
    name: 'States.Format with a template from the data',
    ...format('States.Format($.t, 7)', { t: 'n={}' }, 'n=7'),
  },
  {
    name: 'States.Format with escaped braces, quotes and backslashes',
    ...format("States.Format('\\{{}\\} it\\'s \\\\', $.a)", { a: 1 }, "{1} it's \\"),
    alone: 'the peer drops every backslash of the result',
  },
  {
    name: 'a value that holds braces is not filled again',
    ...format("States.Format('{}-{}', $.a, $.b)", { a: '{}', b: '$&' }, '{}-$&'),
  },
  {
    name: 'States.Format with an object',
    ...formatError("States.Format('{}', $.o)", { o: {} }),
    alone: peerErrors,
  },
  {
    name: 'States.Format with a template of another count',
    ...formatError('States.Format($.t, 7)', { t: '{}{}' }),
    alone: peerErrors,
  },
  { name: 'States.MathAdd', ...format('States.MathAdd($.n, -3)', { n: 10 }, 7) },
  { name: 'States.MathAdd with text', ...formatError("States.MathAdd('1', 2)", {}), alone: peerErrors },
  {
    name: 'States.Array',
    ...format("States.Array($.a, 'b', 3, States.Array())", { a: [1] }, [[1], 'b', 3, []]),
  },
  { name: 'States.ArrayLength', ...format('States.ArrayLength($.l)', { l: [1, [2, 3]] }, 2) },
  {
    name: 'States.ArrayLength of text',
    ...formatError('States.ArrayLength($.l)', { l: 'abc' }),
    alone: peerErrors,
  },
  {
    name: 'States.JsonMerge is shallow, the right side wins',
    ...format(
      'States.JsonMerge($.a, $.b, false)',
      { a: { x: { k: 1 }, y: 1 }, b: { x: { l: 2 } } },
      { x: { l: 2 }, y: 1 },
    ),
  },
  {
    name: 'States.JsonMerge of no objects',
    ...formatError('States.JsonMerge($.a, $.a, false)', { a: 1 }),
    alone: peerErrors,
  },
  {
    name: 'States.StringToJson',
    ...format('States.StringToJson($.t)', { t: '{"a":[1,null]}' }, { a: [1, null] }),
  },
  {
    name: 'States.StringToJson of no JSON',
    ...formatError('States.StringToJson($.t)', { t: '{' }),
    alone: peerErrors,
  },
  {
    name: 'States.JsonToString',
    ...format('States.JsonToString($.o)', { o: { a: 'q"', b: [1] } }, '{"a":"q\\"","b":[1]}'),
    alone: 'the peer drops every backslash of the result',
  },
  {
    name: 'intrinsics inside intrinsics, over a bracket path',
    ...format(
      "States.Format('{}/{}', States.MathAdd(States.ArrayLength($.l), 1), $['a b'])",
      { l: [1, 2], 'a b': 'x' },
      '3/x',
    ),
  },
];

const both = (operator: string, yes: [unknown, unknown], no: [unknown, unknown]): ConformanceCase[] =>
  (
    [
      ['matches', yes, true],
      ['does not match', no, false],
    ] as const
  ).flatMap(([word, [value, operand], matches]) => [
    {
      name: `${operator} ${word}`,
      ...choose({ Variable: '$.v', [operator]: operand }, { v: value }, matches),
    },
    {
      name: `${operator}Path ${word}`,
      ...choose({ Variable: '$.v', [`${operator}Path`]: '$.w' }, { v: value, w: operand }, matches),
    },
  ]);

const early = '2020-01-01T00:00:00Z';
const late = '2020-01-01T02:00:00Z';
const lateElsewhere = '2020-01-01T03:00:00+01:00';

const choices: ConformanceCase[] = [
  ...both('StringEquals', ['a', 'a'], ['a', 'b']),
  ...both('StringLessThan', ['a', 'b'], ['b', 'b']),
  ...both('StringLessThanEquals', ['b', 'b'], ['c', 'b']),
  ...both('StringGreaterThan', ['c', 'b'], ['b', 'b']),
  ...both('StringGreaterThanEquals', ['b', 'b'], ['a', 'b']),
  ...both('NumericEquals', [1, 1.0], [1, 2]),
  ...both('NumericLessThan', [9, 10], [10, 10]),
  ...both('NumericLessThanEquals', [10, 10], [11, 10]),
  ...both('NumericGreaterThan', [11, 10], [10, 10]),
  ...both('NumericGreaterThanEquals', [10, 10], [9, 10]),
  ...both('BooleanEquals', [false, false], [true, false]),
  ...both('TimestampLessThan', [early, late], [late, late]),
  ...both('TimestampLessThanEquals', [late, late], [late, early]),
  ...both('TimestampGreaterThan', [late, early], [early, late]),
  ...both('TimestampGreaterThanEquals', [late, late], [early, late]),
  ...both('TimestampEquals', [late, late], [early, late]),
  {
    name: 'TimestampEquals compares moments, not text',
    ...choose({ Variable: '$.v', TimestampEquals: lateElsewhere }, { v: late }, true),
  },
  {
    name: 'a number is never equal to text',
    ...choose({ Variable: '$.v', NumericEquals: 1 }, { v: '1' }, false),
  },
  {
    name: 'StringMatches with wildcards',
    ...choose({ Variable: '$.v', StringMatches: 'log-*.tx?' }, { v: 'log-2020-01.tx?' }, true),
  },
  {
    name: 'StringMatches takes no other characters as wildcards',
    ...choose({ Variable: '$.v', StringMatches: 'log-*.txt' }, { v: 'log-2020xtxt' }, false),
  },
  {
    name: 'StringMatches with an escaped star',
    ...choose({ Variable: '$.v', StringMatches: 'a\\*b*' }, { v: 'a*b and more' }, true),
  },
  {
    name: 'StringMatches with an escaped star does not match others',
    ...choose({ Variable: '$.v', StringMatches: 'a\\*b' }, { v: 'axb' }, false),
  },
  { name: 'IsPresent', ...choose({ Variable: '$.v', IsPresent: true }, { v: null }, true) },
  { name: 'IsPresent of nothing', ...choose({ Variable: '$.v.w', IsPresent: true }, { v: 1 }, false) },
  {
    name: 'IsPresent false of nothing',
    ...choose({ Variable: '$.v', IsPresent: false }, {}, true),
    alone: 'the peer does not read the false of a type test',
  },
  { name: 'IsNull', ...choose({ Variable: '$.v', IsNull: true }, { v: null }, true) },
  {
    name: 'IsNull false',
    alone: 'the peer does not read the false of a type test',
    ...choose({ Variable: '$.v', IsNull: false }, { v: 0 }, true),
  },
  { name: 'IsNumeric', ...choose({ Variable: '$.v', IsNumeric: true }, { v: '1' }, false) },
  { name: 'IsString', ...choose({ Variable: '$.v', IsString: true }, { v: '1' }, true) },
  { name: 'IsBoolean', ...choose({ Variable: '$.v', IsBoolean: true }, { v: false }, true) },
  { name: 'IsTimestamp', ...choose({ Variable: '$.v', IsTimestamp: true }, { v: early }, true) },
  {
    name: 'IsTimestamp of a date only',
    ...choose({ Variable: '$.v', IsTimestamp: true }, { v: '2020-01-01' }, false),
  },
  {
    name: 'a comparison of nothing',
    ...choose({ Variable: '$.nope', NumericEquals: 1 }, {}, false),
    expect: { error: 'States.Runtime' },
  },
  {
    name: 'And stops at its first false, so a guard works',
    ...choose(
      {
        And: [
          { Variable: '$.v', IsPresent: true },
          { Variable: '$.v', NumericGreaterThan: 1 },
        ],
      },
      {},
      false,
    ),
  },
  {
    name: 'Or',
    ...choose(
      {
        Or: [
          { Variable: '$.v', NumericEquals: 1 },
          { Variable: '$.v', NumericEquals: 2 },
        ],
      },
      { v: 2 },
      true,
    ),
  },
  {
    name: 'Not, nested',
    ...choose(
      {
        Not: {
          And: [{ Variable: '$.v', NumericEquals: 1 }, { Not: { Variable: '$.w', IsNull: true } }],
        },
      },
      { v: 1, w: null },
      true,
    ),
  },
  {
    name: 'the first rule that matches wins',
    machine: machineOf({
      Only: {
        Type: 'Choice',
        Choices: [
          { Variable: '$.n', NumericGreaterThan: 10, Next: 'Big' },
          { Variable: '$.n', NumericGreaterThan: 1, Next: 'Some' },
          { Variable: '$.n', NumericGreaterThan: 2, Next: 'Big' },
        ],
      },
      Big: { Type: 'Pass', Result: 'big', End: true },
      Some: { Type: 'Pass', Result: 'some', End: true },
    }),
    input: { n: 3 },
    expect: { output: 'some' },
  },
  {
    name: 'no rule and no Default',
    machine: machineOf({
      Only: { Type: 'Choice', Choices: [{ Variable: '$.n', NumericEquals: 1, Next: 'Out' }] },
      Out: { Type: 'Succeed' },
    }),
    input: { n: 3 },
    expect: { error: 'States.NoChoiceMatched' },
  },
  {
    name: 'a counting loop',
    machine: machineOf({
      Raise: { Type: 'Pass', Parameters: { 'n.$': 'States.MathAdd($.n, 1)' }, Next: 'Enough' },
      Enough: {
        Type: 'Choice',
        Choices: [{ Variable: '$.n', NumericLessThan: 500, Next: 'Raise' }],
        Default: 'Out',
      },
      Out: { Type: 'Succeed' },
    }),
    input: { n: 0 },
    expect: { output: { n: 500 } },
  },
];

const flow: ConformanceCase[] = [
  {
    name: 'Succeed applies its paths',
    machine: machineOf({ Only: { Type: 'Succeed', InputPath: '$.a', OutputPath: '$.b' } }),
    input: { a: { b: 3 } },
    expect: { output: 3 },
  },
  {
    name: 'Fail',
    machine: machineOf({ Only: { Type: 'Fail', Error: 'Broken', Cause: 'because' } }),
    expect: { error: 'Broken' },
  },
  {
    name: 'Fail with ErrorPath',
    machine: machineOf({
      Only: { Type: 'Fail', ErrorPath: '$.e', CausePath: "States.Format('at {}', $.e)" },
    }),
    input: { e: 'Told' },
    expect: { error: 'Told' },
    alone: 'the peer refuses intrinsics in CausePath',
  },
  {
    name: 'Wait hands its input on',
    machine: machineOf({
      Now: { Type: 'Wait', Seconds: 0, Next: 'Then' },
      Then: { Type: 'Wait', SecondsPath: '$.s', OutputPath: '$.s', End: true },
    }),
    input: { s: 0 },
    expect: { output: 0 },
  },
  {
    name: 'Wait until a time that is over',
    machine: machineOf({
      Past: { Type: 'Wait', Timestamp: early, Next: 'PastPath' },
      PastPath: { Type: 'Wait', TimestampPath: '$.t', OutputPath: '$.s', End: true },
    }),
    input: { s: 0, t: early },
    expect: { output: 0 },
    alone: 'the peer asks for a timer of less than nothing, which warns',
  },
  {
    name: 'SecondsPath to text',
    machine: machineOf({ Only: { Type: 'Wait', SecondsPath: '$.s', End: true } }),
    input: { s: '5' },
    expect: { error: 'States.Runtime' },
  },
  {
    name: 'Parallel gives every branch the same input and collects in order',
    machine: machineOf({
      Only: {
        Type: 'Parallel',
        Parameters: { 'v.$': '$.a' },
        Branches: [
          machineOf({ One: { Type: 'Pass', Result: 1, ResultPath: '$.one', End: true } }),
          machineOf({ Two: invoke('double') }),
        ],
        ResultSelector: { 'first.$': '$[0]', 'second.$': '$[1].Payload' },
        ResultPath: '$.both',
        OutputPath: '$.both',
        End: true,
      },
    }),
    input: { a: 2 },
    functions: () => ({ double: ({ v }: { v: number }) => v * 2 }),
    expect: { output: { first: { v: 2, one: 1 }, second: 4 } },
  },
  {
    name: 'a branch that fails, caught',
    machine: machineOf({
      Only: {
        Type: 'Parallel',
        Branches: [machineOf({ One: { Type: 'Fail', Error: 'Bad', Cause: 'why' } }), machineOf(echo)],
        Catch: [{ ErrorEquals: ['Bad'], ResultPath: '$.error', Next: 'Saved' }],
        End: true,
      },
      Saved: { Type: 'Pass', End: true },
    }),
    input: { a: 1 },
    expect: { output: { a: 1, error: { Error: 'Bad', Cause: 'why' } } },
  },
  {
    name: 'an inline Map with ItemsPath and ItemSelector',
    machine: machineOf({
      Only: mapOf(
        {
          ItemsPath: '$.list',
          ItemSelector: {
            'index.$': '$$.Map.Item.Index',
            'value.$': '$$.Map.Item.Value.v',
            'shared.$': '$.shared',
          },
          MaxConcurrency: 2,
        },
        echo,
      ),
    }),
    input: { list: [{ v: 'a' }, { v: 'b' }, { v: 'c' }], shared: 0 },
    expect: {
      output: ['a', 'b', 'c'].map((value, index) => ({ index, value, shared: 0 })),
    },
  },
  {
    name: 'an inline Map over its whole input, with the item inside',
    alone: 'the peer knows the item in ItemSelector only',
    machine: machineOf({
      Only: mapOf({}, { Look: { Type: 'Pass', Parameters: { 'i.$': '$$.Map.Item.Index' }, End: true } }),
    }),
    input: ['x', 'y'],
    expect: { output: [{ i: 0 }, { i: 1 }] },
  },
  {
    name: 'a Map over nothing',
    machine: machineOf({ Only: mapOf({ ItemsPath: '$.list' }, echo) }),
    input: { list: [] },
    expect: { output: [] },
  },
  {
    name: 'a Map over no array',
    machine: machineOf({ Only: mapOf({ ItemsPath: '$.list' }, echo) }),
    input: { list: {} },
    expect: { error: 'States.Runtime' },
  },
  {
    name: 'an item that fails, caught by the Map',
    machine: machineOf({
      Only: mapOf({ Catch: [{ ErrorEquals: ['States.ALL'], Next: 'Saved' }] }, { Work: invoke('picky') }),
      Saved: { Type: 'Pass', OutputPath: '$.Error', End: true },
    }),
    input: [1, 2, 3],
    functions: () => ({
      picky: (item: number) => {
        if (item === 2) throw named('NoTwos');
        return item;
      },
    }),
    expect: { output: 'NoTwos' },
  },
  {
    name: 'a distributed Map over an array',
    machine: machineOf({
      Only: mapOf({ ItemsPath: '$.list' }, echo, distributedMode),
    }),
    input: { list: [3, 1, 2] },
    expect: { output: [3, 1, 2] },
  },
];

const errors: ConformanceCase[] = [
  {
    name: 'the result of lambda:invoke, selected',
    machine: machineOf({
      Work: invoke('double', {
        Parameters: { FunctionName: 'double', 'Payload.$': '$.n' },
        ResultSelector: { 'doubled.$': '$.Payload', 'code.$': '$.StatusCode' },
        ResultPath: '$.result',
        End: true,
      }),
    }),
    input: { n: 4 },
    functions: () => ({ double: (n: number) => 2 * n }),
    expect: { output: { n: 4, result: { doubled: 8, code: 200 } } },
  },
  {
    name: 'an error nobody catches',
    machine: machineOf({ Work: invoke('broken') }),
    functions: fails('BudgetSpent'),
    expect: { error: 'BudgetSpent' },
  },
  {
    name: 'Catch by name puts the error under its ResultPath',
    machine: machineOf({
      Work: invoke('broken', {
        Catch: [
          { ErrorEquals: ['Other'], Next: 'Wrong' },
          { ErrorEquals: ['BudgetSpent', 'Else'], ResultPath: '$.error', Next: 'Saved' },
        ],
        End: true,
      }),
      Wrong: { Type: 'Fail', Error: 'Wrong' },
      Saved: { Type: 'Pass', Parameters: { 'e.$': '$.error.Error', 'kept.$': '$.kept' }, End: true },
    }),
    input: { kept: 1 },
    functions: fails('BudgetSpent'),
    expect: { output: { e: 'BudgetSpent', kept: 1 } },
  },
  {
    name: 'States.ALL catches any name',
    machine: caughtBy(['States.ALL'], { ResultPath: null }),
    input: { kept: 5 },
    functions: fails('Whatever'),
    expect: { output: 5 },
  },
  {
    name: 'States.TaskFailed catches any name of a task',
    machine: caughtBy(['States.TaskFailed'], { ResultPath: null }),
    input: { kept: 5 },
    functions: fails('Whatever'),
    expect: { output: 5 },
  },
  {
    name: 'States.ALL does not catch States.Runtime',
    machine: machineOf({
      Work: invoke('never', {
        InputPath: '$.nope',
        Catch: [{ ErrorEquals: ['States.ALL'], Next: 'Saved' }],
        End: true,
      }),
      Saved: { Type: 'Succeed' },
    }),
    expect: { error: 'States.Runtime' },
  },
  {
    name: 'States.TaskFailed does not catch a time-out',
    machine: machineOf({
      Work: invoke('stuck', {
        TimeoutSeconds: 1,
        Catch: [{ ErrorEquals: ['States.TaskFailed'], Next: 'Wrong' }],
        End: true,
      }),
      Wrong: { Type: 'Succeed' },
    }),
    functions: () => ({ stuck: () => new Promise(() => {}) }),
    expect: { error: 'States.Timeout' },
  },
  {
    name: 'Retry until it works',
    machine: machineOf({
      Work: invoke('flaky', {
        Retry: [{ ErrorEquals: ['Busy'], MaxAttempts: 5 }],
        OutputPath: '$.Payload',
        End: true,
      }),
    }),
    functions: failsThenWorks(4),
    expect: { output: { calls: 5 } },
  },
  {
    name: 'Retry has three attempts when it does not say',
    machine: machineOf({ Work: invoke('flaky', { Retry: [{ ErrorEquals: ['Busy'] }], End: true }) }),
    functions: failsThenWorks(4),
    expect: { error: 'Busy' },
  },
  {
    name: 'Retry that is spent goes to Catch',
    machine: machineOf({
      Work: invoke('flaky', {
        Retry: [{ ErrorEquals: ['Busy'], MaxAttempts: 1 }],
        Catch: [{ ErrorEquals: ['Busy'], Next: 'Saved' }],
        End: true,
      }),
      Saved: { Type: 'Pass', OutputPath: '$.Error', End: true },
    }),
    functions: failsThenWorks(2),
    expect: { output: 'Busy' },
  },
  {
    name: 'MaxAttempts 0 never retries',
    machine: machineOf({
      Work: invoke('flaky', {
        Retry: [
          { ErrorEquals: ['Busy'], MaxAttempts: 0 },
          { ErrorEquals: ['States.ALL'], MaxAttempts: 9 },
        ],
        End: true,
      }),
    }),
    functions: failsThenWorks(1),
    expect: { error: 'Busy' },
  },
  {
    name: 'Retry of a Map runs every item again',
    machine: machineOf({
      Only: mapOf(
        { Retry: [{ ErrorEquals: ['Busy'] }], ResultSelector: { 'all.$': '$' } },
        { Work: invoke('flaky', { OutputPath: '$.Payload.calls', End: true }) },
      ),
    }),
    input: [1],
    functions: failsThenWorks(2),
    expect: { output: { all: [3] } },
  },
];

export const conformanceCases: readonly ConformanceCase[] = [
  ...dataFlow,
  ...intrinsics,
  ...choices,
  ...flow,
  ...errors,
];
