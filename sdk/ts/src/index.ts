import { Stream, type Options } from './stream.js';

export { Stream, type Options, type State, type SnapshotEvent, type PatchEvent, type StreamEvent } from './stream.js';
export { FreshetError, type Category } from './error.js';
export { applyPatch, type JSONValue, type Operation } from './json.js';
export { sign } from './sign.js';
export type { TransportName } from './transport.js';

/**
 * Follows a topic: `stream.document` is always its current document.
 *
 * The topic is named by its id, with the option `server`, or by the URL of its stream. Any other URL, with `server`, is a data
 * source for the server to poll.
 */
export function subscribe<T = unknown>(topic: string, options: Options = {}): Stream<T> {
  return new Stream<T>(topic, options);
}
