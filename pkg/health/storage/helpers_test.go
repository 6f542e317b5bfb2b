package storage

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

func options(h *host.Host) Options {
	o := Options{Catalog: health.NewCatalog(), Log: slog.New(slog.DiscardHandler), Memory: checktest.Memory{}}
	if h != nil {
		o.Processes = proc.NewCache(h)
	}
	return o
}

// told is what matters of a finding.
type told struct {
	Reason   string
	Severity health.Severity
	Subject  string
}

func summary(fs []health.Finding) []told {
	var out []told
	for _, f := range fs {
		out = append(out, told{f.Reason, f.Severity, f.Subject})
	}
	return out
}

func wantFindings(t *testing.T, got []health.Finding, want ...told) {
	t.Helper()
	if d := cmp.Diff(want, summary(got)); d != "" {
		t.Error(d)
	}
}

func TestEveryCheckCoversReasonsOfItsConditionInTheCatalogue(t *testing.T) {
	covered := checktest.Covered(t, Checks(options(nil)))
	for _, r := range health.NewCatalog().Reasons() {
		if r.Condition == health.StorageReady && strings.HasPrefix(r.Source, "poll") && !covered[r.Code] && r.Code != "XFSSmallAverageClusterSize" {
			t.Errorf("nothing looks for %s", r.Code)
		}
	}
}
