package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPositionsOutliveTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, Options{})
	s.Set("kmsg", "kmsg/b/1")
	s.Set("kmsg", "kmsg/b/2")
	s.Set("file:/gone", "file/1:2/3")
	s.Set("file:/gone", "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{})
	if got := s.Get("kmsg"); got != "kmsg/b/2" {
		t.Errorf("kmsg = %q", got)
	}
	if got := s.Get("file:/gone"); got != "" {
		t.Errorf("a forgotten source came back: %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestManyPositionsAreOneWrite(t *testing.T) {
	var writes atomic.Int32
	wrote := make(chan bool, 10)
	s := open(t, t.TempDir(), Options{BeforeWrite: func() error { writes.Add(1); wrote <- true; return nil }})
	s.interval = 50 * time.Millisecond
	for range 10_000 {
		s.Set("kmsg", "kmsg/b/1")
	}
	<-wrote
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := writes.Load(); got > 3 {
		t.Errorf("%d writes for 10,000 positions", got)
	}
}

func TestNothingIsWrittenBeforeItsConsequencesAre(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("ledger: disk full")
	fail := full
	s := open(t, dir, Options{BeforeWrite: func() error { return fail }})
	s.Set("kmsg", "kmsg/b/1")
	if err := s.Flush(); !errors.Is(err, full) || !errors.Is(s.Err(), full) {
		t.Errorf("Flush = %v, Err = %v, want %v", err, s.Err(), full)
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); err == nil {
		t.Error("the position was written all the same")
	}
	fail = nil
	if err := s.Close(); err != nil || s.Err() != nil {
		t.Errorf("Close = %v, Err = %v", err, s.Err())
	}
	if got := open(t, dir, Options{}).Get("kmsg"); got != "kmsg/b/1" {
		t.Errorf("kmsg = %q", got)
	}
}

func TestCorruptFileIsReportedKeptAsideAndReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON": "\x00\x00", "empty": "", "of the future": `{"version":9,"positions":{"kmsg":"x"}}`,
		"huge": strings.Repeat(" ", maxFile+1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, fileName), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{})
			if err == nil {
				t.Fatal("no report")
			}
			s.Set("kmsg", "kmsg/b/1")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := open(t, dir, Options{}).Get("kmsg"); got != "kmsg/b/1" {
				t.Errorf("kmsg = %q", got)
			}
			if b, err := os.ReadFile(filepath.Join(dir, fileName+".corrupt")); err != nil || string(b) != content {
				t.Errorf("corrupt file not kept: %v", err)
			}
		})
	}
}

func TestStoreWithoutAFolderKeepsPositionsInMemory(t *testing.T) {
	notDir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []error
	s, err := Open(filepath.Join(notDir, "state"), Options{OnError: func(err error) { told = append(told, err) }})
	if err == nil {
		t.Fatal("no report")
	}
	s.Set("kmsg", "kmsg/b/1")
	if got := s.Get("kmsg"); got != "kmsg/b/1" {
		t.Errorf("kmsg = %q", got)
	}
	for range 2 {
		if err := s.Close(); err == nil {
			t.Error("Close = nil, want why nothing was written")
		}
	}
	if len(told) != 1 {
		t.Errorf("told %v, want one report", told)
	}
}
