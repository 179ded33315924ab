import { prepareMediaHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createPrepareMedia } from './prepare-media.ts';

export const handler = prepareMediaHandler(createPrepareMedia);
