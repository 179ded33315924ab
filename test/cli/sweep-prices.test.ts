import { describe, expect, it } from 'vitest';
import { checkSweepRules } from '../../cli/sweep-rules.ts';

const dashscope = 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1';
const price = { inputPerMTok: 1, outputPerMTok: 2 };

const faultsOf = ({ lane = {}, ...sweep }: { lane?: object; judge?: object; budget?: object }) =>
  checkSweepRules({
    name: 's',
    benchmark: { kind: 'return', release: 'r' },
    models: [
      {
        id: 'a',
        provider: 'openai',
        model: 'gpt-5.4-mini',
        baseUrl: 'https://api.openai.com/v1',
        modalities: ['V'],
        ...lane,
      },
    ],
    ...sweep,
  }).map(({ message }) => message);

const budget = { usd: 1 };

describe('a sweep with a budget', () => {
  it('takes the price of the book, or its own', () => {
    expect(faultsOf({ budget })).toEqual([]);
    expect(faultsOf({ budget, lane: { model: 'gpt-5.6-sol', price } })).toEqual([]);
    expect(faultsOf({ lane: { model: 'gpt-5.6-sol' } })).toEqual([]);
  });

  it('is refused without a price, for the whole run and for a lane', () => {
    const message = 'models[0]: a budget is set but the price of this model is unknown; add "price"';

    expect(faultsOf({ budget, lane: { model: 'gpt-5.6-sol' } })).toEqual([message]);
    expect(faultsOf({ lane: { model: 'gpt-5.6-sol', budget } })).toEqual([message]);
  });

  it('is refused where a rate is unknown that its channels need, with the reason', () => {
    const lane = { provider: 'dashscope', model: 'qwen3-omni-flash', baseUrl: dashscope };

    expect(faultsOf({ budget, lane: { ...lane, modalities: ['V', 'A'] } })).toEqual([
      'models[0]: a budget is set but the output rate and rate of video of this model are unknown (the table has no rate of image and video, nor the higher output rate after media of this family); add "price"',
    ]);
    expect(faultsOf({ lane: { ...lane, modalities: ['V', 'A'] } })).toEqual([]);
  });

  it('asks a price of the judge too, for text alone', () => {
    const judge = { provider: 'openai', model: 'gpt-5.4-nano' };

    expect(faultsOf({ budget, judge })).toEqual([]);
    expect(faultsOf({ budget, judge: { ...judge, model: 'gpt-5.6-sol' } })).toEqual([
      'judge: a budget is set but the price of the judge is unknown; add "price"',
    ]);
  });

  it('asks none of a recording', () => {
    expect(
      faultsOf({ budget, lane: { provider: 'recorded', recording: 'r.jsonl', baseUrl: undefined } }),
    ).toEqual([]);
  });
});
