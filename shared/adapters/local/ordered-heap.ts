/** An element's place in the heap, to remove it before its turn. */
export interface HeapEntry<Value> {
  readonly order: number;
  readonly value: Value;
}

interface Slot<Value> extends HeapEntry<Value> {
  sequence: number;
  /** Position in the heap; -1 once it has left. */
  index: number;
}

export interface OrderedHeap<Value> {
  readonly size: number;
  push(order: number, value: Value): HeapEntry<Value>;
  /** The entry with the lowest order, of equals the first pushed. */
  first(): HeapEntry<Value> | undefined;
  /** False if the entry has left already. */
  remove(entry: HeapEntry<Value>): boolean;
}

/** A binary heap that keeps insertion order among equals. All changes take O(log n). */
export const createOrderedHeap = <Value>(): OrderedHeap<Value> => {
  const slots: Slot<Value>[] = [];
  let pushed = 0;

  const isBefore = (a: Slot<Value>, b: Slot<Value>): boolean =>
    a.order < b.order || (a.order === b.order && a.sequence < b.sequence);
  const place = (slot: Slot<Value>, index: number): void => {
    slots[index] = slot;
    slot.index = index;
  };
  const rise = (slot: Slot<Value>): void => {
    while (slot.index > 0) {
      const parent = slots[(slot.index - 1) >> 1]!;
      if (!isBefore(slot, parent)) return;
      const { index } = parent;
      place(parent, slot.index);
      place(slot, index);
    }
  };
  const sink = (slot: Slot<Value>): void => {
    for (;;) {
      const [left, right] = [slots[2 * slot.index + 1], slots[2 * slot.index + 2]];
      if (left === undefined) return;
      const child = right !== undefined && isBefore(right, left) ? right : left;
      if (!isBefore(child, slot)) return;
      const { index } = child;
      place(child, slot.index);
      place(slot, index);
    }
  };

  return {
    get size() {
      return slots.length;
    },
    push(order, value) {
      const slot: Slot<Value> = { order, value, sequence: pushed, index: slots.length };
      pushed += 1;
      slots.push(slot);
      rise(slot);
      return slot;
    },
    first: () => slots[0],
    remove(entry) {
      const slot = entry as Slot<Value>;
      if (slots[slot.index] !== slot) return false;
      const last = slots.pop()!;
      if (last !== slot) {
        place(last, slot.index);
        rise(last);
        sink(last);
      }
      slot.index = -1;
      return true;
    },
  };
};
