package incident

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// units reads what systemd says about services (src/core): that they failed, that it
// starts them again, that it cannot. A service that somebody stopped, and that ends
// with an error when told to, did not fail. systemd 219 has other words than later
// versions, and no name of the unit in some of them.
type units struct {
	holder
	clock
	stops map[string]time.Time // when a stop was asked for, by unit or description
	exits map[string]exit      // how the main process of a unit ended last
}

type exit struct{ code, status string }

const (
	// stopTime is how long a stop that was asked for may take.
	stopTime = 10 * time.Minute
	// crashTime is how long a crash waits for systemd to say that it starts the unit
	// again, and for which time.
	crashTime = 15 * time.Second
	// loopTime is how long a restart waits for the unit to end again at once, which
	// tells how it ends.
	loopTime = time.Second
	// manyRestarts is how many restarts by systemd are no finding.
	manyRestarts = 3
)

var (
	unitName     = `(?P<unit>[\w@.\\:-]+\.service)`
	unitStopping = regexp.MustCompile(`^Stopping (?:` + unitName + ` - )?(?P<description>.+?)(?:\.\.\.|…)?$`)
	unitStarted  = regexp.MustCompile(`^(?:Started|Starting) (?:` + unitName + ` - )?(?P<description>.+?)(?:\.\.\.|…|\.)?$`)
	unitExited   = regexp.MustCompile(`^` + unitName + `: [Mm]ain process exited, code=(?P<code>\w+), status=(?P<status>\S+)`)
	unitFailed   = regexp.MustCompile(`^(?:` + unitName + `: (?:Failed with result '(?P<result>[\w-]+)'|Unit entered failed state)|Unit (?P<old>\S+\.service) entered failed state)`)
	unitRestart  = regexp.MustCompile(`^` + unitName + `: Scheduled restart job, restart counter is at (?P<counter>\d+)`)
	unitNoStart  = regexp.MustCompile(`^Failed to start (?:` + unitName + `(?: - )?)?(?P<description>.*?)\.?$`)

	kubeletUnits = []string{"kubelet.service", "snap.kubelet*.service", "kubelet-*.service"}
	// nodeUnits are those of which an end with an error is a fault of the node. A unit
	// that is ended by a signal crashed, whichever it is.
	nodeUnits = []string{"containerd.service", "docker.service", "crio.service", "cri-docker.service", "nvidia-*.service", "nodeadm*.service", "ipamd.service", "aws-network-policy-agent.service", "systemd-networkd.service", "systemd-resolved.service", "systemd-journald.service", "systemd-udevd.service", "soci-snapshotter.service", "kube-proxy.service"}
)

func newUnits() *units {
	return &units{stops: map[string]time.Time{}, exits: map[string]exit{}}
}

func (*units) Literals() []string {
	return []string{"Stopping ", "Started ", "Starting ", "ain process exited", "ailed with result", "entered failed state", "Scheduled restart job", "Failed to start "}
}

func (*units) Sources() []host.Source { return []host.Source{host.SourceJournal} }

func (d *units) Detect(r host.Record) []health.Finding {
	if !r.FromManager && !(r.Unit == anyUnit && r.Identifier == "") {
		return nil
	}
	now := d.now(r)
	if len(d.stops)+len(d.exits) > 8*maxHeld {
		clear(d.stops)
		clear(d.exits)
	}
	if g := groups(unitExited, r.Message); g != nil {
		d.exits[g["unit"]] = exit{g["code"], g["status"]}
		return nil
	}
	if g := groups(unitFailed, r.Message); g != nil {
		return d.failed(r, now, g["unit"]+g["old"], g["result"])
	}
	if g := groups(unitRestart, r.Message); g != nil {
		return d.restarted(r, now, g["unit"], g["counter"])
	}
	if g := groups(unitNoStart, r.Message); g != nil {
		subject := clean(g["unit"])
		if subject == "" {
			subject = clean(g["description"])
		}
		return []health.Finding{finding(r, health.ContainerRuntimeReady, health.Warning, "ServiceFailedToStart", subject,
			"systemd could not start "+subject, fieldsOf(g))}
	}
	if g := groups(unitStopping, r.Message); g != nil {
		d.stops[d.stopKey(r, g)] = now
		return nil
	}
	if g := groups(unitStarted, r.Message); g != nil {
		delete(d.stops, d.stopKey(r, g))
	}
	return nil
}

