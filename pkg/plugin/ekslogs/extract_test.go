package ekslogs

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtractMakesAFolderBesideTheBundle(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	got := plugin(t, api, "a", "--extract", "-o", "json")
	got.want(t, exitOK)
	if s := string(read(t, filepath.Join(got.dir, "a-logs", "system", "ps.txt"))); s != "PID\n1\n" {
		t.Errorf("content: %q", s)
	}
	if !strings.Contains(got.out, `"folder": "`+filepath.Join(got.dir, "a-logs")) {
		t.Errorf("result: %s", got.out)
	}
	// Again: refused, then replaced whole.
	stray := filepath.Join(got.dir, "a-logs", "stray")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(got.dir, "a-logs.tar.gz")); err != nil {
		t.Fatal(err)
	}
	plugin(t, api, "a", "--extract", "-d", got.dir).want(t, exitSomeFailed, "a-logs is here already")
	plugin(t, api, "a", "--extract", "-d", got.dir, "--clobber").want(t, exitOK)
	if exists(stray) {
		t.Error("the old folder was mixed with the new one")
	}
	if f := files(t, got.dir); f != "a-logs a-logs.tar.gz" {
		t.Errorf("folder: %s", f)
	}
}

func TestAHostileArchiveWritesNothingOutside(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	for _, tc := range []struct {
		name    string
		headers []tar.Header
	}{
		{"upwards", []tar.Header{{Name: "../x", Typeflag: tar.TypeReg}}},
		{"upwards, hidden", []tar.Header{{Name: "a/../../x", Typeflag: tar.TypeReg}}},
		{"absolute", []tar.Header{{Name: secret, Typeflag: tar.TypeReg}}},
		{"backslashes", []tar.Header{{Name: `..\x`, Typeflag: tar.TypeReg}}},
		{"link", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}},
		{"hard link", []tar.Header{{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}},
		{"through a link", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/x", Typeflag: tar.TypeReg}}},
		{"device", []tar.Header{{Name: "d", Typeflag: tar.TypeBlock}}},
		{"twice", []tar.Header{{Name: "x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeReg}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := newFakeAPI(t)
			api.addNode("a", archive(t, tc.headers, make([]string, len(tc.headers))))
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			plugin(t, api, "a", "--extract", "-d", dir).want(t, exitSomeFailed, "a: ")
			if f := files(t, outer); f != "in" {
				t.Errorf("written outside: %s", f)
			}
			if f := files(t, dir); f != "" && f != "a-logs.tar.gz" {
				t.Errorf("folder: %s", f)
			}
			if exists(secret) {
				t.Error("an absolute name was followed")
			}
		})
	}
}
