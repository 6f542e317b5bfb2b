package collect

import (
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// litter is what programs of the host write to its /tmp for us. It goes at the end
// of the capture, however that ends.
type litter struct {
	host *host.Host

	mu    sync.Mutex
	dir   string
	paths []string
}

// folder makes a folder in the host's /tmp that only root can enter, once, and
// returns its name on the host.
func (l *litter) folder() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir != "" {
		return l.dir, nil
	}
	root, err := os.OpenRoot(l.host.Root())
	if err != nil {
		return "", err
	}
	defer root.Close()
	dir := "/tmp/.node-agent-" + randomID()
	if err := root.Mkdir(dir[1:], 0o700); err != nil {
		return "", err
	}
	l.dir = dir
	l.paths = append(l.paths, dir)
	return dir, nil
}

// add names a file of the host that is to go.
func (l *litter) add(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = append(l.paths, path)
}

// remove removes it all.
func (l *litter) remove() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.paths) == 0 {
		return nil
	}
	root, err := os.OpenRoot(l.host.Root())
	if err != nil {
		return err
	}
	for _, p := range l.paths {
		err = errors.Join(err, root.RemoveAll(strings.TrimPrefix(p, "/")))
	}
	l.paths = nil
	return errors.Join(err, root.Close())
}
