package storage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
)

func TestSpace(t *testing.T) {
	h := checktest.Tree(t, mountinfo(rootLine, "40 26 259:3 / /var/lib/kubelet rw - ext4 /dev/nvme1n1 rw\n",
		"41 26 0:50 / /scratch rw - tmpfs tmpfs rw\n", "42 26 0:51 / /elsewhere rw - tmpfs tmpfs rw\n"))
	enough := usage{Bytes: 1000, Free: 500, Available: 500, Inodes: 100, FreeInodes: 50}
	for name, tc := range map[string]struct {
		point string
		usage usage
		want  []told
	}{
		"enough":                      {"/", enough, nil},
		"a tenth":                     {"/", usage{Bytes: 1000, Free: 100, Available: 100}, nil},
		"less than a tenth":           {"/", usage{Bytes: 1000, Free: 99, Available: 99}, []told{{"DiskSpaceLow", health.Warning, "/"}}},
		"reserved space is not free":  {"/", usage{Bytes: 1000, Free: 100, Available: 50}, []told{{"DiskSpaceLow", health.Warning, "/"}}},
		"no size":                     {"/", usage{}, nil},
		"few inodes":                  {"/var/lib/kubelet", usage{Bytes: 10, Free: 10, Available: 10, Inodes: 1000, FreeInodes: 49}, []told{{"InodesExhausted", health.Warning, "/var/lib/kubelet"}}},
		"inodes are made as needed":   {"/", usage{Bytes: 10, Free: 10, Available: 10}, nil},
		"more free than there is":     {"/", usage{Bytes: 10, Free: 11, Available: 11}, []told{{"FilesystemCorruption", health.Warning, "/"}}},
		"one that the config names":   {"/scratch", usage{Bytes: 10}, []told{{"DiskSpaceLow", health.Warning, "/scratch"}}},
		"one that nobody cares about": {"/elsewhere", usage{Bytes: 10}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(h)
			o.EssentialMounts = []string{"/scratch", "/not-mounted"}
			c := newSpace(o)
			c.size = func(p string) (usage, error) {
				if p == h.Path(tc.point) {
					return tc.usage, nil
				}
				return enough, nil
			}
			wantFindings(t, checktest.Run(t, c, h), tc.want...)
		})
	}
}

func TestASilentFilesystemCostsOneThread(t *testing.T) {
	h := checktest.Tree(t, mountinfo(rootLine))
	c := newSpace(options(h))
	asked, release := 0, make(chan struct{})
	c.size = func(string) (usage, error) {
		asked++
		<-release
		return usage{Bytes: 10}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := c.Run(ctx, h); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it is blind", err)
		}
	}
	close(release)
	wantFindings(t, checktest.Run(t, c, h), told{"DiskSpaceLow", health.Warning, "/"})
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// TestMain is also the asking process of the tests: a path with "silent" in it does not
// answer.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "ask" {
		paths, block := []string{}, false
		for _, p := range os.Args[2:] {
			if strings.Contains(p, "silent") {
				block = true
			} else {
				paths = append(paths, p)
			}
		}
		if err := Serve(os.Stdout, paths); err != nil {
			os.Exit(1)
		}
		if block {
			time.Sleep(time.Hour)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func askThisTest(paths []string) *exec.Cmd {
	return exec.Command("/proc/self/exe", append([]string{"ask"}, paths...)...)
}

func TestHungMounts(t *testing.T) {
	h := checktest.Tree(t, mountinfo(rootLine,
		"50 26 0:60 / /silent rw - nfs4 fs-1.efs:/ rw\n", "51 26 0:60 / /silent2 rw - nfs4 fs-1.efs:/ rw\n",
		"52 26 0:61 / /fine rw - fuse.s3fs s3fs rw\n"))
	if err := os.Mkdir(h.Path("/fine"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := options(h)
	o.Asker = askThisTest
	c := newHung(o)
	c.asker.timeout = 2 * time.Second
	wantFindings(t, checktest.Run(t, c, h), told{"MountHung", health.Warning, "fs-1.efs:/"})
	local := checktest.Tree(t, mountinfo(rootLine))
	wantFindings(t, checktest.Run(t, c, local))
}

func TestHungMountsAreNotAskedWhileAProcessHangs(t *testing.T) {
	var asked []string
	a := asker{timeout: time.Minute, command: func(paths []string) *exec.Cmd {
		asked = append(asked, paths...)
		return askThisTest(paths)
	}}
	ended := make(chan struct{})
	a.stuck = []*asking{{paths: []string{"/dead"}, ended: ended}}
	hung, err := a.ask(t.Context(), []string{"/dead", "/"})
	if err != nil || len(hung) != 1 || hung[0] != "/dead" || len(asked) != 1 {
		t.Errorf("hung %v, asked %v, %v", hung, asked, err)
	}
	close(ended)
	if hung, err = a.ask(t.Context(), []string{"/dead", "/"}); err != nil || len(hung) != 0 || len(asked) != 3 {
		t.Errorf("after its end: hung %v, asked %v, %v", hung, asked, err)
	}
}

func TestServeTellsWhichAnswered(t *testing.T) {
	var out strings.Builder
	if err := Serve(&out, []string{"/", "/no/such/place"}); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for s := bufio.NewScanner(strings.NewReader(out.String())); s.Scan(); {
		var a answer
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		got[a.Path] = a.Error == ""
	}
	if !got["/"] || got["/no/such/place"] || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestSpaceOfAHostWithoutMountsIsBlind(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"etc/fstab": ""})
	for _, c := range []check.Check{newSpace(options(h)), newReadOnly(options(h)), newHung(options(h))} {
		if _, err := c.Run(t.Context(), h); err == nil {
			t.Errorf("%s: no error", c.Name())
		}
	}
}
