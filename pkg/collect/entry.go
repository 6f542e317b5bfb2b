package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// Bounds of an entry that names no others.
const (
	defaultBytes   = 16 << 20
	logBytes       = 128 << 20
	defaultTimeout = 10 * time.Second
	fileTimeout    = 2 * time.Minute
	journalTimeout = time.Minute
)

// entry is one row of the table of what is collected. It has a source, or it
// expands into further entries once the host is known.
type entry struct {
	// path is the name in the bundle; of an entry that expands, the pattern of names.
	path     string
	category v1alpha1.LogCategory
	src      source
	expand   func(ctx context.Context, e *env) ([]entry, error)
	// kind is the source's kind for an entry that expands.
	kind bundle.Source
	// acts says that to expand it does something to the host.
	acts bool
	// bytes and timeout bound it; 0 means the defaults.
	bytes   int64
	timeout time.Duration
	lane    lane
	// on is the platform that it is for; nil means every.
	on *condition
}

// source is where the content of an item comes from.
type source interface {
	kind() bundle.Source
	// fetch writes the content to out until it is done or ctx ends. An absentError
	// says that this host does not have it.
	fetch(ctx context.Context, e *env, out *sink) error
}

// lane says what an entry mostly waits for; each lane has its own width, so that
// what waits for the network never waits for what reads the disk.
type lane uint8

const (
	laneCommand lane = iota
	laneFile
	laneNetwork
	lanes
)

var laneWidth = [lanes]int{laneCommand: 4, laneFile: 2, laneNetwork: 16}

// The methods below return a changed copy of the entry.

func (n entry) max(bytes int64) entry        { n.bytes = bytes; return n }
func (n entry) within(d time.Duration) entry { n.timeout = d; return n }
func (n entry) only(c condition) entry       { n.on = &c; return n }
func (n entry) beside() entry                { n.lane = laneNetwork; return n }
func (n entry) in(l lane) entry              { n.lane = l; return n }

// heir is an entry that n has expanded to, with n's category and bound.
func (n entry) heir(m entry) entry {
	m.category = n.category
	m.bytes = cmp.Or(m.bytes, n.bytes)
	return m
}

// category gives all entries the category.
func category(c v1alpha1.LogCategory, entries ...entry) []entry {
	for i := range entries {
		entries[i].category = c
	}
	return entries
}

// condition is what must be true of a host for an entry to be of use.
type condition struct {
	name string
	ok   func(*env) bool
}

// absentError says why the host does not have something.
type absentError struct{ reason string }

func (a absentError) Error() string { return a.reason }

func absent(format string, args ...any) error {
	return absentError{fmt.Sprintf(format, args...)}
}

func isAbsent(err error) bool {
	var a absentError
	return errors.As(err, &a)
}
