import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';

/** Key prefixes; `*` stands for one path segment. */
export interface KeyScopes {
  read: readonly string[];
  write: readonly string[];
}

const escaped = (literal: string): string => literal.replace(/[.+?^${}()|[\]\\]/g, '\\$&');

const permits = (patterns: readonly string[]): ((key: string) => boolean) => {
  const sources = patterns.map((pattern) => pattern.split('*').map(escaped).join('[^/]+'));
  if (sources.length === 0) return () => false;
  const permitted = new RegExp(`^(?:${sources.join('|')})`);
  return (key) => permitted.test(key);
};

/**
 * The store as one stage may see it, as a role's policy does on AWS: the role that calls evaluated models
 * cannot read answers. Any other key is `AccessDenied`; `list` needs a prefix that lies inside the read scope.
 */
export const scopeObjectStore = (store: ObjectStore, scopes: KeyScopes): ObjectStore => {
  const mayRead = permits(scopes.read);
  const mayWrite = permits(scopes.write);
  const refuse = (verb: string, key: string): never => {
    throw new TurnsweepError(errorNames.accessDenied, `this stage may not ${verb} this key`, {
      where: key,
      remedy: 'give the work to the stage whose scope it is, or widen the scope on purpose',
    });
  };
  const reading = (key: string): string => (mayRead(key) ? key : refuse('read', key));
  const writing = (key: string): string => (mayWrite(key) ? key : refuse('write', key));
  return {
    getText: async (key) => store.getText(reading(key)),
    getBytes: async (key) => store.getBytes(reading(key)),
    tag: async (key) => store.tag(reading(key)),
    list: (prefix) => store.list(reading(prefix)),
    lines: (key) => store.lines(reading(key)),
    put: async (key, body) => store.put(writing(key), body),
    putIfAbsent: async (key, body) => store.putIfAbsent(writing(key), body),
    putIfMatch: async (key, body, tag) => store.putIfMatch(writing(key), body, tag),
    putLines: async (key, lines) => store.putLines(writing(key), lines),
    delete: async (key) => store.delete(writing(key)),
  };
};
