import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface KeyedProvider {
  url: string;
  /** Requests by model, refused ones too. */
  requests: Map<string, number>;
  /** While closed, requests wait. */
  gate: { close(): void; open(): void };
  close(): Promise<void>;
}

const escapes = '\u001b[31m\u009b31m\u0007';

/**
 * A server of the OpenAI dialect that a careless provider might run: it wants `key` for the models whose name
 * begins with `gated`, repeats a wrong key in its error, and puts escape sequences into ids, names and errors, for
 * `noisy` models into replies too. The reply is always `reply`.
 */
export const startKeyedProvider = async ({
  key,
  reply,
}: {
  key: string;
  reply: string;
}): Promise<KeyedProvider> => {
  const requests = new Map<string, number>();
  let waiting: (() => void)[] | null = null;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { model } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { model: string };
      requests.set(model, (requests.get(model) ?? 0) + 1);
      const given = request.headers.authorization ?? 'none';
      const isAllowed = !model.startsWith('gated') || given === `Bearer ${key}`;
      const answer = () => {
        response.writeHead(isAllowed ? 200 : 401, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify(
            isAllowed
              ? {
                  id: `id${escapes}`,
                  model: `${model}${escapes}`,
                  choices: [
                    {
                      finish_reason: 'stop',
                      message: {
                        role: 'assistant',
                        content: model.startsWith('noisy') ? `${reply}${escapes}` : reply,
                      },
                    },
                  ],
                }
              : { error: { code: 'invalid_api_key', message: `wrong key${escapes}: ${given}` } },
          ),
        );
      };
      if (waiting === null) answer();
      else waiting.push(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    gate: {
      close: () => {
        waiting ??= [];
      },
      open: () => {
        const answers = waiting ?? [];
        waiting = null;
        for (const answer of answers) answer();
      },
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
