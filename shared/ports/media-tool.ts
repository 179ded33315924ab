import type { Making, MediaFacts } from '../domain/media-facts.ts';

/** A room of its own for the work on one clip; what is in it goes with `close`. */
export interface MediaWorkspace {
  /** Puts a file under a name without slashes. */
  put(name: string, content: Uint8Array): Promise<void>;
  /**
   * What a file holds, looked at from its beginning to its end.
   * Throws `MediaUnusable` for content that is no audio or video.
   */
  probe(name: string): Promise<MediaFacts>;
  /** Makes files from files in the room and gives their names in order. Throws `MediaUnusable` where that cannot be done. */
  make(making: Making): Promise<string[]>;
  read(name: string): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Looks into media files and converts them. What is wrong with the tool itself is `UsageWrong` or `MediaToolFailed`. */
export interface MediaTool {
  /** Name and version, for the record of what was made. */
  version(): Promise<string>;
  open(): Promise<MediaWorkspace>;
}
