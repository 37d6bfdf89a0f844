package main

import (
	"errors"
	"fmt"
	"time"
)

// report is everything that a run found out; it is the JSON file.
type report struct {
	At        time.Time  `json:"at"`
	Machine   machine    `json:"machine"`
	Window    string     `json:"window"`
	InFlight  int        `json:"publications_in_flight"`
	Apart     bool       `json:"apart"` // servers were charged with their own part of TCP only
	Scenarios []*outcome `json:"scenarios"`
	Figures   []figure   `json:"figures"`
}

type machine struct {
	Cores    int    `json:"cores"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	MaxFiles uint64 `json:"max_open_files"`
}

// outcome is what came out of one scenario.
type outcome struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Servers []server `json:"servers"`
}

// server is what one server did in it.
type server struct {
	Name    string    `json:"name"`
	Limit   bool      `json:"limit,omitempty"`
	Median  metrics   `json:"median,omitempty"`
	Runs    []metrics `json:"runs,omitempty"`
	Failure string    `json:"failure,omitempty"`
}

func (r *report) outcome(id, title string) *outcome {
	for _, o := range r.Scenarios {
		if o.ID == id {
			return o
		}
	}
	o := &outcome{ID: id, Title: title}
	r.Scenarios = append(r.Scenarios, o)
	return o
}

func (r *report) addServer(id, title string, s server) {
	o := r.outcome(id, title)
	o.Servers = append(o.Servers, s)
}

// get returns a median, and false if it was not measured.
func (r *report) get(id, name, metric string) (float64, bool) {
	for _, o := range r.Scenarios {
		for _, s := range o.Servers {
			if o.ID == id && s.Name == name && s.Median != nil {
				v, ok := s.Median[metric]
				return v, ok
			}
		}
	}
	return 0, false
}

// failures is an error if Freshet or the limit could not be measured, so that a script notices. Peers may fail: that is a result.
func (r *report) failures() error {
	var all []error
	for _, o := range r.Scenarios {
		for _, s := range o.Servers {
			if s.Failure != "" && (s.Limit || s.Name == ours) {
				all = append(all, fmt.Errorf("%s: %s: %s", o.Title, s.Name, s.Failure))
			}
		}
	}
	return errors.Join(all...)
}
