/** A file of fixed content, of which any part can be read without reading the rest. */
export interface ByteSource {
  /** As people should see it in messages. */
  name: string;
  byteLength: number;
  /** How much to read at a time where all of it is wanted: what is worth a request. */
  windowBytes: number;
  /**
   * Exactly the bytes from `start` up to, but not including, `end`, in memory of their own. Throws `ObjectChanged` where
   * the content was replaced since the source was opened, `StorageFailed` where it cannot be read or ends before `end`.
   */
  read(start: number, end: number): Promise<Uint8Array>;
  /** The same into memory of the caller's: from `start`, as many bytes as `target` has. */
  readInto(target: Uint8Array, start: number): Promise<void>;
  close(): Promise<void>;
}

export interface ListedFile {
  /** Relative to the folder or prefix, with `/` between its parts. */
  name: string;
  bytes: number;
  /** Changes whenever the content does: modification time or ETag. */
  version: string;
}

/** Files below one folder, or objects under one prefix. Names never lead out of it. */
export interface FileSet {
  /** All files at any depth by name; those in folders whose names begin with a dot are left out. */
  list(): Promise<ListedFile[]>;
  /** Null where there is no such file. Throws `BenchmarkInvalid` for a name that leads out of the set. */
  find(name: string): Promise<ListedFile | null>;
  /** Throws `ObjectMissing` where there is no such file, `BenchmarkInvalid` for a name that leads out of the set. */
  open(name: string): Promise<ByteSource>;
}
