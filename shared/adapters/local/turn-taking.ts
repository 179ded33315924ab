/** Small operations in a row before timers, signals and sockets get their turn. */
const operationsPerTurn = 64;

/** Lets the event loop turn once in so many operations: they never wait themselves and would starve it. */
export const createTurnTaking = (): (() => Promise<void> | undefined) => {
  let operations = 0;
  let turn: Promise<void> | undefined;
  return () => {
    if (turn !== undefined) return turn;
    operations += 1;
    if (operations < operationsPerTurn) return undefined;
    turn = new Promise((resolve) => {
      setImmediate(() => {
        operations = 0;
        turn = undefined;
        resolve();
      });
    });
    return turn;
  };
};
