package poll

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
)

// Buffers and decompressors serve one request after the other: an idle topic has none. Long buffers are not kept.
var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	gunzips sync.Pool
)

const keptBuffer = 1 << 20

// read takes the answer apart.
func (c *client) read(ctx context.Context, q *request, resp *http.Response) (*response, error) {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
	case http.StatusNotModified:
		if q.etag == "" && q.lastModified == "" {
			return nil, freshet.Errorf(freshet.SourceFailed, "The data source answered with status 304 to a request without conditions")
		}
		return &response{notModified: true}, nil
	case http.StatusNoContent, http.StatusResetContent:
		return nil, unreadable("The data source answered without a document")
	default:
		return nil, refused(resp, time.Now())
	}
	body, err := c.readBody(ctx, resp)
	if err != nil {
		return nil, err
	}
	return &response{body: body, etag: validator(resp.Header.Get("ETag")), lastModified: validator(resp.Header.Get("Last-Modified"))}, nil
}

// maxValidator keeps targets from storing things with us.
const maxValidator = 1 << 10

func validator(s string) string {
	if len(s) > maxValidator {
		return ""
	}
	return strings.Clone(s) // of its own, so that it does not keep the whole header
}

// readBody reads the document, decoded, up to the limit: what a bomb would become is never held.
func (c *client) readBody(ctx context.Context, resp *http.Response) ([]byte, error) {
	tooLarge := freshet.Errorf(freshet.SourceUnreadable, "The answer of the data source is larger than %d bytes", c.maxBody)
	var in io.Reader = resp.Body
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		if resp.ContentLength > c.maxBody {
			return nil, tooLarge
		}
	case "gzip", "x-gzip":
		unzip, err := gunzip(resp.Body)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = gzip.ErrHeader // shorter than the header alone
		}
		if err != nil {
			return nil, broken(ctx, err)
		}
		defer gunzips.Put(unzip)
		in = unzip
	default:
		return nil, unreadable("The data source used an encoding that was not asked for")
	}
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer func() {
		if buffer.Cap() <= keptBuffer {
			buffers.Put(buffer)
		}
	}()
	n, err := buffer.ReadFrom(io.LimitReader(in, c.maxBody+1))
	switch {
	case n > c.maxBody:
		return nil, tooLarge
	case err != nil:
		return nil, broken(ctx, err)
	}
	return slices.Clone(buffer.Bytes()), nil
}

func gunzip(r io.Reader) (*gzip.Reader, error) {
	if z, ok := gunzips.Get().(*gzip.Reader); ok {
		return z, z.Reset(r)
	}
	return gzip.NewReader(r)
}

// broken classifies what went wrong within an answer.
func broken(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.HasPrefix(err.Error(), "flate:"):
		return freshet.Wrap(freshet.SourceUnreadable, err, "The answer of the data source cannot be decompressed")
	case isTimeout(ctx, err):
		return freshet.Wrap(freshet.SourceUnreachable, err, "The data source took too long to answer")
	}
	return freshet.Wrap(freshet.SourceFailed, err, "The data source broke off its answer")
}

// discard reads the rest of a short answer, so that its connection can be used again, and closes it.
func discard(body io.ReadCloser) {
	const drained = 16 << 10
	_, _ = io.CopyN(io.Discard, body, drained)
	_ = body.Close()
}
