// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the definitions' own placeholders
import { describe, expect, it } from 'vitest';
import { createAslRuntime, loadStateMachine } from '../../../local/asl/runtime.ts';
import { askQueue, createFixture, invoke, machineOf } from './fixture.ts';

const load = (machine: object) => () => loadStateMachine(JSON.stringify(machine), {}, 'sweep');
const only = (state: object) => load(machineOf({ 'Plan Sweep': state }));
const passWith = (fields: object) => only({ Type: 'Pass', End: true, ...fields });
const parameter = (expression: unknown) => passWith({ Parameters: { 'x.$': expression } });
const taskWith = (fields: object) => only(invoke('plan-sweep', { End: true, ...fields }));
const retryWith = (retrier: object) => taskWith({ Retry: [{ ErrorEquals: ['Busy'], ...retrier }] });
const choiceWith = (rule: object) =>
  load(
    machineOf({
      'Plan Sweep': { Type: 'Choice', Choices: [{ Next: 'Out', ...rule }] },
      Out: { Type: 'Succeed' },
    }),
  );
const processor = { ...machineOf({ Inner: { Type: 'Pass', End: true } }) };
const mapWith = (fields: object) => only({ Type: 'Map', ItemProcessor: processor, End: true, ...fields });
const distributed = (fields: object, inner: object = processor, executionType = 'STANDARD') =>
  mapWith({
    ItemProcessor: { ProcessorConfig: { Mode: 'DISTRIBUTED', ExecutionType: executionType }, ...inner },
    ...fields,
  });
const readerWith = (fields: object) =>
  distributed({
    ItemReader: {
      Resource: 'arn:aws:states:::s3:getObject',
      ReaderConfig: { InputType: 'JSONL' },
      Parameters: { Bucket: 'b', Key: 'k' },
      ...fields,
    },
  });

