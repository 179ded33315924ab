import { canonicalJson, sha256 } from '../../../naming.ts';
import type { SessionRow, TranscriptRow } from '../format.ts';
import { quoted } from './problem-list.ts';

/** What was said in an item: its sessions as models get them, and as they were said. */
export interface Spoken {
  questionAudio: string;
  sessions: { session: SessionRow; transcript: TranscriptRow }[];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

/** Path of a kept clip; null, with the fault told, where there is none. */
const clipOf = (audio: unknown, place: string, fault: (message: string) => void): string | null => {
  if (isAbsent(audio)) fault(`${place} is missing`);
  else if (!isRecord(audio)) fault(`${place} ${quoted(audio)} is no audio`);
  else if (isAbsent(audio.bytes)) {
    fault(`${place} has no content${isAbsent(audio.path) ? '' : ` (only the path ${quoted(audio.path)})`}`);
  } else {
    const kept = audio.bytes as { clip: string } | { fault: string };
    if ('clip' in kept) return kept.clip;
    fault(`${place}: ${kept.fault}`);
  }
  return null;
};

/**
 * Checks what was said: sessions of turns in which user and assistant take turns, the user first and with audio, the
 * assistant with text and without. A user turn may lack its transcript, which then is empty. Null where there are faults.
 */
export const readSpoken = (
  fields: Record<string, unknown>,
  sessionCount: number,
  fault: (message: string) => void,
): Spoken | null => {
  let faults = 0;
  const told = (message: string): void => {
    faults += 1;
    fault(message);
  };
  const questionAudio = clipOf(fields.question_audio, 'question_audio', told);
  const sessions: Spoken['sessions'] = [];
  const given = fields.sessions;
  if (isAbsent(given)) told('sessions is missing');
  else if (!Array.isArray(given)) told(`sessions ${quoted(given)} is no list`);
  else {
    if (given.length === 0) told('sessions is empty');
    if (given.length !== sessionCount) {
      told(`session_count is ${sessionCount}, there are ${given.length} sessions`);
    }
    for (const [index, session] of (given as unknown[]).entries()) {
      const read = readSession(session, `sessions[${index}]`, told);
      if (read !== null) sessions.push(read);
    }
  }
  return faults > 0 ? null : { questionAudio: questionAudio!, sessions };
};

const readSession = (
  given: unknown,
  place: string,
  fault: (message: string) => void,
): Spoken['sessions'][number] | null => {
  if (!isRecord(given)) {
    fault(`${place} is no session`);
    return null;
  }
  const { timestamp } = given;
  if (typeof timestamp !== 'string' || timestamp === '') {
    fault(`${place}.timestamp ${isAbsent(timestamp) ? 'is missing' : `${quoted(timestamp)} is no text`}`);
  }
  const turns: SessionRow['turns'] = [];
  const said: TranscriptRow['turns'] = [];
  if (!Array.isArray(given.turns) || given.turns.length === 0) fault(`${place}.turns has no turns`);
  else {
    for (const [index, turn] of (given.turns as unknown[]).entries()) {
      const at = `${place}.turns[${index}]`;
      if (!isRecord(turn)) {
        fault(`${at} is no turn`);
        continue;
      }
      const { role, text, audio } = turn;
      const expected = index % 2 === 0 ? 'user' : 'assistant';
      if (role !== expected) {
        const known = role === 'user' || role === 'assistant';
        fault(
          `${at}.role ${quoted(role)}: ${known ? 'user and assistant take turns, the user first' : 'not one of user, assistant'}`,
        );
        continue;
      }
      if (!isAbsent(text) && typeof text !== 'string') fault(`${at}.text ${quoted(text)} is no text`);
      else if (expected === 'user') {
        const clip = clipOf(audio, `${at}.audio`, fault);
        if (clip !== null) turns.push({ role: 'user', audio: clip });
        said.push({ role: 'user', text: text ?? '' });
      } else {
        const hasAudio = isRecord(audio) ? !isAbsent(audio.bytes) || !isAbsent(audio.path) : !isAbsent(audio);
        if (hasAudio) fault(`${at}.audio: assistant turns are text alone`);
        if (isAbsent(text) || text === '') fault(`${at}.text is missing`);
        else {
          turns.push({ role: 'assistant', text });
          said.push({ role: 'assistant', text });
        }
      }
    }
  }
  // Of faulty sessions only the faults are used.
  const shown = { timestamp: String(timestamp), turns };
  const key = sha256(canonicalJson(shown));
  return {
    session: { session_key: key, ...shown },
    transcript: { session_key: key, timestamp: shown.timestamp, turns: said },
  };
};
