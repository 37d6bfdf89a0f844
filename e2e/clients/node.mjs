// Follows a topic with public clients for Node, until killed. Called with pairs: the name of a client and the URL of the
// topic. Prints one line of JSON for every document that a client comes to hold.
import { createRequire } from 'node:module';
import { EventSource } from 'eventsource';
import { Follower } from './apply.mjs';

const require = createRequire(import.meta.url);

const clients = {
  eventsource(url, follower) {
    const source = new EventSource(url);
    source.addEventListener('snapshot', event => follower.snapshot(event.data));
    source.addEventListener('patch', event => follower.patch(event.data));
    source.addEventListener('error', event => {
      if (event.data) follower.error(event.data);
    });
  },

  // The bundle for Node brings its own EventSource along. It is made for URLs of data sources, and puts them behind the
  // server's address; what signs URLs can put a topic's path there instead.
  'streamdataio-js-sdk 2.0.2'(url, follower) {
    const { createEventSource } = require('streamdataio-js-sdk/dist/bundles/streamdataio-node.js');
    const { hostname, port, pathname, searchParams } = new URL(url);
    const target = pathname.slice(1),
      token = searchParams.get('X-Sd-Token');
    const source = target.startsWith('http')
      ? createEventSource(target, token, [])
      : createEventSource('http://example.com/', token, [], { signUrl: () => target });
    source.server.protocol = 'http';
    source.server.hostname = hostname;
    source.server.port = port;
    source.onData(data => follower.snapshot(JSON.stringify(data)));
    source.onPatch(patch => follower.patch(JSON.stringify(patch)));
    source.onError(error => follower.error(JSON.stringify(error)));
    source.open();
  },
};

// The SDK logs to stdout, which is ours.
console.info = () => {};
console.log = () => {};

const args = process.argv.slice(2);
for (let i = 0; i < args.length; i += 2) clients[args[i]](args[i + 1], new Follower(args[i]));
