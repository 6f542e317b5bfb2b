package capture

import (
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// request is what the agent writes, as one JSON document, to the standard input of
// the process that captures.
type request struct {
	// Root is where the host's root directory lies, Node the node's name.
	Root string `json:"root"`
	Node string `json:"node"`
	// Version is the agent's version.
	Version string `json:"version"`
	// Output is the path of the bundle.
	Output string `json:"output"`
	// Categories, Since and Timeout are those of collect.Options.
	Categories []v1alpha1.LogCategory `json:"categories,omitempty"`
	Since      time.Duration          `json:"since,omitempty"`
	Timeout    time.Duration          `json:"timeout"`
	// Findings is the text of findings.json, empty for none.
	Findings []byte `json:"findings,omitempty"`
	// Extra are files that only the agent can get.
	Extra []extra `json:"extra,omitempty"`
}

// extra is a file of the bundle, or why there is none.
type extra struct {
	Path string `json:"path"`
	Data []byte `json:"data,omitempty"`
	Err  string `json:"err,omitempty"`
}

// report is one line of the capturing process's output: exactly one member is set.
type report struct {
	// Progress names the item that was done last.
	Progress string `json:"progress,omitempty"`
	// Result ends the output.
	Result *result `json:"result,omitempty"`
	// Error is why there is no bundle; it ends the output too.
	Error string `json:"error,omitempty"`
}

// result is what of collect.Result goes into the status.
type result struct {
	Bytes     int64         `json:"bytes"`
	SHA256    string        `json:"sha256"`
	Duration  time.Duration `json:"duration"`
	OK        int           `json:"ok"`
	Absent    int           `json:"absent"`
	Empty     int           `json:"empty"`
	Failed    int           `json:"failed"`
	Truncated int           `json:"truncated"`
	Abandoned int           `json:"abandoned"`
	// FirstErrors are the first lines of errors.txt.
	FirstErrors []string `json:"firstErrors,omitempty"`
}
