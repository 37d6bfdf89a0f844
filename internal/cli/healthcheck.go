package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/settings"
)

func newHealthcheck(p *process) *cobra.Command {
	var timeout time.Duration
	live := false
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a running server whether it is ready",
		Long: `Ask a running server on its admin listener whether it is ready. Exits with 0 if it is and with 1 otherwise,
which is what container health checks want. It finds the listener by the settings of the server.`,
		Example: `# The server of this machine or container
freshet healthcheck

# In a container image
HEALTHCHECK CMD ["freshet", "healthcheck"]

# A server elsewhere
freshet healthcheck --admin-listen 10.0.0.5:8001 --timeout 1s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.load(cmd)
			if err != nil {
				return unhealthy(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			path, said := "/readyz", "ready"
			if live {
				path, said = "/livez", "alive"
			}
			but, err := askHealth(ctx, effective.Settings.Admin.Listen, path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.stdout, said+but)
			return err
		},
	}
	addSettings(cmd, func(e *settings.Entry) bool { return e.Key == "admin.listen" })
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "How long to wait for the answer")
	cmd.Flags().BoolVar(&live, "live", false, "Ask only whether it is alive: a server that starts, drains or has lost its cluster is, but not ready")
	return cmd
}

// unhealthy exits with 1 whatever is wrong: container engines reserve other codes.
func unhealthy(err error) error { return &failure{error: err, code: 1} }

// askHealth returns what to add to a good answer: a server may be ready for what it can do without a dependency.
func askHealth(ctx context.Context, listen, path string) (but string, err error) {
	address := "http://" + reachable(listen) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	// No proxy from the environment: the server is here, or addressed directly.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", &failure{
			error: freshet.Wrap(freshet.Unavailable, cause(err), "no answer from "+address),
			hint:  "is the server running? --admin-listen names its admin listener",
			code:  1,
		}
	}
	defer func() { _ = resp.Body.Close() }()
	phase, bad := reasons(resp)
	if resp.StatusCode != http.StatusOK {
		return "", unhealthy(freshet.Errorf(freshet.Unavailable, "not ready: %s", strings.Join(append([]string{phase}, bad...), "; ")))
	}
	if len(bad) > 0 {
		but = ", but " + strings.Join(bad, "; ")
	}
	return but, nil
}

// reachable turns an address to listen on into one to connect to.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// cause leaves out the method and URL that the HTTP client puts in front.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// reasons reads the report of /readyz.
func reasons(resp *http.Response) (phase string, bad []string) {
	var rep struct {
		Phase  string            `json:"phase"`
		Checks map[string]string `json:"checks"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&rep); err != nil || rep.Phase == "" {
		return "the answer was " + resp.Status, nil
	}
	for name, answer := range rep.Checks {
		if answer != "ok" {
			bad = append(bad, name+": "+answer)
		}
	}
	slices.Sort(bad)
	return rep.Phase, bad
}
