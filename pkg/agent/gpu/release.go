package gpu

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// folder is the folder of this package in the state directory. It is its own, since
	// it is watched, and the state directory is written to all the time.
	folder = "gpu"
	// releaseFile says until when the GPUs are left alone.
	releaseFile = "release"
)

// Release makes the agent that works with the state directory close NVML until a
// time, so that a GPU can be reset or the driver be replaced.
func Release(stateDir string, until time.Time) error {
	dir := filepath.Join(stateDir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return host.ReplaceFile(filepath.Join(dir, releaseFile), []byte(until.UTC().Format(time.RFC3339)+"\n"))
}

// released says whether the GPUs are left alone now. A file that cannot be read asks
// for nothing.
func released(stateDir string, now time.Time) bool {
	b, err := os.ReadFile(filepath.Join(stateDir, folder, releaseFile))
	if err != nil {
		return false
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(string(b)))
	return err == nil && now.Before(until)
}

// watchRelease calls do each time a release is asked for, until ctx ends.
func watchRelease(ctx context.Context, stateDir string, log *slog.Logger, do func()) {
	dir := filepath.Join(stateDir, folder)
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = w.Add(dir)
		}
	}
	if err != nil {
		log.Warn("\"node-agent gpu release\" is obeyed after up to a minute only", "err", err)
		<-ctx.Done()
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.Errors:
			log.Debug("watching the state folder", "err", err)
		case e := <-w.Events:
			if filepath.Base(e.Name) == releaseFile && e.Has(fsnotify.Create|fsnotify.Write) && released(stateDir, time.Now()) {
				do()
			}
		}
	}
}
