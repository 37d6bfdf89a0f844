// Waiting for things to happen in tests; the time limit is there for things that never do.
const patience = 120_000;

/** Resolves with the next value of a stream's event that fits. */
export function next(stream, type, fits = () => true) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no such ${type}; the stream is ${stream.state}, holds ${JSON.stringify(stream.document)}`)),
      patience,
    );
    const off = stream.on(type, value => {
      if (!fits(value)) return;
      clearTimeout(timer);
      off();
      resolve(value);
    });
  });
}

/** Resolves when the stream holds such a document. */
export function holds(stream, fits) {
  if (stream.document !== undefined && fits(stream.document)) return Promise.resolve(stream.document);
  return new Promise((resolve, reject) => {
    const offs = [];
    const timer = setTimeout(() => reject(new Error(`the stream is ${stream.state}, holds ${JSON.stringify(stream.document)}`)), patience);
    for (const type of ['snapshot', 'patch']) {
      offs.push(
        stream.on(type, ({ document }) => {
          if (!fits(document)) return;
          clearTimeout(timer);
          for (const off of offs) off();
          resolve(document);
        }),
      );
    }
  });
}
