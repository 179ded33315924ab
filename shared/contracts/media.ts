import { z } from 'zod';
import type { ClipForm } from '../domain/media.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const side = z.number().int().positive();
const rate = z.number().positive();

export const clipForm: z.ZodType<ClipForm> = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('video'), maxSide: side, fps: rate.nullable() }),
  z.strictObject({ kind: z.literal('frames'), maxSide: side, fps: rate }),
  z.strictObject({ kind: z.literal('wav') }),
  z.strictObject({
    kind: z.literal('video-with-sound'),
    maxSide: side,
    fps: rate.nullable(),
    sound: z.strictObject({ path: z.string(), sha256 }),
  }),
]);

/** One item of the Map that prepares clips, and the input of its stage. */
export const clipToPrepare = z.strictObject({
  /** The path is for people; content is found by its hash. */
  clip: z.strictObject({ path: z.string(), sha256 }),
  form: clipForm,
});
export type ClipToPrepare = z.infer<typeof clipToPrepare>;

/** What was made of a clip. Written last: where it is, the files are. */
export const derivedRecord = z.discriminatedUnion('status', [
  z.strictObject({
    v: z.literal(1),
    status: z.literal('made'),
    recipe: z.string(),
    tool: z.string(),
    mime: z.string(),
    files: z.array(z.strictObject({ name: z.string(), bytes: z.number().int().positive(), sha256 })).min(1),
    /** Length of the original in seconds. */
    seconds: z.number(),
    /** Of the picture, in px. */
    width: z.number().int().nullable(),
    height: z.number().int().nullable(),
  }),
  /** The original has the form already and is sent as it is. */
  z.strictObject({
    v: z.literal(1),
    status: z.literal('same'),
    recipe: z.string(),
    tool: z.string(),
    bytes: z.number().int().positive(),
  }),
  z.strictObject({
    v: z.literal(1),
    status: z.literal('unusable'),
    recipe: z.string(),
    tool: z.string(),
    reason: z.string(),
  }),
]);
export type DerivedRecord = z.infer<typeof derivedRecord>;