const refused: [what: string, load: () => unknown, field: string | null, message: string][] = [
  ['an unknown state type', only({ Type: 'Loop', End: true }), 'Type', 'unknown state type "Loop"'],
  ['a missing type', only({ End: true }), 'Type', 'Type is missing'],
  ['an unknown field', passWith({ Results: 1 }), 'Results', 'unknown or unsupported field'],
  [
    'ResultPath on Wait',
    only({ Type: 'Wait', Seconds: 1, ResultPath: '$.a', End: true }),
    'ResultPath',
    'unknown',
  ],
  ['JSONata', passWith({ QueryLanguage: 'JSONata' }), 'QueryLanguage', 'only JSONPath'],
  ['Assign', passWith({ Assign: { a: 1 } }), 'Assign', 'state data'],
  ['Arguments', taskWith({ Arguments: {} }), 'Arguments', 'JSONata'],
  ['ItemBatcher', distributed({ ItemBatcher: { MaxItemsPerBatch: 2 } }), 'ItemBatcher', 'not supported'],
  ['a filter', parameter('$.a[?(@.b==1)]'), 'Parameters.x.$', 'is not a reference path'],
  ['a slice', parameter('$.a[0:2]'), 'Parameters.x.$', 'is not a reference path'],
  ['a wildcard', parameter('$.a[*].b'), 'Parameters.x.$', 'is not a reference path'],
  ['a descent', passWith({ InputPath: '$..a' }), 'InputPath', 'is not a reference path'],
  ['a negative index', passWith({ OutputPath: '$.a[-1]' }), 'OutputPath', 'is not a reference path'],
  ['a path without $', passWith({ InputPath: 'a.b' }), 'InputPath', 'must begin with $'],
  ['a constant behind .$', parameter('text'), 'Parameters.x.$', 'must begin with $'],
  ['a number behind .$', parameter(3), 'Parameters.x.$', 'must be a path or an intrinsic'],
  ['a key given twice', passWith({ Parameters: { a: 1, 'a.$': '$' } }), 'Parameters.a.$', 'given twice'],
  ['ResultPath into the context', passWith({ ResultPath: '$$.x' }), 'ResultPath', "into the state's input"],
  ['an unknown intrinsic', parameter("States.Hash($.a, 'MD5')"), 'Parameters.x.$', 'intrinsic States.Hash'],
  [
    'an unknown intrinsic inside',
    parameter("States.Format('{}', States.Base64Encode($.a))"),
    'Parameters.x.$',
    'intrinsic States.Base64Encode',
  ],
  ['too few arguments', parameter('States.MathAdd($.a)'), 'Parameters.x.$', 'takes 2 arguments, not 1'],
  ['States.Format of another count', parameter("States.Format('{}')"), 'Parameters.x.$', '1 {} for 0'],
  ['deep merging', parameter('States.JsonMerge($.a, $.b, true)'), 'Parameters.x.$', 'only shallow'],
  ['a bracket left open', parameter('States.Array($.a'), 'Parameters.x.$', 'cannot be read from character'],
  ['text after a call', parameter('States.UUID() + 1'), 'Parameters.x.$', 'goes on after'],
  ['a filter in an intrinsic', parameter('States.Array($.a[?(@.b)])'), 'Parameters.x.$', 'cannot be read'],
  [
    'an unknown context field',
    parameter('$$.Execution.RoleArn'),
    'Parameters.x.$',
    'the context object has no',
  ],
  ['the item outside of a Map', parameter('$$.Map.Item.Value'), 'Parameters.x.$', 'ItemSelector'],
  ['the token outside of its task', parameter('$$.Task.Token'), 'Parameters.x.$', 'waitForTaskToken'],
  [
    'the item inside a distributed Map',
    distributed({}, machineOf({ Look: { Type: 'Pass', InputPath: '$$.Map.Item.Value', End: true } })),
    null,
    'state "Look", field InputPath',
  ],
  ['a Task without a timeout', taskWith({ TimeoutSeconds: undefined }), 'TimeoutSeconds', 'every Task needs'],
  ['two timeouts', taskWith({ TimeoutSecondsPath: '$.t' }), 'TimeoutSecondsPath', 'exclude each other'],
  ['a timeout as text', taskWith({ TimeoutSeconds: '60' }), 'TimeoutSeconds', 'must be an integer'],
  ['a timeout of 0', taskWith({ TimeoutSeconds: 0 }), 'TimeoutSeconds', 'from 1 to'],
  ['a heartbeat without a token', taskWith({ HeartbeatSeconds: 5 }), 'HeartbeatSeconds', 'waitForTaskToken'],
  ['a late heartbeat', only(askQueue({ HeartbeatSeconds: 600, End: true })), 'HeartbeatSeconds', 'less than'],
  [
    'a token that is not sent',
    only(askQueue({ Parameters: { QueueUrl: 'q', MessageBody: 'x' }, End: true })),
    'Parameters',
    'nobody could answer',
  ],
  [
    'an unknown integration',
    taskWith({ Resource: 'arn:aws:states:::sns:publish' }),
    'Resource',
    'sns:publish',
  ],
  [
    'a function ARN',
    taskWith({ Resource: 'arn:aws:lambda:x:1:function:f' }),
    'Resource',
    'unsupported integration',
  ],
  ['a missing parameter', taskWith({ Parameters: { Payload: {} } }), 'Parameters.FunctionName', 'is missing'],
  [
    'an unknown parameter',
    taskWith({ Parameters: { FunctionName: 'f', Payload: {}, InvocationType: 'Event' } }),
    'Parameters.InvocationType',
    'unknown',
  ],
  ['an unknown retry field', retryWith({ Interval: 1 }), 'Retry[0].Interval', 'unknown'],
  ['a shrinking back-off', retryWith({ BackoffRate: 0.5 }), 'Retry[0].BackoffRate', 'at least 1'],
  ['an unknown jitter', retryWith({ JitterStrategy: 'HALF' }), 'Retry[0].JitterStrategy', 'FULL or NONE'],
  [
    'a cap below the interval',
    retryWith({ IntervalSeconds: 5, MaxDelaySeconds: 5 }),
    'Retry[0].MaxDelaySeconds',
    'greater',
  ],
  ['an empty error list', retryWith({ ErrorEquals: [] }), 'Retry[0].ErrorEquals', 'must list error names'],
  ['States.ALL in company', retryWith({ ErrorEquals: ['States.ALL', 'A'] }), 'Retry[0].ErrorEquals', 'alone'],
  [
    'States.ALL before the last',
    taskWith({ Retry: [{ ErrorEquals: ['States.ALL'] }, { ErrorEquals: ['A'] }] }),
    'Retry[0].ErrorEquals',
    'last entry',
  ],
  ['Retry on a Pass', passWith({ Retry: [] }), 'Retry', 'unknown'],
  [
    'a catcher to nowhere',
    taskWith({ Catch: [{ ErrorEquals: ['A'], Next: 'Gone' }] }),
    'Catch[0].Next',
    '"Gone"',
  ],
  ['a dangling Next', only({ Type: 'Pass', Next: 'Gone' }), 'Next', 'there is no state "Gone"'],
  ['neither Next nor End', only({ Type: 'Pass' }), 'Next', 'either Next or'],
  ['both Next and End', only({ Type: 'Pass', Next: 'Plan Sweep', End: true }), 'Next', 'either Next or'],
  ['End false', only({ Type: 'Pass', End: false }), 'End', 'must be true'],
  [
    'a Default to nowhere',
    choiceWith({ Variable: '$.a', IsNull: true, Next: 'Gone' }),
    'Choices[0].Next',
    '"Gone"',
  ],
  [
    'a rule without Next',
    choiceWith({ Variable: '$.a', IsNull: true, Next: undefined }),
    'Choices[0].Next',
    'missing',
  ],
  ['a rule without comparison', choiceWith({ Variable: '$.a' }), 'Choices[0]', 'exactly one comparison'],
  [
    'a rule with two comparisons',
    choiceWith({ Variable: '$.a', IsNull: true, NumericEquals: 1 }),
    'Choices[0]',
    'exactly one comparison',
  ],
  [
    'an unknown comparison',
    choiceWith({ Variable: '$.a', NumericIn: [1] }),
    'Choices[0].NumericIn',
    'unknown',
  ],
  [
    'BooleanLessThan',
    choiceWith({ Variable: '$.a', BooleanLessThan: true }),
    'Choices[0].BooleanLessThan',
    'unknown',
  ],
  [
    'a number as text',
    choiceWith({ Variable: '$.a', NumericEquals: '1' }),
    'Choices[0].NumericEquals',
    'numeric value',
  ],
  [
    'a time without a zone',
    choiceWith({ Variable: '$.a', TimestampEquals: '2020-01-01T00:00:00' }),
    'Choices[0].TimestampEquals',
    'timestamp',
  ],
  ['an empty And', choiceWith({ And: [] }), 'Choices[0].And', 'must not be empty'],
  [
    'Next inside And',
    choiceWith({ And: [{ Variable: '$.a', IsNull: true, Next: 'Out' }] }),
    'Choices[0].And[0].Next',
    'unknown',
  ],
  ['no choices', only({ Type: 'Choice', Choices: [] }), 'Choices', 'must not be empty'],
  ['two waits', only({ Type: 'Wait', Seconds: 1, SecondsPath: '$.s', End: true }), null, 'exactly one of'],
  ['no wait', only({ Type: 'Wait', End: true }), null, 'exactly one of'],
  ['a broken time', only({ Type: 'Wait', Timestamp: 'tomorrow', End: true }), 'Timestamp', 'must be a time'],
  [
    'Error and ErrorPath',
    only({ Type: 'Fail', Error: 'A', ErrorPath: '$.e' }),
    'ErrorPath',
    'exclude each other',
  ],
  ['no branches', only({ Type: 'Parallel', Branches: [], End: true }), 'Branches', 'must not be empty'],
  ['Iterator', only({ Type: 'Map', Iterator: processor, End: true }), 'ItemProcessor', 'is missing'],
  ['tolerance inline', mapWith({ ToleratedFailureCount: 1 }), 'ToleratedFailureCount', 'DISTRIBUTED'],
  ['a reader inline', mapWith({ ItemReader: {} }), 'ItemReader', 'DISTRIBUTED'],
  [
    'a percentage above 100',
    distributed({ ToleratedFailurePercentage: 101 }),
    'ToleratedFailurePercentage',
    '100',
  ],
  [
    'a CSV reader',
    readerWith({ ReaderConfig: { InputType: 'CSV' } }),
    'ItemReader.ReaderConfig.InputType',
    'JSONL',
  ],
  [
    'another reader',
    readerWith({ Resource: 'arn:aws:states:::s3:listObjectsV2' }),
    'ItemReader.Resource',
    'only',
  ],
  [
    'a reader without key',
    readerWith({ Parameters: { Bucket: 'b' } }),
    'ItemReader.Parameters.Key',
    'missing',
  ],
  [
    'a token in an EXPRESS child',
    distributed({}, machineOf({ Ask: askQueue({ End: true }) }), 'EXPRESS'),
    null,
    'EXPRESS item processor cannot wait',
  ],
  [
    'a mode without execution type',
    mapWith({ ItemProcessor: { ...processor, ProcessorConfig: { Mode: 'DISTRIBUTED' } } }),
    'ItemProcessor.ProcessorConfig.ExecutionType',
    'missing',
  ],
  [
    'the __proto__ key',
    () =>
      loadStateMachine(
        '{"StartAt":"Plan Sweep","States":{"Plan Sweep":{"Type":"Pass","Parameters":{"__proto__":1},"End":true}}}',
        {},
        'sweep',
      ),
    'Parameters.__proto__',
    'cannot be used',
  ],
];

