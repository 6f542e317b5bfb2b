package nvidia

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// suspectPods is from how many pods a GPU must be blamed to be suspect itself.
	suspectPods = 3
	// suspectWindow is within which time.
	suspectWindow = time.Hour
)

// Suspects remembers which pods had application Xids on which GPU: one program may
// be wrong, but three different ones point at the hardware. Counting alone is never
// more than a Warning. It is both fed by a Detector and a check, and safe for
// concurrent use.
type Suspects struct {
	// PodOf finds the pod of a process; it must not block.
	PodOf func(pid int64) (Pod, bool)
	// Now is the clock of the check; nil means time.Now.
	Now func() time.Time
	// Catalog gives the severity.
	Catalog *health.Catalog

	mu   sync.Mutex
	seen map[string]map[string]time.Time // subject, pod, last time
}

// podOf finds the pod of a process.
func (s *Suspects) podOf(pid int64) (Pod, bool) {
	if s == nil || s.PodOf == nil || pid == 0 {
		return Pod{}, false
	}
	return s.PodOf(pid)
}

// saw notes that a GPU blamed a pod.
func (s *Suspects) saw(subject string, pod Pod, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]map[string]time.Time{}
	}
	if s.seen[subject] == nil {
		s.seen[subject] = map[string]time.Time{}
	}
	recentPods(s.seen[subject], at)
	s.seen[subject][pod.String()] = at
}

// recentPods forgets pods that were seen too long ago and counts the others.
func recentPods(pods map[string]time.Time, now time.Time) int {
	for pod, at := range pods {
		if now.Sub(at) > suspectWindow {
			delete(pods, pod)
		}
	}
	return len(pods)
}

// Name implements check.Check.
func (s *Suspects) Name() string { return "gpu-suspects" }

// Condition implements check.Check.
func (s *Suspects) Condition() health.ConditionType { return health.AcceleratedHardwareReady }

// Reasons implements check.Check.
func (s *Suspects) Reasons() []string { return []string{reasonSuspect} }

// Interval implements check.Check.
func (s *Suspects) Interval() time.Duration { return time.Minute }

// Run implements check.Check: it tells the GPUs that are suspect now.
func (s *Suspects) Run(context.Context, *host.Host) ([]health.Finding, error) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []health.Finding
	for subject, pods := range s.seen {
		if recentPods(pods, now()) >= suspectPods {
			out = append(out, s.finding(subject, pods))
		}
	}
	slices.SortFunc(out, func(a, b health.Finding) int { return strings.Compare(a.Subject, b.Subject) })
	return out, nil
}

const reasonSuspect = "NvidiaSuspectHardware"

func (s *Suspects) finding(subject string, pods map[string]time.Time) health.Finding {
	names := make([]string, 0, len(pods))
	for pod := range pods {
		names = append(names, pod)
	}
	slices.Sort(names)
	f := check.Finding(s.Catalog, reasonSuspect, subject,
		fmt.Sprintf("GPU %s: application errors from at least %d different pods within an hour; the hardware is suspect", subject, suspectPods))
	f.Fields = map[string]any{"pods": names, "verdict": string(VerdictWarn)}
	return f
}
