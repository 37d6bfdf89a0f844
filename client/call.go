package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// call is one request.
type call struct {
	method     string
	url        string // whole
	at         string // the part of url to name when nobody answers
	header     http.Header
	body       []byte // nil for none
	idempotent bool   // repeating it does no harm
	anonymous  bool   // goes without the token
}

// response is a response in the 200s, or that nothing changed.
type response struct {
	status int
	header http.Header
	body   []byte
}

const (
	maxResponse = 64 << 20         // bytes
	maxWait     = 30 * time.Second // longer waits are the caller's to decide on
	firstPause  = 200 * time.Millisecond
)

// do makes the call, and makes it again where that is safe: after silence if repeating does no harm, and after "come back
// later" in any case, because then nothing was done.
func (c *Client) do(ctx context.Context, k *call) (*response, error) {
	for attempt := 0; ; attempt++ {
		a, err := c.attempt(ctx, k)
		if err == nil || ctx.Err() != nil || attempt >= c.retries {
			return a, err
		}
		pause, again := pauseBefore(k, err, attempt)
		if !again {
			return nil, err
		}
		if wait(ctx, pause) != nil {
			return nil, err // the last failure says more than that time ran out
		}
	}
}

// pauseBefore says whether another attempt makes sense, and when.
func pauseBefore(k *call, err error, attempt int) (time.Duration, bool) {
	e, answered := errors.AsType[*Error](err)
	if !answered {
		return jitter(firstPause << attempt), k.idempotent
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if e.RetryAfter > 0 {
			return e.RetryAfter + jitter(firstPause), e.RetryAfter <= maxWait
		}
		return jitter(firstPause << attempt), k.idempotent
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return jitter(firstPause << attempt), k.idempotent
	}
	return 0, false
}

func (c *Client) attempt(ctx context.Context, k *call) (*response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.callTimeout, fmt.Errorf("no answer within %v", c.callTimeout))
	defer cancel()
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.body)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, k.url, body)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.userAgent)
	if token := c.Token(); token != "" && !k.anonymous {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(k.at, orCause(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is of it has to do
		return nil, responseError(resp, text)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, unreachable(k.at, orCause(ctx, err))
	}
	if len(text) > maxResponse {
		return nil, fmt.Errorf("client: the answer is larger than %d bytes", maxResponse)
	}
	return &response{status: resp.StatusCode, header: resp.Header, body: text}, nil
}

// manage makes a call to the management API. in and out may be nil.
func (c *Client) manage(ctx context.Context, method, path string, in, out any) error {
	k := &call{method: method, url: c.base + "/api/v1" + path, at: c.base, idempotent: method != http.MethodPost}
	return c.exchange(ctx, k, in, out)
}

// exchange sends and reads JSON.
func (c *Client) exchange(ctx context.Context, k *call, in, out any) error {
	k.header = http.Header{"Accept": {"application/json"}}
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		k.body = text
		k.header.Set("Content-Type", "application/json")
	}
	a, err := c.do(ctx, k)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return fmt.Errorf("client: %s does not answer as Freshet does: %w", k.at, err)
	}
	return nil
}

// exchange returns what a call answers.
func exchange[T any](ctx context.Context, c *Client, k *call, in any) (*T, error) {
	out := new(T)
	if err := c.exchange(ctx, k, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ask returns what a call to the management API answers.
func ask[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	out := new(T)
	if err := c.manage(ctx, method, path, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

func askRaw(ctx context.Context, c *Client, path string) (json.RawMessage, error) {
	out, err := ask[json.RawMessage](ctx, c, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return *out, nil
}

// orCause prefers what ended ctx to the HTTP library's words for it.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// jitter draws from the upper half of d, so that many clients do not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// wait returns early, with ctx's error, when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
