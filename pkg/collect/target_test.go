package collect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestALinkInPlaceOfTheFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	elsewhere := t.TempDir()
	link := filepath.Join(dir, "support")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	_, err := Collect(t.Context(), Options{Host: newFixture(t).host(), Output: filepath.Join(link, "b.tar.gz")})
	if err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("error %v", err)
	}
	onlyBundle(t, elsewhere)
}

func TestALinkInPlaceOfTheBundleIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, filepath.Join(dir, "b.tar.gz"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(t.Context(), Options{Host: newFixture(t).host(), Output: filepath.Join(dir, "b.tar.gz")}); err == nil {
		t.Error("no error")
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("victim: %q, %v", b, err)
	}
}

func TestFilesOfAKilledRunAreSweptAndThoseOfALiveOneAreNot(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "b.tar.gz")
	stale := filepath.Join(dir, ".b.tar.gz.abc.partial")
	other := filepath.Join(dir, ".other.tar.gz.abc.partial")
	if err := errors.Join(os.WriteFile(stale, nil, 0o600), os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	tg, err := openTarget(out)
	if err != nil {
		t.Fatal(err)
	}
	live, err := tg.create(tg.tempName("live"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := tg.sweep(); err != nil {
		t.Fatal(err)
	}
	onlyBundle(t, dir, filepath.Base(other), tg.tempName("live"))
	if _, err := os.Stat(live.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := tg.dir.Stat(tg.tempName("live")); err != nil {
		t.Errorf("the file of a live run: %v", err)
	}
}

func TestANewBundleReplacesTheOlderAndItsHash(t *testing.T) {
	out := filepath.Join(t.TempDir(), "b.tar.gz")
	first := collectTest(t, Options{Host: newFixture(t).host(), Output: out}, category("Base", file("a", "/etc/os-release")))
	second := collectTest(t, Options{Host: newFixture(t).host(), Output: out}, nil)
	side, err := os.ReadFile(out + ".sha256")
	if err != nil || !strings.HasPrefix(string(side), second.res.SHA256) || first.res.SHA256 == second.res.SHA256 {
		t.Errorf("%q, %v", side, err)
	}
	onlyBundle(t, filepath.Dir(out), "b.tar.gz")
}

// tmpfs mounts a filesystem of so many bytes.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("needs the right to mount a tmpfs, as root has: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskIsAClearErrorAndLeavesNothing(t *testing.T) {
	dir := tmpfs(t, 1<<20)
	_, err := Collect(t.Context(), Options{Host: newFixture(t).host(), Output: filepath.Join(dir, "b.tar.gz")})
	if err == nil || !strings.Contains(err.Error(), "not enough space") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("error %v", err)
	}
	onlyBundle(t, dir)
}

// A disk that fills up while the bundle is made costs items, and the bundle says
// which.
func TestADiskThatFillsUpLeavesAWholeBundle(t *testing.T) {
	dir := tmpfs(t, 24<<20)
	f := newFixture(t)
	var table []entry
	for i := range 12 {
		name := fmt.Sprintf("/f%d", i)
		noise := make([]byte, 6<<20)
		for k := range noise {
			noise[k] = byte(' ' + (k*k>>7^k*2654435761>>13)&63)
		}
		f.write(name, string(noise))
		table = append(table, file(name[1:], name))
	}
	c := collectTest(t, Options{Host: f.host(), Output: filepath.Join(dir, "b.tar.gz")}, category("Base", table...))
	if c.res.Failed == 0 || !strings.Contains(strings.Join(c.res.Errors, "\n"), errNoSpace.Error()) {
		t.Errorf("%+v: want items left out for space", c.res)
	}
	onlyBundle(t, dir, "b.tar.gz")
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Bavail*10 < st.Blocks {
		t.Errorf("%d of %d blocks free (%v): less than a tenth", st.Bavail, st.Blocks, err)
	}
}

func TestTheFreeSpaceRuleIsTheSmallerOfATenthAndAGigabyte(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	free, keep, err := newSpace(dir, "x").stat()
	if err != nil || free == 0 || keep == 0 || keep > keepBytes {
		t.Errorf("free %d, keep %d, %v", free, keep, err)
	}
	low := &space{stat: func() (uint64, uint64, error) { return 5, 10, nil }}
	if err := low.use(checkEvery); !errors.Is(err, errNoSpace) {
		t.Errorf("below the rule: %v", err)
	}
}
