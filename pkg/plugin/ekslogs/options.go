package ekslogs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// Options is what the user asked for.
type Options struct {
	// Nodes are names of nodes. Exactly one of Nodes, Selector and All is set.
	Nodes    []string
	Selector string
	All      bool

	// OutputDir is where bundles go. It is made if it is not there.
	OutputDir string
	// Output is the form of the results: "", wide, json, yaml or name.
	Output string
	Quiet  bool
	// NoColor turns colours off.
	NoColor bool

	// Categories to collect. Empty means all.
	Categories []v1alpha1.LogCategory
	// Since bounds how far back journals are read; 0 leaves it to the agent.
	Since time.Duration
	// Timeout is how long a node's agent may take.
	Timeout time.Duration
	// Concurrency is how many nodes collect at a time.
	Concurrency int

	Keep, Attach, Replace bool
	Clobber, SkipExisting bool
	Extract               bool
}

const (
	defaultTimeout     = 5 * time.Minute
	defaultConcurrency = 5
	maxConcurrency     = 500
)

func outputs() []string { return []string{"wide", "json", "yaml", "name"} }

// Validate reports what contradicts itself or makes no sense, before anything is
// asked of a cluster. It brings node names into their plain form.
func (o *Options) Validate() error {
	if err := o.validateTargets(); err != nil {
		return err
	}
	switch {
	case o.Output != "" && !slices.Contains(outputs(), o.Output):
		if isDir(o.Output) || strings.ContainsAny(o.Output, `/\`) {
			return fmt.Errorf("-o %s: -o is the form of the results (%s); the folder for bundles is -d, --output-dir",
				o.Output, strings.Join(outputs(), ", "))
		}
		return fmt.Errorf("-o %s: unknown form of results; use one of %s", o.Output, strings.Join(outputs(), ", "))
	case o.Timeout <= 0:
		return errors.New("--timeout must be positive, for example 5m")
	case o.Concurrency < 1 || o.Concurrency > maxConcurrency:
		return fmt.Errorf("--concurrency %d: must be from 1 to %d", o.Concurrency, maxConcurrency)
	case o.Attach && o.Replace:
		return errors.New("--attach waits for a NodeDiagnostic that exists, --replace deletes it: use one of them")
	case o.Clobber && o.SkipExisting:
		return errors.New("--clobber overwrites files that exist, --skip-existing leaves their nodes out: use one of them")
	case o.Attach && (len(o.Categories) > 0 || o.Since > 0):
		return errors.New("--attach takes what an earlier request collects: --category and --since have no effect on it")
	}
	return nil
}

func (o *Options) validateTargets() error {
	ways := 0
	for _, set := range []bool{len(o.Nodes) > 0, o.Selector != "", o.All} {
		if set {
			ways++
		}
	}
	switch {
	case ways == 0:
		return errors.New("which nodes? Name them, or use -l SELECTOR or --all (see kubectl ekslogs --help)")
	case ways > 1:
		return errors.New("node names, -l SELECTOR and --all exclude each other: use one of them")
	}
	if o.Selector != "" {
		if _, err := labels.Parse(o.Selector); err != nil {
			return fmt.Errorf("-l %q is not a label selector: %w", o.Selector, err)
		}
	}
	var names []string
	for _, arg := range o.Nodes {
		name := arg
		// As kubectl prints and takes them.
		for _, prefix := range []string{"node/", "nodes/"} {
			name = strings.TrimPrefix(name, prefix)
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a node: %s", arg, problems[0])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	o.Nodes = names
	return nil
}

// prepareOutputDir makes the folder for bundles and tries whether it can be written
// to, so that nobody waits five minutes to learn that it cannot.
func (o *Options) prepareOutputDir() error {
	if err := os.MkdirAll(o.OutputDir, 0o755); err != nil {
		return fmt.Errorf("folder for bundles: %w", err)
	}
	f, err := os.CreateTemp(o.OutputDir, ".ekslogs-*.partial")
	if err != nil {
		return fmt.Errorf("folder for bundles cannot be written to: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// bundlePath is where the bundle of node goes, folderPath what it is extracted into.
func (o *Options) bundlePath(node string) string {
	return filepath.Join(o.OutputDir, node+"-logs.tar.gz")
}

func (o *Options) folderPath(node string) string {
	return filepath.Join(o.OutputDir, node+"-logs")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
