import type { ClipForms } from '../domain/media.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import { unknownUsage } from '../domain/outcome.ts';
import type { ResolvedClip } from '../domain/request.ts';
import { errorNames, TurnsweepError } from '../errors.ts';
import type { ClipSource, LoadedClip } from '../ports/model-client.ts';

/**
 * The one file of a clip for a provider that fetches nothing from us, whatever its size.
 * Throws `ContractViolated` for several files and for content that is not bare base64.
 */
export const loadWholeClip = async (
  clips: ClipSource,
  clip: ResolvedClip,
  forms: Pick<ClipForms, 'audio' | 'video'>,
): Promise<LoadedClip> => {
  const files = await clips.load(clip, { form: forms[clip.type], inlineBytesAtMost: null });
  const [file] = files;
  if (file === undefined || files.length !== 1) {
    throw new TurnsweepError(errorNames.contractViolated, 'a clip is not one file', { where: clip.path });
  }
  if (file.type === 'inline' && (file.base64.length % 4 !== 0 || file.base64.startsWith('data:'))) {
    throw new TurnsweepError(errorNames.contractViolated, 'clip is not bare base64', { where: clip.path });
  }
  return file;
};

/** A request that is not sent because the provider would refuse its size. */
export const requestTooLarge = (bytes: number, bytesAtMost: number): CallOutcome => ({
  status: 'failed',
  kind: 'request_too_large',
  message: `the request has ${bytes} bytes with its clips inline; the provider takes ${bytesAtMost}; send fewer or smaller clips (settings.videoMaxSide)`,
  httpStatus: null,
  responseId: null,
  servedModel: null,
  finishReason: null,
  usage: unknownUsage,
});
