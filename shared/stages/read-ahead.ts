/** Reads under way at once: a bucket takes some ten milliseconds for each, whatever else it does. */
const readsAtOnce = 48;

/** Pairs of item and what `read` gave for it, in the order of the items, with many reads under way. */
export async function* readAhead<Item, Result>(
  items: Iterable<Item>,
  read: (item: Item) => Promise<Result>,
): AsyncGenerator<[Item, Result]> {
  const underWay: { item: Item; result: Promise<Result> }[] = [];
  const start = (item: Item) => {
    const result = read(item);
    // Its rejection is thrown where its turn comes; until then it must not count as unhandled.
    result.catch(() => {});
    underWay.push({ item, result });
  };
  for (const item of items) {
    start(item);
    if (underWay.length < readsAtOnce) continue;
    const { item: first, result } = underWay.shift()!;
    yield [first, await result];
  }
  for (const { item, result } of underWay) yield [item, await result];
}
