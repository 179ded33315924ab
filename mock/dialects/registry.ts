import { ark } from './ark.ts';
import { bedrock } from './bedrock.ts';
import { dashscope } from './dashscope.ts';
import type { Dialect, ProviderName } from './dialect.ts';
import { gemini } from './gemini.ts';
import { llamacpp } from './llamacpp.ts';
import { openai } from './openai.ts';
import { sglang } from './sglang.ts';
import { stepfun } from './stepfun.ts';
import { vllm } from './vllm.ts';

/** Every dialect that the fake speaks, each below a prefix of its own. */
export const dialects: Readonly<Record<ProviderName, Dialect>> = {
  dashscope,
  ark,
  stepfun,
  openai,
  vllm,
  sglang,
  llamacpp,
  gemini,
  bedrock,
};
