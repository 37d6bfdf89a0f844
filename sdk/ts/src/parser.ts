/** A message of an event stream. */
export interface Message {
  event: string;
  data: string;
  id: string | undefined;
}

/** Takes an event stream apart, in pieces as they arrive. */
export class Parser {
  #rest = '';
  #event = '';
  #data: string | undefined;
  #id: string | undefined;
  #skipLF = false; // the last piece ended with CR, and the next may begin with its LF

  constructor(
    private readonly onMessage: (message: Message) => void,
    private readonly onRetry: (milliseconds: number) => void,
  ) {}

  push(piece: string): void {
    if (this.#skipLF && piece !== '') {
      this.#skipLF = false;
      if (piece[0] === '\n') piece = piece.slice(1);
    }
    // Only the new piece is searched: a large event comes in many, and must not be read from its beginning each time.
    const end = /\r\n?|\n/g;
    let from = 0;
    for (let found; (found = end.exec(piece)); from = end.lastIndex) {
      const line = this.#rest + piece.slice(from, found.index);
      this.#rest = '';
      if (found[0] === '\r' && end.lastIndex === piece.length) this.#skipLF = true;
      this.#line(line);
    }
    this.#rest += piece.slice(from);
  }

  #line(line: string): void {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment: a heartbeat, or padding
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        this.#data = this.#data === undefined ? value : this.#data + '\n' + value;
        break;
      case 'event':
        this.#event = value;
        break;
      case 'id':
        this.#id = value;
        break;
      case 'retry':
        if (/^\d+$/.test(value)) this.onRetry(+value);
    }
  }

  #dispatch(): void {
    const message = { event: this.#event || 'message', data: this.#data ?? '', id: this.#id };
    const whole = this.#data !== undefined;
    this.#event = '';
    this.#data = this.#id = undefined;
    if (whole) this.onMessage(message);
  }
}
