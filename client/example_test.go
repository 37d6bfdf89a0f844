package client_test

import (
	"context"
	"fmt"

	"github.com/freshet-io/freshet/client"
)

func ExampleClient_Subscribe() {
	c, err := client.New(client.Options{BaseURL: "https://freshet.example.com", SubscriberURL: "https://stream.example.com"})
	if err != nil {
		panic(err)
	}
	follow := func(ctx context.Context, topic, key string) error {
		for event, err := range c.Subscribe(ctx, topic, client.SubscribeOptions{Key: key}) {
			if err != nil {
				return err // only what trying again cannot mend
			}
			if event.Kind == client.Failure {
				fmt.Println("the source has a problem:", event.Err)
				continue
			}
			fmt.Println(string(event.Document)) // the whole document, always current
		}
		return nil
	}
	_ = follow
}

func ExampleClient_Publish() {
	c, err := client.New(client.Options{})
	if err != nil {
		panic(err)
	}
	publish := func(ctx context.Context, topic, key string) error {
		done, err := c.Publish(ctx, topic, []byte(`{"ACME": 101.5}`), client.PublishOptions{Key: key, IdempotencyKey: "order-4711"})
		if err != nil {
			return err
		}
		fmt.Println("the topic is at", done.Version)
		return nil
	}
	_ = publish
}
