/** Uniform numbers in [0, 1), so that tests can seed them. */
export interface Random {
  next(): number;
}
