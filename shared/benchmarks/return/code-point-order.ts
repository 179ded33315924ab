const surrogateShift = 0x10000;

const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + surrogateShift : unit);

/**
 * Order of two strings by Unicode code points, as the release's Python sorts them. JavaScript's own
 * order goes by UTF-16 units and differs where one string has a character above U+FFFF.
 */
export function byCodePoint(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index += 1) {
    const difference = rank(a.charCodeAt(index)) - rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
