package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// check asks one dependency whether it works. It must return soon after ctx ends.
type check struct {
	name string
	ask  func(ctx context.Context) error
	note func(ctx context.Context) (string, error) // instead of ask, where all may be well and somebody should know something

	lenient bool // shown, but no reason to send requests elsewhere
}

// phase is where the process is in its life.
type phase int

const (
	starting phase = iota
	serving
	draining
)

var phaseNames = [...]string{starting: "starting", serving: "serving", draining: "draining"}

// checkTimeout is less than what orchestrators wait for a probe.
const checkTimeout = 2 * time.Second

// readiness knows whether requests should be sent here. It is safe for concurrent use.
type readiness struct {
	parts []string // names that people know; static once serving

	// Guarded by mu.
	mu     sync.Mutex
	phase  phase
	checks []check
}

func (r *readiness) enter(p phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = p
}

func (r *readiness) add(c check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, c)
}

// report is the body of /readyz.
type report struct {
	Ready  bool              `json:"ready"`
	Phase  string            `json:"phase"`
	Checks map[string]string `json:"checks,omitempty"` // "ok", "ok, but …", or why not
}

// ask runs every check at the same time, so that a probe waits for the slowest only.
func (r *readiness) ask(ctx context.Context) report {
	r.mu.Lock()
	phase, checks := r.phase, r.checks
	r.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answers := make([]string, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { answers[i] = c.answer(ctx) })
	}
	wg.Wait()

	rep := report{Ready: phase == serving, Phase: phaseNames[phase], Checks: make(map[string]string, len(checks))}
	for i, c := range checks {
		rep.Checks[c.name] = answers[i]
		rep.Ready = rep.Ready && (answers[i] == ok || strings.HasPrefix(answers[i], okBut) || c.lenient)
	}
	return rep
}

const ok, okBut = "ok", "ok, but "

// answer is "ok", "ok, but" something, or why not.
func (c *check) answer(ctx context.Context) string {
	if c.note == nil {
		return answer(c.ask(ctx))
	}
	note, err := c.note(ctx)
	if err == nil && note != "" {
		return okBut + note
	}
	return answer(err)
}

func answer(err error) string {
	if err != nil {
		return err.Error()
	}
	return ok
}

// Health is the report for admins: in a word, and each part. Parts that cannot fail by themselves, which probes need not ask, are
// as the process is.
func (r *readiness) Health(ctx context.Context) (status string, checks map[string]string) {
	rep := r.ask(ctx)
	state := rep.Phase
	if state == phaseNames[serving] {
		state = "ok"
	}
	for _, name := range r.parts {
		if _, asked := rep.Checks[name]; !asked {
			rep.Checks[name] = state
		}
	}
	switch {
	case rep.Ready:
		return "ready", rep.Checks
	case rep.Phase == phaseNames[serving]:
		return "failing", rep.Checks
	default:
		return rep.Phase, rep.Checks
	}
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rep := r.ask(req.Context())
	status := http.StatusOK
	if !rep.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, rep)
}

// writeJSON is for the few answers this package gives by itself; the surfaces have their own.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // nobody to tell if the client has gone
}
