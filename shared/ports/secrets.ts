/** Keys of providers. Values never enter logs, records or errors. */
export interface Secrets {
  /** The secret's value; throws `UsageWrong` naming the secret, never its value, where it is not set. */
  get(name: string): Promise<string>;
}
