/**
 * The floor: calls in a plain loop, so many at a time, on the client that turnsweep uses. Prints how many replies were as wanted.
 *
 * node bench/peers/plain-loop.ts URL CALLS CONCURRENCY ANSWER
 */
import { Agent, request } from 'undici';
import { questionAt } from './tools.ts';

const [url, calls, concurrency, answer] = process.argv.slice(2) as [string, string, string, string];
const dispatcher = new Agent({ connections: Number(concurrency) });
let [next, correct] = [0, 0];

const work = async (): Promise<void> => {
  for (let at = next++; at < Number(calls); at = next++) {
    const { statusCode, body } = await request(`${url}/chat/completions`, {
      method: 'POST',
      dispatcher,
      headers: { 'content-type': 'application/json', authorization: 'Bearer none' },
      body: JSON.stringify({
        model: 'm',
        messages: [{ role: 'user', content: questionAt(at) }],
        max_tokens: 64,
      }),
    });
    const reply = (await body.json()) as { choices: [{ message: { content: string } }] };
    if (statusCode === 200 && reply.choices[0].message.content === answer) correct += 1;
  }
};
await Promise.all(Array.from({ length: Number(concurrency) }, work));
await dispatcher.close();
console.log(correct);
