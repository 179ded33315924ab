import type { FetchedMedium } from './media.ts';

/**
 * Fetches the media that a body names at hosts which stand for the public internet; `origins` tells where they really
 * are. Null for what cannot be had there.
 */
export const fetchMedia = async (
  body: string,
  origins: Readonly<Record<string, string>>,
): Promise<Map<string, FetchedMedium | null>> => {
  const found = new Map<string, FetchedMedium | null>();
  for (const [url] of body.matchAll(/https?:\/\/[^"\\\s]+/g)) {
    const origin = URL.canParse(url) ? origins[new URL(url).host] : undefined;
    if (origin === undefined || found.has(url)) continue;
    const { pathname, search } = new URL(url);
    const answer = await fetch(`${origin}${pathname}${search}`).catch(() => null);
    if (!answer?.ok) {
      await answer?.body?.cancel();
      found.set(url, null);
      continue;
    }
    const isDescribed = answer.headers.has('content-length') && answer.headers.has('content-type');
    found.set(url, { bytes: Buffer.from(await answer.arrayBuffer()), isDescribed });
  }
  return found;
};
