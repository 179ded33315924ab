import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { createEvaluatorApp } from '../../infra/evaluator-app.ts';

// biome-ignore lint/suspicious/noExplicitAny: templates have no types
export type Properties = Record<string, any>;
export interface Resource {
  Type: string;
  Properties: Properties;
  DeletionPolicy?: string;
}

export interface Synthesized {
  resources: (stack: string, type: string) => Record<string, Resource>;
  /** The only resource of its type whose property has the value. */
  named: (stack: string, type: string, property: string, value: string) => [string, Resource];
}

/** Templates of the whole app without bundling; `context` as on the command line. */
export const synthesize = (context: Record<string, unknown> = {}): Synthesized => {
  const app = createEvaluatorApp({ context: { 'aws:cdk:bundling-stacks': [], ...context } });
  const templates = new Map(
    app.node.children
      .filter((child): child is Stack => Stack.isStack(child))
      .map((stack) => [stack.node.id, Template.fromStack(stack).toJSON()]),
  );
  const resources = (stack: string, type: string): Record<string, Resource> =>
    Object.fromEntries(
      Object.entries((templates.get(stack)?.Resources ?? {}) as Record<string, Resource>).filter(
        ([, resource]) => resource.Type === type,
      ),
    );
  return {
    resources,
    named: (stack, type, property, value) => {
      const found = Object.entries(resources(stack, type)).filter(
        ([, resource]) => resource.Properties[property] === value,
      );
      if (found.length !== 1)
        throw new Error(`${found.length} resources ${type} with ${property} = ${value}`);
      return found[0]!;
    },
  };
};

/** A value of a template as text: references and imports become their names in angle brackets. */
export const asText = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (value === null || typeof value !== 'object') return String(value);
  const [[name, argument]] = Object.entries(value as Properties) as [[string, Properties[string]]];
  switch (name) {
    case 'Ref':
      return `<${argument}>`;
    case 'Fn::GetAtt':
      return `<${argument[0]}.${argument[1]}>`;
    case 'Fn::ImportValue':
      return `<${asText(argument)}>`;
    case 'Fn::Join':
      return argument[1].map(asText).join(argument[0]);
    case 'Fn::Select':
      return `<part ${argument[0]} of ${asText(argument[1])}>`;
    case 'Fn::Split':
      return `${asText(argument[1])} split by ${argument[0]}`;
    default:
      throw new Error(`no text for ${JSON.stringify(value)}`);
  }
};

export interface Statement {
  Effect: 'Allow' | 'Deny';
  Action: string | string[];
  Resource: unknown;
  Condition?: Record<string, Record<string, unknown>>;
}

const listOf = <T>(value: T | T[]): T[] => (Array.isArray(value) ? value : [value]);

/** Every statement of a role: in its own policies and in those attached to it. */
export const statementsOf = (app: Synthesized, stack: string, roleId: string): Statement[] => {
  const own = app.resources(stack, 'AWS::IAM::Role')[roleId]!.Properties.Policies ?? [];
  const attached = Object.values(app.resources(stack, 'AWS::IAM::Policy')).filter((policy) =>
    policy.Properties.Roles.some((role: { Ref?: string }) => role.Ref === roleId),
  );
  return [...own, ...attached.map((policy) => policy.Properties)].flatMap(
    (policy) => policy.PolicyDocument.Statement as Statement[],
  );
};

/** IAM's own matching: a star stands for anything, slashes too. */
const fits = (pattern: string, text: string): boolean =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  ).test(text);

/** Pattern of keys in a resource of the bucket; null for other resources. */
const keyPattern = (resource: unknown): string | null =>
  /RunBucket[^>]*>\/(.*)$/.exec(asText(resource))?.[1] ?? (asText(resource) === '*' ? '*' : null);

export const actionsOf = (statement: Statement): string[] => listOf(statement.Action);
export const resourcesOf = (statement: Statement): string[] => listOf(statement.Resource).map(asText);

/** May these statements do `action` to `key` of the run bucket? */
export const mayTouch = (statements: readonly Statement[], action: string, key: string): boolean => {
  const about = statements.filter(
    (statement) =>
      actionsOf(statement).some((pattern) => fits(pattern, action)) &&
      listOf(statement.Resource).some((resource) => {
        const pattern = keyPattern(resource);
        return pattern !== null && fits(pattern, key);
      }),
  );
  return about.some(({ Effect }) => Effect === 'Allow') && !about.some(({ Effect }) => Effect === 'Deny');
};

/** May these statements list keys that begin with `prefix`? */
export const mayList = (statements: readonly Statement[], prefix: string): boolean =>
  statements.some(
    (statement) =>
      statement.Effect === 'Allow' &&
      actionsOf(statement).some((pattern) => fits(pattern, 's3:ListBucket')) &&
      listOf((statement.Condition?.StringLike?.['s3:prefix'] as string | string[] | undefined) ?? '*').some(
        (pattern) => fits(pattern, prefix),
      ),
  );
