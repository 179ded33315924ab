import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProviderName } from '../../mock/dialects/dialect.ts';
import { accepted, send, startedMock } from './dialects/requests.ts';

// SHA-256 of the printed bytes, from Python's hashlib over the reference's text.
const vectors: [string, ProviderName, string][] = [
  ['S-DS-OK', 'dashscope', '93765c0b3fb4e328c1d0ac0d4fe75af7f7376784b2573b6b2dda1d2d795d51ae'],
  ['S-DS-THINK', 'dashscope', '22e5ecde25af65532ea42461fef7b9fa14f9a1f878e4ba366ef4d64d339505be'],
  ['S-ARK-OK', 'ark', 'f3337e63fc0a848eaf8ed4b3ec3bb163510688a1c29329c846a204a4dd2a225b'],
  ['S-STEP-OK', 'stepfun', 'e2b98be58635d2a629a3d2f6277dd43da7f6c139d59b26c2cffcd9e4d0fe95ef'],
  ['S-OAI-OK', 'openai', '09f5f24cde18d5b0916c2b8f5fd5ce1abdbfa1ff5fca684381a4290ebffe26d5'],
  ['S-VLLM-OK', 'vllm', 'dd7a70775cccc1044264878987da794bd0b7dae7289b41ea51b2a1acf551fcfa'],
  ['S-GEM-OK', 'gemini', '4c2a6d20865171923c4055b58a52ddd82eccf2adcff5529ffe5575f4a1f5d78b'],
  ['S-GEM-BLOCK', 'gemini', 'fb239f3242792734183d4afc65ee04a559308a857c45e8de74078e8f8c1b8875'],
  ['S-OAI-RESP', 'openai', '7c0ca895d0e051aca099a0230740157e14f640de6329cc60c8a9e44e9664be67'],
  ['S-OAI-REFUSAL', 'openai', '688044c6c5a8574793b823de7f617dd3cb6e92d12d65ce0fbd551f93144aff69'],
  ['S-BED-OK', 'bedrock', 'ff5807f8f5418324ec271f9d3457bad6fef3bf05961ccd6ecb2b5755fe17f332'],
  ['F-16', 'dashscope', 'b6ba5a5d42d689d526de229beee7aec8d19da5842263e13fe7f8a9fe76247960'],
  ['F-18', 'dashscope', '58b4459cec050db2b8286a45178e75aa225372a9e4be6b9b52577f266e4c7f8f'],
  ['F-19', 'dashscope', '343b46da74c0541269cba017154fb4e1232d0e21643a824136046bf3be971cae'],
  ['F-22', 'dashscope', '287dd0c4bf6071de0436b196c836d98bc3c681809929ae1d34a4b4e1882159f3'],
  ['F-31', 'vllm', '1f3b414d48b2a9793363a33910b971c6403706dd7c92ed6574274a6554e01348'],
];
/** F-31 is printed with this model; the other rows have that of the request. */
const bodyOf = (id: string) => (id === 'F-31' ? { model: 'local' } : {});

const served = async (id: string, provider: ProviderName): Promise<string> => {
  const server = await startedMock();
  server.control({ provider, queue: [id] });
  return (await send(server, accepted[provider](bodyOf(id)))).text();
};

describe('printed vectors', () => {
  it.each(vectors)('%s of %s is served byte by byte', async (id, provider, sha256) => {
    const body = await served(id, provider);

    expect(createHash('sha256').update(body).digest('hex')).toBe(sha256);
  });

  it('of SGLang and llama.cpp are those of vLLM with what each adds', async () => {
    const plain = (body: string) =>
      body
        .replace(/"id":"[^"]+"/g, '"id"')
        .replace(/,"(token_ids|matched_stop)":(null|\d+)/g, '')
        .replace(/,"timings":\{[^}]+\}/, '');
    const vllm = await served('S-VLLM-OK', 'vllm');
    const sglang = await served('S-SGL-OK', 'sglang');
    const llamacpp = await served('S-LCP-OK', 'llamacpp');

    expect(plain(sglang)).toBe(plain(vllm));
    expect(plain(llamacpp)).toBe(plain(vllm));
    expect(sglang).toContain('"finish_reason":"stop","matched_stop":');
    expect(llamacpp).toContain('"timings":{');
  });

  it('leave out the padding where the request does not want it', async () => {
    const server = await startedMock();
    const streamed = async (include: boolean) =>
      (
        await send(
          server,
          accepted.openai({ stream_options: { include_usage: true, include_obfuscation: include } }),
        )
      ).text();

    expect(await streamed(false)).not.toContain('obfuscation');
    expect(await streamed(true)).toContain('obfuscation');
  });
});

const reference = path.join(import.meta.dirname, '../../../shared/reference/provider-apis.md');
describe.runIf(existsSync(reference))('vectors of the reference', () => {
  const page = existsSync(reference) ? readFileSync(reference, 'utf8') : '';
  it.each(vectors)('%s of %s are the bytes of the page', async (id, provider) => {
    const from = page.indexOf(`**${id}`);
    const [fence] = /```(sse|json)\n/.exec(
      page.slice(page.indexOf('```', page.indexOf(id.startsWith('F') ? `**${id} bytes` : `**${id}`))),
    )!;
    const start =
      page.indexOf(fence, id.startsWith('F') ? page.indexOf(`**${id} bytes`) : from) + fence.length;
    const printed = page.slice(start, page.indexOf('\n```', start));

    expect(await served(id, provider)).toBe(fence.includes('sse') ? `${printed}\n\n` : printed);
  });
});
