package kmsg

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// TestRealKernelLog writes to the kernel's log as user space and reads it back.
func TestRealKernelLog(t *testing.T) {
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Skipf("needs a writable %s: %v", path, err)
	} else {
		f.Close()
	}
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	nonce := fmt.Sprintf("ekslogs-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	s := New(Options{Host: h})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan host.Record, 16)
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(r host.Record) error {
			if strings.Contains(r.Message, nonce) {
				got <- r
			}
			return nil
		})
	}()
	for i := range 3 {
		// The kernel drops all but some records of one open file: open anew.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "<3>%s \x01 é %d\n", nonce, i)
		f.Close()
		select {
		case r := <-got:
			if want := fmt.Sprintf("%s \x01 é %d", nonce, i); r.Message != want || r.Kernel || r.Facility != 1 || r.Priority != 3 {
				t.Errorf("record %+v, want message %q of facility 1, priority 3", r, want)
			}
			if age := time.Since(r.At); age < -time.Second || age > time.Minute {
				t.Errorf("record dated %v, %v ago", r.At, age)
			}
		case <-ctx.Done():
			t.Fatal("the record did not come back")
		}
	}
	if st := s.Status(); !st.Up || st.Lost != 0 {
		t.Errorf("status %+v", st)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
