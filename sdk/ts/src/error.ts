import { isFinal } from './codes.js';

/** What kind of failure it is: the client's, the server's, the topic's (its data source), or on this side of the wire. */
export type Category = 'ClientException' | 'ServerException' | 'TopicException' | 'LocalException';

/** A failure that the server told of in an error event, or that happened on this side (code 0). */
export class FreshetError extends Error {
  override readonly name = 'FreshetError';

  constructor(
    message: string,
    /** See the table of codes: 4xxxx is the client's fault, 5xxxx the server's, 6xxxx the data source's. */
    readonly code = 0,
    readonly category: Category = 'LocalException',
    /** Names the occurrence, for questions to whoever runs the server. */
    readonly sessionId?: string,
    /** The stream has ended and will not come back: trying again would give the same answer. */
    readonly fatal = false,
  ) {
    super(message);
  }
}

interface ErrorData {
  code: number;
  category: Category;
  message: string;
  sessionId: string;
}

/** Reads the data of an error event. */
export function readError(data: unknown): FreshetError {
  const { code = 0, category, message, sessionId } = (data ?? {}) as Partial<ErrorData>;
  return new FreshetError(message ?? 'The server reported an error', code, category ?? 'ServerException', sessionId, isFinal(code));
}