describe('what is refused at load', () => {
  it.each(refused)('%s', (_what, loading, field, message) => {
    expect(loading).toThrow(expect.objectContaining({ name: 'AslInvalid' }));
    expect(loading).toThrow(message);
    expect(loading).toThrow('machine "sweep"');
    expect(loading).not.toThrow(/\n/);
    if (field !== null) expect(loading).toThrow(`state "Plan Sweep", field ${field})`);
  });

  it('refuses a state that cannot be reached', () => {
    const loading = load(machineOf({ A: { Type: 'Succeed' }, Lost: { Type: 'Succeed' } }));

    expect(loading).toThrow('can never be reached (machine "sweep", state "Lost")');
  });

  it('refuses a start at no state, an empty machine and another version', () => {
    expect(load({ StartAt: 'B', States: { A: { Type: 'Succeed' } } })).toThrow('field StartAt');
    expect(load({ StartAt: 'A', States: {} })).toThrow('field States');
    expect(load(machineOf({ A: { Type: 'Succeed' } }, { Version: '2.0' }))).toThrow('field Version');
    expect(load(machineOf({ A: { Type: 'Succeed' } }, { Extra: 1 }))).toThrow('field Extra');
  });

  it('refuses a state name that another branch uses too', () => {
    const branch = machineOf({ Same: { Type: 'Succeed' } });

    expect(only({ Type: 'Parallel', Branches: [branch, branch], End: true })).toThrow(
      'same name (machine "sweep", state "Same")',
    );
  });

  it('refuses, when a runtime is made, to start a machine that is not there', () => {
    const starting = {
      ...invoke('x'),
      Resource: 'arn:aws:states:::states:startExecution',
      Parameters: { StateMachineArn: 'arn:aws:states:eu-central-1:1:stateMachine:gone' },
    };

    expect(() => createFixture({ machines: { sweep: machineOf({ Start: starting }) } })).toThrow(
      'machine "sweep", state "Start", field Parameters.StateMachineArn',
    );
  });

  it('checks what createAslRuntime is given, not only what is loaded', () => {
    const machines = { sweep: machineOf({ A: { Type: 'Loop' } }) };

    expect(() => createAslRuntime({ machines } as never)).toThrow('unknown state type "Loop"');
  });
});

