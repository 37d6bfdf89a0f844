package kong

import (
	"errors"
	"net/http"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
	"github.com/freshet-io/freshet/internal/registry"
)

// The dialect has two forms of errors: one message, or one text for each field at fault. A text names its field, where the registry
// leaves the name out.

type message struct {
	Message string `json:"message"`
}

var (
	errNotFound = freshet.Errorf(freshet.NotFound, "Not found")
	errMethod   = freshet.Errorf(freshet.MethodNotAllowed, "Method not allowed")
	errJSON     = freshet.Errorf(freshet.Invalid, "Cannot parse JSON body")
	errForm     = freshet.Errorf(freshet.Invalid, "Cannot parse the form")
	errQuery    = freshet.Errorf(freshet.Invalid, "Cannot parse the query")
)

// failure is the response to a request that was not done.
func (h *Handler) failure(r *http.Request, err error) response {
	if e, ok := errors.AsType[*registry.Error](err); ok && len(e.Faults) > 0 {
		return response{httpkit.Status(err), faultTexts(e)}
	}
	httpkit.LogFailure(r, h.Log, err)
	if freshet.KindOf(err) == freshet.Internal {
		return response{http.StatusInternalServerError, message{"An unexpected error occurred"}}
	}
	return response{httpkit.Status(err), message{httpkit.Body(err).Message}}
}

// faultTexts is a text for each field, and the message if there is one.
func faultTexts(e *registry.Error) map[string]string {
	texts := map[string]string{}
	if e.Msg != "" {
		texts["message"] = e.Msg
	}
	for _, f := range e.Faults {
		texts[f.Field] = f.Field + " " + f.Text
		if f.Sentence {
			texts[f.Field] = f.Text
		}
	}
	return texts
}
