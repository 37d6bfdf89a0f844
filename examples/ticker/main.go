// Command ticker follows the quotes of freshet demo and prints every price that changes: a subscriber in Go, in as few lines as
// it takes. Stop it with Ctrl-C.
//
//	go run ./examples/ticker
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/freshet-io/freshet/client"
)

func main() {
	demo := flag.String("demo", "http://localhost:7070", "where freshet demo says its pages are")
	count := flag.Int("count", 0, "stop after so many changes; 0 never does")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, *demo, *count); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func follow(ctx context.Context, demo string, count int) error {
	var guide struct {
		Subscriber    string
		SubscriberKey string `json:"subscriber_key"`
		Topics        map[string]string
	}
	if err := fetch(ctx, demo+"/demo.json", &guide); err != nil {
		return err
	}
	c, err := client.New(client.Options{SubscriberURL: guide.Subscriber})
	if err != nil {
		return err
	}
	last := map[string]json.Number{}
	for event, err := range c.Subscribe(ctx, guide.Topics["Quotes"], client.SubscribeOptions{Key: guide.SubscriberKey}) {
		if err != nil {
			return err
		}
		var market struct {
			Quotes []struct {
				Symbol string
				Price  json.Number // exactly as published
			}
		}
		if err := json.Unmarshal(event.Document, &market); err != nil {
			return err
		}
		for _, q := range market.Quotes {
			if last[q.Symbol] == q.Price {
				continue
			}
			last[q.Symbol] = q.Price
			fmt.Printf("%-5s %8s\n", q.Symbol, q.Price)
			if count--; count == 0 {
				return nil
			}
		}
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
