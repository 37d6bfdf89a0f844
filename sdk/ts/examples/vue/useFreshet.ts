import { onScopeDispose, shallowRef, type ShallowRef } from 'vue';
import { subscribe, type FreshetError, type Options, type State } from '@freshet/client';

/**
 * Follows a topic for as long as the component (or effect scope) is there. The document is replaced, never changed in place,
 * so a shallow reference is enough and costs nothing for large documents.
 */
export function useFreshet<T>(
  topic: string,
  options: Options = {},
): {
  document: Readonly<ShallowRef<T | undefined>>;
  state: Readonly<ShallowRef<State>>;
  error: Readonly<ShallowRef<FreshetError | undefined>>;
} {
  const stream = subscribe<T>(topic, options);
  const document = shallowRef<T | undefined>();
  const state = shallowRef(stream.state);
  const error = shallowRef<FreshetError | undefined>();
  stream.on('snapshot', event => {
    document.value = event.document;
    error.value = undefined;
  });
  stream.on('patch', event => (document.value = event.document));
  stream.on('state', now => (state.value = now));
  stream.on('error', failure => (error.value = failure));
  onScopeDispose(() => stream.close());
  return { document, state, error };
}
