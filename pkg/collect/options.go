package collect

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Defaults of Options.
const (
	DefaultTimeout = 15 * time.Minute
	// DefaultSince is how far back journals are read.
	DefaultSince = 10 * 24 * time.Hour
	// DefaultMaxBytes bounds what a bundle holds before compression.
	DefaultMaxBytes = 4 << 30
)

// Options says what to collect, and where to.
type Options struct {
	// Host is the machine to collect from. Required.
	Host *host.Host
	// Node is the node's name. Empty means the host's name.
	Node string
	// AgentVersion goes into the manifest.
	AgentVersion string
	// Output is the path of the bundle as this process sees it; it ends in ".tar.gz".
	// Its folder is made with mode 0700 when it is missing. Required.
	Output string
	// Categories are what to collect. Empty means All.
	Categories []v1alpha1.LogCategory
	// Since is how far back journals are read. 0 means DefaultSince.
	Since time.Duration
	// Timeout bounds the capture as a whole; what was not collected by then is
	// recorded as failed. 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds what the bundle holds before compression; what is over it is
	// truncated or left out. 0 means DefaultMaxBytes.
	MaxBytes int64
	// Findings is the JSON object for findings.json, with the list of health findings
	// under "findings". Nil means that nobody watched the node.
	Findings []byte
	// Extra are files that the collector cannot get by itself, such as API objects.
	Extra []ExtraFile
	// Progress, if set, is called after each item, from one goroutine at a time.
	Progress func(Progress)
}

// ExtraFile is a file that the caller adds to a bundle.
type ExtraFile struct {
	// Path is its name in the bundle.
	Path string
	// Category decides whether it is collected.
	Category v1alpha1.LogCategory
	// Open returns the content. It is called at most once, and its result closed. An
	// error becomes the item's.
	Open func() (io.ReadCloser, error)
}

// Progress says how far a capture is.
type Progress struct {
	// Done and Total count entries of the table.
	Done, Total int
	// Path is the entry that was done last.
	Path string
	// Bytes is what the bundle holds so far, before compression.
	Bytes int64
}

// Result is what a capture made.
type Result struct {
	// Path is the bundle; beside it lies Path + ".sha256".
	Path string
	// SHA256 is the hash of the archive in hex, Bytes its size.
	SHA256 string
	Bytes  int64
	// Duration is how long the capture took.
	Duration time.Duration
	// OK, Absent, Empty and Failed count items by status, Truncated those cut.
	OK, Absent, Empty, Failed, Truncated int
	// Errors has a line for each item that failed.
	Errors []string
	// Abandoned counts children and reads that could not be ended.
	Abandoned int
}

// ParseCategory returns the category with that name, whatever its case.
func ParseCategory(s string) (v1alpha1.LogCategory, error) {
	var names []string
	for _, c := range v1alpha1.LogCategories() {
		if strings.EqualFold(string(c), s) {
			return c, nil
		}
		names = append(names, string(c))
	}
	return "", fmt.Errorf("unknown category %q: use %s", s, strings.Join(names, ", "))
}

// normalize checks o and fills in the defaults.
func (o *Options) normalize() error {
	if o.Host == nil {
		return errors.New("collect: Options.Host is not set")
	}
	if !strings.HasSuffix(o.Output, ".tar.gz") || filepath.Base(o.Output) == ".tar.gz" {
		return fmt.Errorf("output %q: the name of a bundle ends in .tar.gz", o.Output)
	}
	if o.Since < 0 || o.Timeout < 0 || o.MaxBytes < 0 {
		return errors.New("since, timeout and maximum size must not be negative")
	}
	if o.Since == 0 {
		o.Since = DefaultSince
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	cats, err := expandCategories(o.Categories)
	if err != nil {
		return err
	}
	o.Categories = cats
	return nil
}

// expandCategories spells All out, and sorts and checks the rest.
func expandCategories(in []v1alpha1.LogCategory) ([]v1alpha1.LogCategory, error) {
	want := map[v1alpha1.LogCategory]bool{}
	for _, c := range in {
		known, err := ParseCategory(string(c))
		if err != nil {
			return nil, err
		}
		want[known] = true
	}
	all := len(in) == 0 || want[v1alpha1.LogCategoryAll]
	var out []v1alpha1.LogCategory
	for _, c := range v1alpha1.LogCategories() {
		if c != v1alpha1.LogCategoryAll && (all || want[c]) {
			out = append(out, c)
		}
	}
	return slices.Clip(out), nil
}
