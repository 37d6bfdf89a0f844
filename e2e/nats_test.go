package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/freshet-io/freshet/internal/grid/natsserver"
)

// beNATS makes the test binary behave as a NATS server, with the options in the variable.
const beNATS = "FRESHET_TEST_BE_NATS"

func runNATS(config string) {
	var opts natsserver.Options
	err := json.Unmarshal([]byte(config), &opts)
	opts.Secret = "" // it hides itself even if there is none
	if err == nil {
		_, err = natsserver.Start(context.Background(), opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}
