import { generateTurnsHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createGenerateTurns } from './generate-turns.ts';

export const handler = generateTurnsHandler(createGenerateTurns);
