/** A message of an event stream. */
export interface Message {
  event: string;
  data: string;
  id: string | undefined;
  /** How many characters its lines have, with one for the end of each. */
  length: number;
}

/** Takes an event stream apart, in pieces as they arrive. */
export class Parser {
  #rest = '';
  #event = '';
  #data: string | undefined;
  #id: string | undefined;
  #length = 0;
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
    let from = 0;
    let cr = piece.indexOf('\r'); // Freshet sends none; others may
    for (let lf = piece.indexOf('\n'); lf >= 0 || cr >= 0; ) {
      const end = cr < 0 || (lf >= 0 && lf < cr) ? lf : cr;
      this.#line(this.#rest === '' ? piece.slice(from, end) : this.#rest + piece.slice(from, end));
      this.#rest = '';
      from = end + 1;
      if (end === cr) {
        if (from === piece.length) this.#skipLF = true;
        else if (lf === from) from++;
        cr = piece.indexOf('\r', from);
      }
      if (lf < from) lf = piece.indexOf('\n', from);
    }
    this.#rest += piece.slice(from);
  }

  #line(line: string): void {
    this.#length += line.length + 1;
    if (line === '') this.#dispatch();
    else if (line.startsWith('data: ')) this.#field('data', line.slice(6));
    else if (line[0] !== ':') {
      // which begins a comment: a heartbeat, or padding
      const colon = line.indexOf(':');
      this.#field(colon < 0 ? line : line.slice(0, colon), colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1));
    }
  }

  #field(name: string, value: string): void {
    switch (name) {
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
    const message = { event: this.#event || 'message', data: this.#data ?? '', id: this.#id, length: this.#length };
    const whole = this.#data !== undefined;
    this.#event = '';
    this.#length = 0;
    this.#data = this.#id = undefined;
    if (whole) this.onMessage(message);
  }
}
