import { errorNames, TurnsweepError } from '../../shared/errors.ts';

/** Where in a definition we are, and which `$$` fields exist there. */
export interface Site {
  readonly machine: string;
  readonly state: string | null;
  readonly field: string;
  readonly hasItem: boolean;
  readonly hasToken: boolean;
}

export const inField = (site: Site, name: string): Site => ({
  ...site,
  field: site.field === '' ? name : `${site.field}.${name}`,
});

export const inIndex = (site: Site, index: number): Site => ({ ...site, field: `${site.field}[${index}]` });

/** Refuses a definition, in one line with machine, state and field. */
export const reject = (site: Site, what: string): never => {
  const places = [
    `machine ${JSON.stringify(site.machine)}`,
    ...(site.state === null ? [] : [`state ${JSON.stringify(site.state)}`]),
    ...(site.field === '' ? [] : [`field ${site.field}`]),
  ];
  throw new TurnsweepError(errorNames.aslInvalid, what, { where: places.join(', ') });
};

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hints: Readonly<Record<string, string>> = {
  Arguments: 'Arguments belongs to JSONata, which is not supported; use Parameters',
  Assign: 'Assign (variables) is not supported; keep the value in the state data',
  Credentials: 'Credentials is not supported',
  ItemBatcher: 'ItemBatcher is not supported; write batches into the item file',
  Iterator: 'Iterator is the old name; use ItemProcessor',
  Output: 'Output belongs to JSONata, which is not supported; use ResultSelector and ResultPath',
};

interface NumberRule {
  min: number;
  max?: number;
  fraction?: boolean;
}

/** What is wrong with a number, or null. */
export const numberFault = (value: unknown, { min, max = Infinity, fraction = false }: NumberRule) => {
  const fits =
    typeof value === 'number' && (fraction || Number.isInteger(value)) && value >= min && value <= max;
  if (fits) return null;
  const range = max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`;
  return `must be ${fraction ? 'a number' : 'an integer'} ${range}, not ${JSON.stringify(value)}`;
};

/** Reads an object's fields one by one and, in `end`, refuses those that nobody read. */
export interface Fields {
  readonly site: Site;
  has(name: string): boolean;
  names(): string[];
  /** Undefined where absent. */
  take(name: string): unknown;
  text(name: string): string | null;
  neededText(name: string): string;
  number(name: string, rule: NumberRule): number | null;
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | null;
  object(name: string): Fields | null;
  neededObject(name: string): Fields;
  list(name: string): unknown[] | null;
  end(): void;
}

export const readFields = (value: unknown, site: Site): Fields => {
  if (!isObject(value)) return reject(site, `must be an object, not ${JSON.stringify(value)}`);
  const unread = new Set(Object.keys(value));
  const take = (name: string) => {
    unread.delete(name);
    return Object.hasOwn(value, name) ? value[name] : undefined;
  };
  const typed = <T>(name: string, is: (found: unknown) => found is T, kind: string): T | null => {
    const found = take(name);
    if (found === undefined) return null;
    return is(found) ? found : reject(inField(site, name), `must be ${kind}, not ${JSON.stringify(found)}`);
  };
  const isText = (found: unknown): found is string => typeof found === 'string';
  const needed = <T>(name: string, found: T | null): T =>
    found === null ? reject(inField(site, name), `${name} is missing`) : found;
  const text = (name: string) => typed(name, isText, 'a string');
  const object = (name: string) => {
    const found = typed(name, isObject, 'an object');
    return found === null ? null : readFields(found, inField(site, name));
  };
  return {
    site,
    has: (name) => Object.hasOwn(value, name),
    names: () => Object.keys(value),
    take,
    text,
    neededText: (name) => needed(name, text(name)),
    number: (name, rule) => {
      const found = take(name);
      if (found === undefined) return null;
      const fault = numberFault(found, rule);
      return fault === null ? (found as number) : reject(inField(site, name), fault);
    },
    oneOf: (name, allowed) =>
      typed(
        name,
        (found): found is (typeof allowed)[number] => (allowed as readonly unknown[]).includes(found),
        allowed.join(' or '),
      ),
    object,
    neededObject: (name) => needed(name, object(name)),
    list: (name) => typed(name, Array.isArray as (found: unknown) => found is unknown[], 'an array'),
    end: () => {
      for (const name of unread) {
        reject(inField(site, name), hints[name] ?? `unknown or unsupported field ${JSON.stringify(name)}`);
      }
    },
  };
};
