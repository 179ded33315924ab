export interface NameIndex {
  /** Entry of a name, or -1. */
  find(name: Uint8Array): number;
  /** Says where the content of a name lies from now on; length 0 for nowhere. */
  set(name: Uint8Array, offset: number, length: number): void;
  offset(entry: number): number;
  length(entry: number): number;
  /** Names that have content, in no order. */
  names(): string[];
}

const firstEntries = 1024;
const firstNameBytes = 64 * 1024;

/**
 * Where contents lie, by name, in typed arrays: some 80 bytes for a name of 37, nothing of it for the
 * garbage collector to walk through. A hash table with open addressing; entries are never removed.
 */
export const createNameIndex = (): NameIndex => {
  let count = 0;
  let offsets = new Float64Array(firstEntries);
  let lengths = new Uint32Array(firstEntries);
  let hashes = new Uint32Array(firstEntries);
  /** Where a name ends in `names`, which is where the next one begins. */
  let ends = new Uint32Array(firstEntries);
  let names = Buffer.alloc(firstNameBytes);
  /** Entry + 1, or 0; twice as many as entries at least. */
  let slots = new Int32Array(2 * firstEntries);

  const startOf = (entry: number): number => (entry === 0 ? 0 : ends[entry - 1]!);

  const slotOf = (name: Uint8Array, hash: number): number => {
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (; slots[slot] !== 0; slot = (slot + 1) & mask) {
      const entry = slots[slot]! - 1;
      if (hashes[entry] !== hash || ends[entry]! - startOf(entry) !== name.length) continue;
      if (names.compare(name, 0, name.length, startOf(entry), ends[entry]) === 0) break;
    }
    return slot;
  };

  const makeRoom = (nameBytes: number): void => {
    const usedBytes = count === 0 ? 0 : ends[count - 1]!;
    if (usedBytes + nameBytes > names.length) {
      const larger = Buffer.alloc(Math.max(2 * names.length, usedBytes + nameBytes));
      names.copy(larger, 0, 0, usedBytes);
      names = larger;
    }
    if (count < offsets.length) return;
    offsets = larger(offsets, Float64Array);
    lengths = larger(lengths, Uint32Array);
    hashes = larger(hashes, Uint32Array);
    ends = larger(ends, Uint32Array);
    slots = new Int32Array(2 * offsets.length);
    const mask = slots.length - 1;
    for (let entry = 0; entry < count; entry += 1) {
      let slot = hashes[entry]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
  };

  return {
    find: (name) => slots[slotOf(name, hashOf(name))]! - 1,
    set(name, offset, length) {
      const hash = hashOf(name);
      let entry = slots[slotOf(name, hash)]! - 1;
      if (entry < 0) {
        makeRoom(name.length);
        entry = count;
        count += 1;
        slots[slotOf(name, hash)] = entry + 1;
        hashes[entry] = hash;
        ends[entry] = startOf(entry) + name.length;
        names.set(name, startOf(entry));
      }
      offsets[entry] = offset;
      lengths[entry] = length;
    },
    offset: (entry) => offsets[entry]!,
    length: (entry) => lengths[entry]!,
    names() {
      const found: string[] = [];
      for (let entry = 0; entry < count; entry += 1) {
        if (lengths[entry] !== 0) found.push(names.toString('utf8', startOf(entry), ends[entry]));
      }
      return found;
    },
  };
};

const larger = <Numbers extends Float64Array | Uint32Array>(
  numbers: Numbers,
  make: new (length: number) => Numbers,
): Numbers => {
  const twice = new make(2 * numbers.length);
  twice.set(numbers);
  return twice;
};

/** FNV-1a, 32 bits, with a last mix so that its low bits are good enough for a table. */
const hashOf = (name: Uint8Array): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name[at]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
};
