package subscribe

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/freshet-io/freshet"
	"github.com/freshet-io/freshet/internal/httpkit"
)

// reports keep what happened to subscribers for those who ask: as counters, as the latest errors of a topic, and as lines of the log.
type reports struct {
	stats  *stats
	recent recentErrors
	log    errorLog
}

func newReports(log *slog.Logger, proxies httpkit.Proxies) *reports {
	return &reports{stats: newStats(), log: newErrorLog(log, proxies)}
}

func (r *reports) close() { r.log.lines.Close() }

// refused reports a subscription that was answered with an error.
func (r *reports) refused(req *http.Request, t *requestTarget, topicID string, f *failure, err error) {
	r.stats.refused[f.Code].Add(1)
	r.recent.add(topicID, f, 1, time.Now())
	r.log.refused(req, t, f, err)
}

// ended reports streams that an error ends. The log is told apart, once a group.
func (r *reports) ended(topicID string, streams int, f *failure, now time.Time) {
	r.stats.ended[f.Code].Add(uint64(streams))
	r.recent.add(topicID, f, uint64(streams), now)
}

// recentErrors remembers with which errors subscribers of topics were answered, or their streams ended, lately, for whoever asks why
// nothing arrives. When there are too many topics it begins anew.
type recentErrors struct {
	mu     sync.Mutex
	topics map[string]map[int]*freshet.Refusal // Guarded by mu.
}

// Bounds of what is remembered.
const (
	maxErrorTopics = 4096
	errorsFor      = time.Hour
)

func (r *recentErrors) add(topicID string, f *failure, subscribers uint64, now time.Time) {
	if !freshet.IsID(topicID) || subscribers == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.topics == nil || (len(r.topics) >= maxErrorTopics && r.topics[topicID] == nil) {
		r.topics = make(map[string]map[int]*freshet.Refusal) // crude, and bounded
	}
	byCode := r.topics[topicID]
	if byCode == nil {
		byCode = make(map[int]*freshet.Refusal)
		r.topics[strings.Clone(topicID)] = byCode // it is a part of a request
	}
	one := byCode[f.Code]
	if one == nil || now.Sub(one.Last) > errorsFor {
		one = &freshet.Refusal{Code: f.Code}
		byCode[f.Code] = one
	}
	one.Count += subscribers
	one.Message, one.Last = f.Message, now
}

// of returns the errors of a topic, by code.
func (r *recentErrors) of(topicID string) []freshet.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []freshet.Refusal
	for _, one := range r.topics[topicID] {
		if time.Since(one.Last) <= errorsFor {
			all = append(all, *one)
		}
	}
	slices.SortFunc(all, func(a, b freshet.Refusal) int { return cmp.Compare(a.Code, b.Code) })
	return all
}
