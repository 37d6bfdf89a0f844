// Command webhook receives webhooks, of a code host or a shop, and publishes the newest of them to the topic Hooks of freshet
// demo: a publisher in Go, in as few lines as it takes. Stop it with Ctrl-C.
//
//	go run ./examples/webhook
//	curl -d '{"ref": "main"}' http://localhost:7071/push
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/freshet-io/freshet/client"
)

func main() {
	demo := flag.String("demo", "http://localhost:7070", "where freshet demo says its pages are")
	listen := flag.String("listen", "127.0.0.1:7071", "where to receive webhooks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *demo, *listen); err != nil {
		log.Fatal(err)
	}
}

// hook is one webhook, as subscribers see it.
type hook struct {
	At   time.Time       `json:"at"`
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// receiver keeps the newest webhooks and publishes all of them each time: Freshet finds out what changed.
type receiver struct {
	client     *client.Client
	topic, key string

	mu    sync.Mutex // also keeps publications in order
	hooks []hook
}

const keep = 20

// ServeHTTP answers only once the webhook is published: the sender tries again otherwise.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil || !json.Valid(body) {
		http.Error(w, "the body must be JSON of at most 1 MiB", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hooks := append([]hook{{time.Now().UTC(), req.URL.Path, body}}, r.hooks...)
	hooks = hooks[:min(len(hooks), keep)]
	document, err := json.Marshal(hooks)
	if err == nil {
		_, err = r.client.Publish(req.Context(), r.topic, document, client.PublishOptions{Key: r.key})
	}
	if err != nil {
		log.Print(err)
		http.Error(w, "it could not be published; try again", http.StatusBadGateway)
		return
	}
	r.hooks = hooks
	w.WriteHeader(http.StatusNoContent)
}

func serve(ctx context.Context, demo, listen string) error {
	var guide struct {
		Gateway, Subscriber string
		PublisherKey        string `json:"publisher_key"`
		Topics              map[string]string
	}
	if err := fetch(ctx, demo+"/demo.json", &guide); err != nil {
		return err
	}
	c, err := client.New(client.Options{BaseURL: guide.Gateway})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	topic := guide.Topics["Hooks"]
	fmt.Printf("Send webhooks to http://%s and follow them:\n  curl -N %s/v1/topics/%s\n", l.Addr(), guide.Subscriber, topic)
	srv := &http.Server{Handler: &receiver{client: c, topic: topic, key: guide.PublisherKey}, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fetch(ctx context.Context, url string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w\nis freshet demo running?", err)
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(out)
}
