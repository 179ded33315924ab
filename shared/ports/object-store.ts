/** Bytes under keys. On AWS a bucket, on one machine a folder with the same keys. */
export interface ObjectStore {
  /** Content as UTF-8 text, or null where there is no such key. */
  getText(key: string): Promise<string | null>;
  /** Content as bytes, or null where there is no such key. */
  getBytes(key: string): Promise<Uint8Array | null>;
  /** Writes whole or not at all; replaces what was there. */
  put(key: string, body: string | Uint8Array): Promise<void>;
  /** First writer wins: true if this call wrote, false if the key was there (which stays untouched). */
  putIfAbsent(key: string, body: string | Uint8Array): Promise<boolean>;
  /** Version tag of a key's content for `putIfMatch`, or null where there is no such key. */
  tag(key: string): Promise<string | null>;
  /** Replaces only content that still has `tag`; false if it changed or went. */
  putIfMatch(key: string, body: string | Uint8Array, tag: string): Promise<boolean>;
  /** Removes a key; no error where there is none. */
  delete(key: string): Promise<void>;
  /** Keys that begin with `prefix`, in ascending order of their UTF-8 bytes. */
  list(prefix: string): AsyncIterable<string>;
  /**
   * Lines of a text object without their ends, streamed; a last line without a newline counts.
   * Throws `ObjectMissing` where there is no such key.
   */
  lines(key: string): AsyncIterable<string>;
  /** Streams lines into a new object, visible only when complete; returns how many were written. */
  putLines(key: string, lines: Iterable<string> | AsyncIterable<string>): Promise<number>;
}
