/** All items of a stream. */
export const collect = async <Item>(stream: AsyncIterable<Item>): Promise<Item[]> => {
  const items: Item[] = [];
  for await (const item of stream) items.push(item);
  return items;
};
