package capture

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

func fixtureHost(t *testing.T) *host.Host {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "var/log"), 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSweep(t *testing.T) {
	const retention = 10 * time.Minute
	now := time.Now().Truncate(time.Second)
	type files map[string]time.Duration // name: age
	for name, tc := range map[string]struct {
		files files
		left  string
		due   time.Duration // from now, 0: nothing to wait for
	}{
		"nothing there": {files{}, "", 0},
		"a fresh bundle stays until it is due": {
			files{"n-logs.tar.gz": time.Minute, "n-logs.tar.gz.sha256": time.Minute},
			"n-logs.tar.gz n-logs.tar.gz.sha256", 9 * time.Minute},
		"an old bundle goes with its checksum": {
			files{"n-logs.tar.gz": retention, "n-logs.tar.gz.sha256": retention}, "", 0},
		"a newer bundle is not taken for the older one, whatever its checksum's age": {
			files{"n-logs.tar.gz": 0, "n-logs.tar.gz.sha256": time.Hour},
			"n-logs.tar.gz n-logs.tar.gz.sha256", retention},
		"what an interrupted capture left goes, the bundle before it stays": {
			files{"n-logs.tar.gz": time.Minute, ".n-logs.tar.gz.123": 0, "n-logs.tar.gz.tmp": 0},
			"n-logs.tar.gz", 9 * time.Minute},
		"a checksum alone goes": {files{"n-logs.tar.gz.sha256": 0}, "", 0},
		"other nodes' bundles and other files stay": {
			files{"m-logs.tar.gz": time.Hour, "x-n-logs.tar.gz": time.Hour, "n-logs.tar": time.Hour, "n-logs.tar.gz": time.Hour},
			"m-logs.tar.gz n-logs.tar x-n-logs.tar.gz", 0},
		"the clock was set back": {
			files{"n-logs.tar.gz": -1000 * time.Hour}, "n-logs.tar.gz", retention},
	} {
		t.Run(name, func(t *testing.T) {
			h := fixtureHost(t)
			dir, err := openFolder(h, SupportDir, true)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			for f, age := range tc.files {
				if err := dir.WriteFile(f, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := dir.Chtimes(f, now.Add(-age), now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			due, err := sweep(dir, BundleName("n"), retention, now)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			entries, _ := os.ReadDir(h.Path(SupportDir))
			for _, e := range entries {
				left = append(left, e.Name())
			}
			slices.Sort(left)
			if got := strings.Join(left, " "); got != tc.left {
				t.Errorf("left %q, want %q", got, tc.left)
			}
			if want := now.Add(tc.due); (tc.due == 0) != due.IsZero() || tc.due != 0 && !due.Equal(want) {
				t.Errorf("due %s, want %s", due, want)
			}
		})
	}
}

func TestOpenFolderMakesItPrivate(t *testing.T) {
	h := fixtureHost(t)
	for _, dir := range []string{SupportDir, "/var/lib/node-agent/uploads"} {
		if _, err := openFolder(h, dir, false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which nobody asked to be made: %v", dir, err)
		}
	}
	for range 2 { // once made, once found
		dir, err := openFolder(h, SupportDir, true)
		if err != nil {
			t.Fatal(err)
		}
		dir.Close()
		info, err := os.Stat(h.Path(SupportDir))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := os.Chmod(h.Path(SupportDir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := openFolder(h, "/var/lib/node-agent/uploads", true)
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
}

func TestOpenFolderRefusesWhatAPodHasPlanted(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"a symbolic link out of the host": func(p string) error { return os.Symlink("/etc", p) },
		"a symbolic link inside":          func(p string) error { return os.Symlink("..", p) },
		"a file":                          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a folder of another user": func(p string) error {
			if os.Geteuid() != 0 {
				return os.Symlink("x", p) // only root can give a folder away
			}
			if err := os.Mkdir(p, 0o777); err != nil {
				return err
			}
			return os.Chown(p, 1000, 1000)
		},
	} {
		h := fixtureHost(t)
		if err := plant(h.Path(SupportDir)); err != nil {
			t.Fatal(err)
		}
		if dir, err := openFolder(h, SupportDir, true); err == nil {
			dir.Close()
			t.Errorf("%s was accepted", name)
		} else if !strings.Contains(err.Error(), SupportDir) {
			t.Errorf("%s: the error does not name the folder: %v", name, err)
		}
	}
}

func TestOpenFolderFollowsTheHostsOwnLinks(t *testing.T) {
	h := fixtureHost(t)
	if err := os.MkdirAll(h.Path("/data/log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(h.Path("/var/log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/data/log", h.Path("/var/log")); err != nil {
		t.Fatal(err)
	}
	dir, err := openFolder(h, SupportDir, true)
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
	if _, err := os.Stat(h.Path("/data/log/support")); err != nil {
		t.Error(err)
	}
}
