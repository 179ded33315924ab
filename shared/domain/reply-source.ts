/** Providers that call nobody, each with the key of a lane that says where its replies come from. */
const replyKeys: Readonly<Record<string, 'recording' | 'reply'>> = {
  recorded: 'recording',
  'fixed-reply': 'reply',
};

/** The key of a lane that holds the replies of its provider; null for providers that are called. */
export const replyKeyOf = (provider: string): 'recording' | 'reply' | null =>
  Object.hasOwn(replyKeys, provider) ? replyKeys[provider]! : null;

/** False for a provider that calls nobody: no network, no key, no cost. */
export const callsOut = (provider: string): boolean => replyKeyOf(provider) === null;

/** Names of the providers that call nobody. */
export const uncalledProviders: readonly string[] = Object.keys(replyKeys);
