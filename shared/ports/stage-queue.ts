export interface ReceivedMessage {
  messageId: string;
  /** Handle of this delivery: extends or deletes it while its visibility lasts. */
  receipt: string;
  body: string;
  /** How often the message has been received, this time included. */
  receiveCount: number;
}

export interface QueueSettings {
  visibilitySeconds: number;
  /** After this many receives without a delete the message goes to the dead letters. */
  maxReceiveCount: number;
}

/** At-least-once messages: a received message is hidden for a while, then comes back unless deleted. */
export interface StageQueue {
  send(body: string, options?: { delaySeconds?: number }): Promise<string>;
  /** Waits up to `waitSeconds` for a first message; at most `max` (1–10). */
  receive(max: number, waitSeconds: number): Promise<ReceivedMessage[]>;
  /** Hides the delivery for another `visibilitySeconds` from now; 0 gives it back at once. */
  extend(receipt: string, visibilitySeconds: number): Promise<void>;
  /** Done with the message. A stale receipt is no error. */
  delete(receipt: string): Promise<void>;
  /** Approximate counts: waiting, hidden, dead. */
  depth(): Promise<{ visible: number; hidden: number; dead: number }>;
  /** Bodies of the dead letters, oldest first. */
  deadLetters(): Promise<string[]>;
}
