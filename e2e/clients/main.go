// Command clients follows a topic with public Go clients, and with curl, and tells what they see.
//
// It is a module of its own so that nobody who builds Freshet has to download the clients it is tested with. The
// arguments are pairs: the name of a client and the URL it shall follow. For every event, one line of JSON says which
// client saw what document. Clients are used as their documentation tells, with nothing set that is not needed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// clients follow a URL until the process is killed.
var clients = map[string]func(url string, f *follower){
	"curl":   followWithCurl,
	"go-sse": followWithGoSSE,
	"r3labs": followWithR3Labs,
}

func main() {
	args := os.Args[1:]
	if len(args)%2 != 0 {
		fmt.Fprintln(os.Stderr, "clients: the arguments are pairs of a client and a URL")
		os.Exit(2)
	}
	var wg sync.WaitGroup
	for i := 0; i < len(args); i += 2 {
		follow, ok := clients[args[i]]
		if !ok {
			fmt.Fprintf(os.Stderr, "clients: there is no client %q\n", args[i])
			os.Exit(2)
		}
		wg.Go(func() { follow(args[i+1], &follower{client: args[i]}) })
	}
	wg.Wait()
}

// follower holds the document of one client. It belongs to the goroutine that follows.
type follower struct {
	client   string
	document []byte
}

var errBroken = errors.New("not an event of ours")

// see takes an event and says what the document is now.
func (f *follower) see(event string, data []byte) error {
	switch event {
	case "snapshot":
		if !json.Valid(data) {
			return errBroken
		}
		f.document = append([]byte(nil), data...)
	case "patch":
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return errBroken
		}
		next, err := patch.Apply(f.document)
		if err != nil {
			return fmt.Errorf("%s: %w", data, err)
		}
		f.document = next
	case "error":
		f.say(map[string]any{"client": f.client, "error": string(data)})
		return nil
	default:
		return errBroken
	}
	f.say(map[string]any{"client": f.client, "applier": "evanphx/json-patch", "document": json.RawMessage(f.document)})
	return nil
}

var stdout sync.Mutex

func (f *follower) say(what map[string]any) {
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	fmt.Printf("%s\n", line)
}

// fail tells that the client cannot go on; the test fails with it.
func (f *follower) fail(err error) {
	f.say(map[string]any{"client": f.client, "failed": err.Error()})
}
