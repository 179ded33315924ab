import { inField, readFields, reject, type Site } from './definition.ts';
import type { Machine } from './program.ts';
import { type Compilation, compileChain, refuseOtherLanguage } from './states.ts';

const machineSite = (machine: string): Site => ({
  machine,
  state: null,
  field: '',
  hasItem: false,
  hasToken: false,
});

export interface CompiledMachine extends Machine {
  readonly started: Compilation['started'];
}

/**
 * Checks a parsed definition in full and prepares it for running.
 * Throws `AslInvalid`, one line with machine, state and field, at the first thing the runtime would not execute.
 */
export const compileMachine = (name: string, definition: unknown): CompiledMachine => {
  const site = machineSite(name);
  const fields = readFields(definition, site);
  refuseOtherLanguage(fields);
  const version = fields.text('Version');
  if (version !== null && version !== '1.0')
    reject(inField(site, 'Version'), 'only version 1.0 is supported');
  const timeoutSeconds = fields.number('TimeoutSeconds', { min: 1, max: 99_999_999 });
  const compilation: Compilation = { machine: name, names: new Set(), started: [] };
  const chain = compileChain(fields, compilation, { hasItem: false, express: false });
  fields.end();
  return { name, chain, timeoutSeconds, started: compilation.started };
};

const placeholder = /\$\{([^}]*)\}/g;

const listed = (names: Iterable<string>): string => [...names].map((name) => JSON.stringify(name)).join(', ');

/**
 * Parses the text of an `*.asl.json` file after putting a value for each `${Name}`, inside or outside of quotes,
 * then checks it in full. A name without a value and a value without its name are both refused, so that a typing
 * error cannot pass. `machine` is the name that messages give. Throws `AslInvalid`.
 */
export const loadStateMachine = (
  text: string,
  substitutions: Readonly<Record<string, string>>,
  machine = 'unnamed',
): unknown => {
  const site = machineSite(machine);
  const used = new Set([...text.matchAll(placeholder)].map(([, name]) => name!));
  const missing = [...used].filter((name) => !Object.hasOwn(substitutions, name));
  if (missing.length > 0) reject(site, `no substitution is given for ${listed(missing)}`);
  const unused = Object.keys(substitutions).filter((name) => !used.has(name));
  if (unused.length > 0) reject(site, `the file does not use the substitution ${listed(unused)}`);
  const filled = text.replaceAll(placeholder, (_whole, name: string) =>
    JSON.stringify(substitutions[name]).slice(1, -1),
  );
  const definition = parse(filled, site);
  compileMachine(machine, definition);
  return definition;
};

const parse = (text: string, site: Site): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    return reject(site, `not JSON: ${(error as Error).message.replaceAll(/\s+/g, ' ')}`);
  }
};
