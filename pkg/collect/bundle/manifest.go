// Package bundle is what a log bundle is to its readers: the manifest, and how a
// bundle is verified and extracted. It does not import the collector and builds
// on every platform that the kubectl plugin runs on.
package bundle

import "time"

// SchemaVersion is the version of the manifest's schema. It changes when a field
// changes its meaning or goes away, not when one is added.
const SchemaVersion = 1

// Files at the root of every bundle.
const (
	// ManifestName is the last entry of the archive: only then are all hashes known.
	ManifestName = "manifest.json"
	// IndexName lists every item with its status, for people.
	IndexName = "index.txt"
	// ErrorsName names what failed or was cut, one line each.
	ErrorsName = "errors.txt"
	// LegacyErrorsName has the content of ErrorsName under the name that support
	// tooling knows.
	LegacyErrorsName = "log-capture-errors.log"
	// FindingsName is a JSON list of health findings.
	FindingsName = "findings.json"
	// SummaryName says in a few lines what the node is and what could not be had.
	SummaryName = "summary.txt"
)

// Status is how the collection of an item ended.
type Status string

// The ways in which an item ends.
const (
	// StatusOK: the item is in the archive.
	StatusOK Status = "ok"
	// StatusEmpty: the source is there and had nothing to say. The archive has an
	// entry of no bytes.
	StatusEmpty Status = "empty"
	// StatusAbsent: this host does not have the source. Nothing is wrong.
	StatusAbsent Status = "absent"
	// StatusFailed: the source is there and could not be read, or not whole. What was
	// read before that is in the archive if SHA256 is set.
	StatusFailed Status = "failed"
)

// Source is the kind of source that an item comes from.
type Source string

// The kinds of sources.
const (
	SourceCommand  Source = "command"
	SourceFile     Source = "file"
	SourceJournal  Source = "journal"
	SourceHTTP     Source = "http"
	SourceFunction Source = "function"
	// SourceAPI is the Kubernetes API.
	SourceAPI Source = "api"
	// SourceAgent is for the files about the bundle itself.
	SourceAgent Source = "agent"
)

// Manifest is manifest.json: the proof of what a bundle holds.
type Manifest struct {
	SchemaVersion int `json:"schemaVersion"`
	// AgentVersion is the version of the program that made the bundle.
	AgentVersion string `json:"agentVersion"`
	// Node is the name of the node, as Kubernetes knows it.
	Node string `json:"node"`
	// Kernel is the host's kernel release.
	Kernel string `json:"kernel"`
	// BootID is the host's boot id.
	BootID string `json:"bootID"`
	// Platform lists what the host was recognised as, such as "amazon-linux".
	Platform   []string  `json:"platform,omitempty"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	// Categories are the categories that were asked for, with All spelt out.
	Categories []string `json:"categories"`
	// Abandoned counts children and reads that could not be ended.
	Abandoned int `json:"abandoned,omitempty"`
	// Redactions counts what was redacted in the whole bundle, by kind.
	Redactions map[string]int `json:"redactions,omitempty"`
	// Items are sorted by path.
	Items []Item `json:"items"`
}

// Item is one entry of the table of what to collect, or one file of an entry that
// stands for several.
type Item struct {
	// Path is the name in the archive. For a pattern that matched nothing it is the
	// pattern.
	Path string `json:"path"`
	// Category is the category that the item was collected for; empty for the files
	// about the bundle itself.
	Category string `json:"category,omitempty"`
	// Source is the kind of source.
	Source Source `json:"source"`
	// From is the file or the URL that was read.
	From string `json:"from,omitempty"`
	// Argv is the command that was run, secrets redacted.
	Argv []string `json:"argv,omitempty"`
	// Exit is the exit status of a command that ended by itself.
	Exit *int `json:"exit,omitempty"`
	// Start is when its collection began, MS how long it took in milliseconds.
	Start time.Time `json:"start,omitzero"`
	MS    int64     `json:"ms"`
	// Bytes is the size of the entry in the archive.
	Bytes int64 `json:"bytes"`
	// SHA256 is the hash of the entry in the archive, in hex. It is empty if and only
	// if the archive has no such entry.
	SHA256 string `json:"sha256,omitempty"`
	Status Status `json:"status"`
	// Truncated says that the middle was left out: a line in the file says where.
	Truncated bool `json:"truncated,omitempty"`
	// Binary says that the entry was stored as it is, without redaction.
	Binary bool `json:"binary,omitempty"`
	// Redactions counts what was redacted, by kind.
	Redactions map[string]int `json:"redactions,omitempty"`
	// Error says why the item is absent, failed or cut.
	Error string `json:"error,omitempty"`
}

// Count returns how many items have the status.
func (m *Manifest) Count(s Status) int {
	n := 0
	for i := range m.Items {
		if m.Items[i].Status == s {
			n++
		}
	}
	return n
}