describe('what is accepted', () => {
  it('a Choice without Default, comments and version', () => {
    const machine = machineOf(
      {
        Pick: {
          Type: 'Choice',
          Comment: 'c',
          Choices: [{ Variable: '$.a', IsNull: true, Comment: 'r', Next: 'Out' }],
        },
        Out: { Type: 'Succeed' },
      },
      { Comment: 'm', Version: '1.0', QueryLanguage: 'JSONPath', TimeoutSeconds: 5 },
    );

    expect(load(machine)()).toEqual(machine);
  });
});

describe('substitutions', () => {
  const text =
    '{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke",' +
    '"Parameters":{"FunctionName":"${PlanSweep}","Payload":{"note":"${Note} ${Note}"}},' +
    '"TimeoutSeconds":${Seconds},"End":true}}}';

  it('fills names inside and outside of quotes', () => {
    const loaded = loadStateMachine(text, {
      PlanSweep: 'plan-sweep',
      Note: 'a "b" \\ ${x} $&',
      Seconds: '30',
    });

    expect(loaded).toEqual({
      StartAt: 'A',
      States: {
        A: {
          Type: 'Task',
          Resource: 'arn:aws:states:::lambda:invoke',
          Parameters: {
            FunctionName: 'plan-sweep',
            Payload: { note: 'a "b" \\ ${x} $& a "b" \\ ${x} $&' },
          },
          TimeoutSeconds: 30,
          End: true,
        },
      },
    });
  });

  it('names every substitution that is missing', () => {
    expect(() => loadStateMachine(text, { Note: 'n' }, 'sweep')).toThrow(
      'no substitution is given for "PlanSweep", "Seconds" (machine "sweep")',
    );
  });

  it('names a substitution that the file does not use', () => {
    const given = { PlanSweep: 'p', Note: 'n', Seconds: '1', PlanSwep: 'p' };

    expect(() => loadStateMachine(text, given, 'sweep')).toThrow('does not use the substitution "PlanSwep"');
  });

  it('says in one line where the text is no JSON', () => {
    expect(() => loadStateMachine('{"StartAt":\n}', {}, 'sweep')).toThrow(/^not JSON: .*machine "sweep"\)$/);
  });
});