// stopKey names what is being stopped: the unit where it is known, else what systemd
// 219 says of it, its description.
func (d *units) stopKey(r host.Record, g map[string]string) string {
	switch {
	case g["unit"] != "":
		return g["unit"]
	case r.Unit != "" && r.Unit != anyUnit:
		return r.Unit
	}
	return strings.ToLower(g["description"])
}

// stopped says whether somebody asked a unit to stop.
func (d *units) stopped(unit string, now time.Time) bool {
	name := strings.ToLower(strings.TrimSuffix(unit, ".service"))
	for key, at := range d.stops {
		if now.Sub(at) <= stopTime && (key == unit || !strings.HasSuffix(key, ".service") && strings.Contains(key, name)) {
			return true
		}
	}
	return false
}

func (d *units) failed(r host.Record, now time.Time, unit, result string) []health.Finding {
	end := d.exits[unit]
	delete(d.exits, unit)
	if d.stopped(unit, now) {
		return nil
	}
	fields := map[string]any{"unit": clean(unit)}
	if result != "" {
		fields["result"] = clean(result)
	}
	if end.code == "exited" {
		fields["exit_code"] = clean(end.status)
	} else if end.code != "" {
		fields["code"] = clean(end.code)
		_, signal, _ := strings.Cut(end.status, "/")
		fields["signal"] = clean(signal)
	}
	if it := d.take("restart " + unit); it != nil {
		// The loop that was just told: this is its next turn.
		for k, v := range fields {
			it.f.Fields[k] = v
		}
		return []health.Finding{it.f}
	}
	if matchUnit(unit, kubeletUnits) {
		return []health.Finding{finding(r, health.ContainerRuntimeReady, health.Warning, "KubeletFailed", clean(unit),
			"The kubelet ended with an error", fields)}
	}
	crashed := end.code == "killed" || end.code == "dumped" || result == "signal" || result == "core-dump" || result == "oom-kill" || result == "watchdog"
	if !crashed && !matchUnit(unit, nodeUnits) {
		return nil
	}
	d.hold(unit, now.Add(crashTime), finding(r, health.ContainerRuntimeReady, health.Warning, "UnitCrashed", clean(unit),
		"The service "+clean(unit)+" ended unasked", fields))
	return nil
}

func (d *units) restarted(r host.Record, now time.Time, unit, counter string) []health.Finding {
	n, err := strconv.ParseInt(counter, 10, 64)
	if err != nil {
		return nil
	}
	var out []health.Finding
	if it := d.take(unit); it != nil {
		it.f.Fields["restart_counter"] = n
		out = append(out, it.f)
	}
	if n <= manyRestarts {
		return out
	}
	fields := map[string]any{"unit": clean(unit), "restart_counter": n}
	d.hold("restart "+unit, now.Add(loopTime), finding(r, health.ContainerRuntimeReady, health.Warning, titleCase(unit)+"RepeatedRestart", clean(unit),
		"systemd starts "+clean(unit)+" again and again", fields))
	return out
}

// titleCase is the name of a unit as reason codes have it: "containerd.service" is
// "Containerd".
func titleCase(unit string) string {
	name := []byte(strings.TrimSuffix(unit, ".service"))
	for i, c := range name {
		if c >= 'a' && c <= 'z' && (i == 0 || strings.IndexByte("-._@", name[i-1]) >= 0) {
			name[i] = c - 'a' + 'A'
		}
	}
	if len(name) == 0 || name[0] < 'A' || name[0] > 'Z' {
		return "Unit" + string(name)
	}
	return string(name)
}

// anyUnit is rule.AnyUnit: the unit of records of a saved log that do not name it.
const anyUnit = "*"

func ofUnit(r host.Record, units ...string) bool {
	return r.Unit == anyUnit || matchUnit(r.Unit, units) && !r.FromManager
}

func matchUnit(unit string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, unit); ok {
			return true
		}
	}
	return false
}
