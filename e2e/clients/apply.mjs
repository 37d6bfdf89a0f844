// A follower applies what its client hands over with every public applier, and says what the documents are now.
import fastJSONPatch from 'fast-json-patch';
import { applyPatch as applyRFC6902 } from 'rfc6902';

const appliers = {
  'fast-json-patch': (old, patch) => fastJSONPatch.applyPatch(old, patch, true).newDocument,
  rfc6902: (old, patch) => {
    const failed = applyRFC6902(old, patch).find(error => error !== null);
    if (failed) throw failed;
    return old;
  },
};

export const say = what => process.stdout.write(JSON.stringify(what) + '\n');

export class Follower {
  #client;
  #documents = {};

  constructor(client) {
    this.#client = client;
  }

  snapshot(text) {
    for (const applier of Object.keys(appliers)) this.#show(applier, JSON.parse(text));
  }

  patch(text) {
    for (const [applier, apply] of Object.entries(appliers)) {
      // Parsed anew for each, because appliers work in place and keep parts of the patch.
      try {
        this.#show(applier, apply(this.#documents[applier], JSON.parse(text)));
      } catch (error) {
        say({ client: this.#client, failed: `${applier}: ${error}: ${text}` });
      }
    }
  }

  error(text) {
    say({ client: this.#client, error: text });
  }

  #show(applier, document) {
    this.#documents[applier] = document;
    say({ client: this.#client, applier, document });
  }
}
