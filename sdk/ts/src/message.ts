/** An event as it came, before anything is made of it. */
export interface RawEvent {
  /** `snapshot`, `patch`, `error`; or `data`, which is a snapshot where whole documents were asked for. */
  readonly event: string;
  readonly id: string | undefined;
  /** The JSON text. Long polling brings several events in one answer; then it is the text of the same value. */
  readonly data: string;
  /** How many bytes its frame has, decompressed. */
  readonly bytes: number;
  /** What the data says, as the option `parse` reads it. Throws if it is no JSON. */
  read(): unknown;
}

/** Reads JSON. */
export type Parse = (text: string) => unknown;

const utf8 = new TextEncoder();

/** An event that a transport brought. */
export class Message implements RawEvent {
  readonly #text: () => string;
  readonly #length: number | undefined;

  constructor(
    readonly event: string,
    readonly id: string | undefined,
    text: () => string,
    readonly read: () => unknown,
    /** Of its frame, in characters, if there was one. Only data has characters beyond ASCII. */
    length?: number,
  ) {
    this.#text = text;
    this.#length = length;
  }

  get data(): string {
    return this.#text();
  }

  get bytes(): number {
    const { data } = this;
    return (this.#length ?? this.#frameLength(data)) - data.length + utf8.encode(data).length;
  }

  /** As Freshet writes it: `event`, `data` and `id` on lines of their own, then an empty one. */
  #frameLength(data: string): number {
    return `event: ${this.event}\ndata: ${data}\n\n`.length + (this.id ? `id: ${this.id}\n`.length : 0);
  }
}
