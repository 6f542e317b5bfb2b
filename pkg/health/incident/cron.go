package incident

import (
	"path"
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// cron finds commands that cron runs again and again within minutes. The stamps of its
// log have no year and no zone: when one is earlier than the one before, at New Year or
// when summer ends, nothing can be said of the time between them.
type cron struct {
	nothing
	last map[string]time.Time // by user and command
}

// rapidCron is the shortest time between two runs of one command that is no finding.
const rapidCron = 5 * time.Minute

// maxCommands bounds how many commands are remembered.
const maxCommands = 1024

var (
	cronRun   = regexp.MustCompile(`^(?:(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)|(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)))?.*?(?:CROND|CRON|crond|cron)(?:\[\d+\])?: \((?P<user>[^)]+)\) CMD \((?P<command>.*)\)`)
	cronFiles = []string{"/var/log/cron", "/var/log/cron.log"}
)

func newCron() *cron { return &cron{last: map[string]time.Time{}} }

func (*cron) Literals() []string     { return []string{") CMD ("} }
func (*cron) Sources() []host.Source { return []host.Source{host.SourceFile} }

func (d *cron) Detect(r host.Record) []health.Finding {
	g := groups(cronRun, r.Message)
	if g == nil || !ofFile(r, cronFiles...) {
		return nil
	}
	at, err := time.Parse(time.Stamp, g["stamp"])
	if g["iso"] != "" {
		at, err = time.Parse(time.RFC3339, g["iso"])
	}
	if err != nil {
		return nil
	}
	key := g["user"] + ":" + g["command"]
	before, seen := d.last[key]
	if len(d.last) >= maxCommands {
		clear(d.last)
	}
	d.last[key] = at
	if since := at.Sub(before); !seen || since < 0 || since >= rapidCron {
		return nil
	}
	return []health.Finding{finding(r, health.KernelReady, health.Warning, "RapidCron", clean(key),
		"cron runs the same command of "+clean(g["user"])+" again within 5 minutes: "+clean(g["command"]),
		fieldsOf(map[string]string{"user": g["user"], "command": g["command"]}))}
}

// ofFile says whether a record is of one of the files, which may be patterns. A record
// of a saved log that does not say which file it was is.
func ofFile(r host.Record, files ...string) bool {
	if r.Path == "" {
		return true
	}
	for _, f := range files {
		if ok, _ := path.Match(f, r.Path); ok {
			return true
		}
	}
	return false
}
