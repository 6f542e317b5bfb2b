package rule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// maxSubjects bounds how many subjects of one rule are counted at a time: log text
// chooses subjects, and may choose a new one each line.
const maxSubjects = 512

// maxTimes bounds how many times of one subject are kept beyond those that count.
const maxTimes = 16

// windows counts lines for the rules that have a Window.
type windows map[*compiled]map[string]*window

// window is what was seen of one subject.
type window struct {
	times []time.Time
	last  health.Finding
	told  bool
}

// add counts a line and says whether the window is full. A clock that steps back
// begins the count anew: nothing can be said of the time between. A record without
// time happens when the one before it did.
func (ws windows) add(c *compiled, f health.Finding, at time.Time) bool {
	subjects := ws[c]
	if subjects == nil {
		subjects = map[string]*window{}
		ws[c] = subjects
	}
	w := subjects[f.Subject]
	if w == nil {
		if len(subjects) >= maxSubjects {
			forgetOldest(subjects)
		}
		w = &window{}
		subjects[f.Subject] = w
	}
	if n := len(w.times); n > 0 {
		if at.IsZero() {
			at = w.times[n-1]
		}
		if at.Before(w.times[n-1]) {
			w.times, w.told = w.times[:0], false
		}
	}
	w.times = append(w.times, at)
	for len(w.times) > 1 && at.Sub(w.times[0]) > c.within() {
		w.times = w.times[1:]
	}
	w.last = f
	full := len(w.times) >= c.Window.Count && at.Sub(w.times[0]) >= c.Window.Span.Duration
	if len(w.times) > c.Window.Count+maxTimes {
		w.times = slices.Delete(w.times, 1, 2) // the first keeps the span
	}
	w.told = w.told || full
	return full
}

// end returns the findings of windows that the end of a saved log, at now, left open.
// One that has run out by then has told that it was nothing.
func (ws windows) end(now time.Time) []health.Finding {
	var out []health.Finding
	for c, subjects := range ws {
		for _, w := range subjects {
			if c.Window.AtEnd && !w.told && now.Sub(w.times[0]) <= c.within() {
				out = append(out, w.last)
			}
		}
	}
	clear(ws)
	slices.SortFunc(out, func(a, b health.Finding) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Subject, b.Subject))
	})
	return out
}

func forgetOldest(subjects map[string]*window) {
	var oldest string
	var at time.Time
	for s, w := range subjects {
		if t := w.times[len(w.times)-1]; at.IsZero() || t.Before(at) {
			oldest, at = s, t
		}
	}
	delete(subjects, oldest)
}
