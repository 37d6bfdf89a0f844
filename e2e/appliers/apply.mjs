// Reads one {"old": …, "patch": […]} per line, applies the patch with each public applier, and answers with one line
// {"<applier>": <document> or {"error": "…"}} each.
import { createInterface } from 'node:readline';
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

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const answer = {};
  for (const [name, apply] of Object.entries(appliers)) {
    // Parsed anew for each, because appliers work in place.
    const { old, patch } = JSON.parse(line);
    try {
      answer[name] = { document: apply(old, patch) };
    } catch (error) {
      answer[name] = { error: String(error) };
    }
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
