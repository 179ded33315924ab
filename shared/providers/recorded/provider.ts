import { asTheyAre } from '../../domain/media.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { commonCapabilities } from '../openai-compatible/provider.ts';
import type { Provider } from '../provider.ts';
import { createRecordedClient } from './client.ts';

/** Plays a recording: nothing is sent anywhere. */
export const recorded: Provider = {
  capabilities: () => commonCapabilities,
  clipForms: () => asTheyAre,
  usualBaseUrl: null,
  createClient: (lane, { recording }) => {
    if (recording !== null) return createRecordedClient(recording);
    throw new TurnsweepError(errorNames.usage, 'provider recorded needs a recording', { where: lane.model });
  },
  createCaller: null,
};
