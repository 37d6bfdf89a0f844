import { Events, type Options } from './events.js';
import { Stream } from './stream.js';

export { FreshetError, type Category } from './error.js';
export { Events, type Options, type State, type Trouble } from './events.js';
export { applyPatch, type Change, type JSONValue, type Operation } from './json.js';
export type { Parse, RawEvent } from './message.js';
export { escapeName, unescapeName } from './pointer.js';
export { sign } from './sign.js';
export { Stream, type SnapshotEvent, type PatchEvent, type StreamEvent } from './stream.js';
export type { TransportName } from './transport.js';
export type { Patience } from './watch.js';

/**
 * Follows a topic: `stream.document` is always its current document.
 *
 * The topic is named by its id, with the option `server`, or by the URL of its stream. Any other URL, with `server`, is a data
 * source for the server to poll.
 */
export function subscribe<T = unknown>(topic: string, options: Options = {}): Stream<T> {
  return new Stream<T>(topic, options);
}

/** Follows a topic event by event, as text, and makes no document of them. Topics are named as for {@link subscribe}. */
export function events(topic: string, options: Options = {}): Events {
  return new Events(topic, options);
}
