/**
 * A mock provider in a process of its own: started with a scenario and further steps as JSON, tells its parent its URL
 * and, for the message `stats`, its counts. It takes the scenario of a step once it has served so many replies.
 */
import type { ScenarioInput } from '../mock/scenario.ts';
import { startMockProvider } from '../mock/server.ts';

export interface ScenarioStep {
  /** Replies served before the step. */
  after: number;
  scenario: ScenarioInput;
}

const [first, steps] = JSON.parse(process.argv[2]!) as [ScenarioInput, ScenarioStep[]];
let [firstMs, lastMs] = [Number.NaN, Number.NaN];
const mock = await startMockProvider({
  scenario: first,
  onRequest: () => {
    lastMs = performance.now();
    if (Number.isNaN(firstMs)) firstMs = lastMs;
  },
});
const left = [...steps];
const stepsAtMs: number[] = [];
const watch = setInterval(() => {
  const next = left[0];
  if (next === undefined || mock.stats().replies < next.after) return;
  left.shift();
  mock.setScenario(next.scenario);
  stepsAtMs.push(Date.now());
}, 5);
process.on('message', (message) => {
  if (message !== 'stats') return;
  const { requests, replies, rateLimited, peakInFlight } = mock.stats();
  process.send!({ requests, replies, rateLimited, peakInFlight, requestingMs: lastMs - firstMs, stepsAtMs });
});
process.on('disconnect', () => {
  clearInterval(watch);
  void mock.close();
});
process.send!({ url: mock.url });
