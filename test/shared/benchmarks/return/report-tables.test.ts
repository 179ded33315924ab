import { expect, test } from 'vitest';
import {
  cellsCsv,
  groupsCsv,
  laddersCsv,
  modelsCsv,
} from '../../../../shared/benchmarks/return/report-tables.ts';

test('counts stay whole, rates have a point, and a name with a comma is quoted', () => {
  const row = {
    model: 'M, "large"',
    family: null,
    interface: 'mcq',
    horizon: 'long',
    single_accuracy_pct: 100,
    multi_accuracy_pct: 62.5,
    degradation_pp: 37.5,
    valid_pairs: 8,
  };

  expect([...modelsCsv([row])].join('')).toBe(
    'model,family,interface,horizon,single_accuracy_pct,multi_accuracy_pct,degradation_pp,valid_pairs\n' +
      '"M, ""large""",,mcq,long,100.0,62.5,37.5,8\n',
  );
});

test.each(['=1+1', '+1', '-1', '@SUM(A1)', '＝1', '\tx'])('the name %j is no formula', (name) => {
  const row = { role: 'task', model: name, interface: 'mcq', n: 1, single: -1, reference: 0, conflict: 0 };

  const lines = [...laddersCsv([row as never])];

  expect(lines[1]).toBe(`task,'${name},mcq,1,-1.0,0.0,0.0\n`);
});

test('no rows give the header alone', () => {
  expect([...groupsCsv([])]).toEqual([
    'group,value,interface,n,single_accuracy,multi_accuracy,delta_conv_pp,harm,rescue,single_strict,multi_strict\n',
  ]);
  expect([...cellsCsv([])]).toEqual([
    'model,family,interface,horizon,operation,n,single_correct,multi_correct,single_pct,multi_pct,delta_pp\n',
  ]);
  expect([...laddersCsv([])]).toEqual(['role,model,interface,n,single,reference,conflict\n']);
});
