// Package otlp checks what we tell OpenTelemetry collectors against the protocol's own definitions. It is in this module so that
// the program itself does not depend on them.
package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/freshet-io/freshet/internal/trace"
)

// ids are hexadecimal in OTLP's JSON, while plain protobuf JSON has base64; that is the one difference between the two.
var ids = regexp.MustCompile(`"((?:trace|span|parentSpan)Id)":"([0-9a-f]+)"`)

func TestSpansAreWhatTheProtocolDefines(t *testing.T) {
	got := make(chan *tracepb.TracesData, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		zip, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(zip)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v, %v", r.URL, r.Header, err)
		}
		body = ids.ReplaceAllFunc(body, func(m []byte) []byte {
			parts := ids.FindSubmatch(m)
			raw, _ := hex.DecodeString(string(parts[2]))
			return []byte(`"` + string(parts[1]) + `":"` + base64.StdEncoding.EncodeToString(raw) + `"`)
		})
		data := new(tracepb.TracesData)
		if err := protojson.Unmarshal(body, data); err != nil { // refuses members that it does not know
			t.Errorf("%v in %s", err, body)
		}
		got <- data
	}))
	defer srv.Close()
	parent := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	tracer := trace.New(trace.Options{Endpoint: srv.URL, Version: "v1.2.3", Node: "node"})
	span := tracer.Start("publish", trace.Server, trace.ParseParent(parent))
	span.Set("freshet.topic", "a topic")
	span.SetInt("http.response.status_code", 503)
	span.Fail("Service Unavailable")
	span.End()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := <-got
	s := data.ResourceSpans[0].ScopeSpans[0].Spans[0]
	trace, _ := hex.DecodeString(parent[3:35])
	if !bytes.Equal(s.TraceId, trace) || hex.EncodeToString(s.ParentSpanId) != parent[36:52] || len(s.SpanId) != 8 {
		t.Errorf("%v", s)
	}
	if s.Kind != tracepb.Span_SPAN_KIND_SERVER || s.Status.Code != tracepb.Status_STATUS_CODE_ERROR || s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano {
		t.Errorf("%v", s)
	}
	if s.Attributes[0].Value.GetStringValue() != "a topic" || s.Attributes[1].Value.GetIntValue() != 503 {
		t.Errorf("%v", s.Attributes)
	}
	if r := data.ResourceSpans[0].Resource.Attributes; r[0].Key != "service.name" || r[0].Value.GetStringValue() != "freshet" {
		t.Errorf("%v", r)
	}
}
