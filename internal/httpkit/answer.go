package httpkit

import (
	"bytes"
	"net/http"
)

// Answer is an http.ResponseWriter that keeps what it is told.
type Answer struct {
	Status int
	Body   bytes.Buffer

	header http.Header
}

// NewAnswer returns an answer that is good until somebody says otherwise.
func NewAnswer() *Answer { return &Answer{Status: http.StatusOK, header: http.Header{}} }

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) { a.Status = status }

// Write implements http.ResponseWriter.
func (a *Answer) Write(p []byte) (int, error) { return a.Body.Write(p) }
