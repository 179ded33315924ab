export { createClipSource, extensionOf } from '../shared/stages/clip-source.ts';
