/** A JSON object as read from free text; a Map, so that no key can touch a prototype. */
export type JsonObject = Map<string, JsonValue>;
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

const maxDepth = 64;
const space = /(?:[ \t\r\n]+|\/\/[^\n]*(?:\n|$))*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const plainCharacters = /[^"\\\p{Cc}]+/uy;
const escaped = /\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/y;
const word = /true|false|null/y;
/** A bracket that goes on like this was meant as JSON; any other is a bracket of the prose. */
const jsonHead = /\[\s*[[{"/\d-]|\{\s*["/]/y;

const shortEscapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const words: Record<string, boolean | null> = { true: true, false: false, null: null };

class NotJson extends Error {}

function createReader(text: string, start: number) {
  let at = start;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const take = (character: string): boolean => {
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  const fail = (expected: string): never => {
    throw new NotJson(`${expected} expected at character ${at + 1}`);
  };

  const readString = (): string => {
    if (!take('"')) fail('a string');
    let value = '';
    while (!take('"')) {
      const plain = match(plainCharacters);
      if (plain !== null) {
        value += plain[0];
        continue;
      }
      const sequence = match(escaped);
      if (sequence !== null) {
        const [, short, hex] = sequence;
        value +=
          hex === undefined
            ? (shortEscapes[short!] ?? short!)
            : String.fromCharCode(Number.parseInt(hex, 16));
        continue;
      }
      const raw = text[at];
      if (raw === undefined || !(raw === '\n' || raw === '\r' || raw === '\t' || raw >= '\x7f')) {
        fail('the end of a string');
      }
      value += raw;
      at += 1;
    }
    return value;
  };

  const readValue = (depth: number): JsonValue => {
    if (depth > maxDepth) fail('less nesting');
    match(space);
    if (text[at] === '"') return readString();
    if (take('[')) return readList(']', () => readValue(depth + 1));
    if (take('{')) {
      const object: JsonObject = new Map();
      readList('}', () => {
        match(space);
        const key = readString();
        if (object.has(key)) fail('another key, not the same one twice,');
        match(space);
        if (!take(':')) fail('a colon');
        object.set(key, readValue(depth + 1));
      });
      return object;
    }
    const digits = match(number);
    if (digits !== null) return Number(digits[0]);
    return words[match(word)?.[0] ?? fail('a JSON value')]!;
  };

  const readList = <T>(close: string, readElement: () => T): T[] => {
    const elements: T[] = [];
    match(space);
    if (take(close)) return elements;
    do {
      elements.push(readElement());
      match(space);
    } while (take(','));
    if (!take(close)) fail(`a comma or ${close}`);
    return elements;
  };

  return { readValue, position: () => at };
}

/**
 * Every JSON array and object that stands in a text, outermost ones only, whatever prose or fences are
 * around them. Beyond RFC 8259 it takes `//` comments between tokens and raw line ends and tabs inside
 * strings; a key given twice is refused. `broken` says where something that was meant as JSON is not:
 * nothing of such a text should be used, since its inner parts may look whole.
 */
export function findJson(text: string): { values: JsonValue[] } | { broken: string } {
  const values: JsonValue[] = [];
  const bracket = /[[{]/g;
  for (let found = bracket.exec(text); found !== null; found = bracket.exec(text)) {
    const reader = createReader(text, found.index);
    try {
      values.push(reader.readValue(0));
      bracket.lastIndex = reader.position();
    } catch (error) {
      if (!(error instanceof NotJson)) throw error;
      jsonHead.lastIndex = found.index;
      if (jsonHead.test(text)) return { broken: error.message };
    }
  }
  return { values };
}
