package capture

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// AnnotationSince on a NodeDiagnostic says how far back journals are read, as a
// Go duration such as "24h".
const AnnotationSince = "ekslogs.io/since"

// maxMessage bounds a status's message.
const maxMessage = 1024

// summary says in words what a capture brought.
func summary(res *result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d items collected", res.OK)
	if res.Failed > 0 {
		fmt.Fprintf(&b, ", %d failed (%s; errors.txt in the bundle lists all)", res.Failed, strings.Join(res.FirstErrors, "; "))
	}
	fmt.Fprintf(&b, ", %d absent or empty", res.Absent+res.Empty)
	if res.Truncated > 0 {
		fmt.Fprintf(&b, ", %d cut to their bounds", res.Truncated)
	}
	fmt.Fprintf(&b, ", %s in %s", size(res.Bytes), res.Duration.Round(100*time.Millisecond))
	return b.String()
}

// since reads AnnotationSince. What is no duration counts as none: the object is
// somebody's request, and a bundle of the usual length serves it better than none.
func since(nd *v1alpha1.NodeDiagnostic, log *slog.Logger) time.Duration {
	text := nd.Annotations[AnnotationSince]
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		log.Warn("ignored an annotation that is not a duration such as 24h", "annotation", AnnotationSince, "value", text)
		return 0
	}
	return d
}

// clip bounds a message and keeps it valid UTF-8.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// size says a number of bytes for a person.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
