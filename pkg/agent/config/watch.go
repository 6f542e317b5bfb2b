package config

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch sends to the channel after the file changed, until ctx ends. The folder is
// watched instead of the file, since editors and the kubelet's ConfigMap volumes
// replace files by renaming (a ConfigMap volume swaps the link "..data").
func Watch(ctx context.Context, path string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("config: watch: %w", err)
	}
	dir := filepath.Dir(path)
	if err := w.Add(dir); err != nil {
		w.Close()
		return nil, fmt.Errorf("config: watch %s: %w", dir, err)
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer w.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-w.Errors:
				if !ok {
					return
				}
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				base := filepath.Base(e.Name)
				if e.Op == fsnotify.Chmod || (base != filepath.Base(path) && base != "..data") {
					continue
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return changed, nil
}
