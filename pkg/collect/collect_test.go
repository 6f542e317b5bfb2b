package collect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// fixture is a root directory made of files.
type fixture struct {
	t    *testing.T
	root string
}

func newFixture(t *testing.T) fixture {
	f := fixture{t, t.TempDir()}
	f.write("/proc/sys/kernel/osrelease", "6.1.0-test\n")
	f.write("/proc/sys/kernel/random/boot_id", "0a1b\n")
	f.write("/proc/sys/kernel/hostname", "fixture-node\n")
	f.write("/etc/os-release", "ID=amzn\nPRETTY_NAME=\"Amazon Linux 2023\"\n")
	return f
}

func (f fixture) write(path, content string) {
	f.t.Helper()
	full := filepath.Join(f.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) host() *host.Host {
	f.t.Helper()
	h, err := host.New(f.root)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// collected is a bundle read back.
type collected struct {
	res      Result
	manifest *bundle.Manifest
	dir      string
}

// collectTest makes a bundle, verifies it and extracts it.
func collectTest(t *testing.T, opts Options, table []entry) collected {
	t.Helper()
	if opts.Output == "" {
		opts.Output = filepath.Join(t.TempDir(), "b.tar.gz")
	}
	res, err := collectTable(t.Context(), opts, table)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(res.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "x")
	rep, err := bundle.Extract(f, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Manifest == nil {
		t.Fatal("the bundle has no manifest")
	}
	return collected{res, rep.Manifest, dir}
}

func (c collected) item(t *testing.T, path string) bundle.Item {
	t.Helper()
	for _, it := range c.manifest.Items {
		if it.Path == path {
			return it
		}
	}
	t.Fatalf("%s is not in the manifest", path)
	return bundle.Item{}
}

func (c collected) text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARootWithoutBinariesGivesItsFiles(t *testing.T) {
	f := newFixture(t)
	f.write("/var/log/messages", "hello\n")
	f.write("/var/log/cron", "")
	f.write("/proc/meminfo", "MemTotal: 1 kB\n")
	f.write("/var/log/pods/kube-system_aws-node-x_uid/aws-node/0.log", "from the pod\n")
	f.write("/etc/cni/net.d/10-aws.conflist", "{}")
	c := collectTest(t, Options{Host: f.host(), AgentVersion: "v1.2.3"}, fullTable())

	m := c.manifest
	if m.Node != "fixture-node" || m.Kernel != "6.1.0-test" || m.BootID != "0a1b" || m.AgentVersion != "v1.2.3" || !slices.Equal(m.Platform, []string{"amzn"}) {
		t.Errorf("manifest: %+v", m)
	}
	for path, want := range map[string]bundle.Status{
		"var_log/messages":        bundle.StatusOK,
		"var_log/cron":            bundle.StatusEmpty,
		"var_log/syslog":          bundle.StatusAbsent,
		"system/proc/meminfo.txt": bundle.StatusOK,
		"var_log/kube-system_aws-node-x_uid/aws-node/0.log": bundle.StatusOK,
		"cni/10-aws.conflist":                               bundle.StatusOK,
		"networking/iptables.txt":                           bundle.StatusAbsent,
		"kubelet/kubelet.log":                               bundle.StatusAbsent,
		"ipamd/enis.json":                                   bundle.StatusAbsent,
		"networking/dns.txt":                                bundle.StatusAbsent,
		"gpu/nvidia-smi.txt":                                bundle.StatusAbsent,
		"networking/nftables-*.txt":                         bundle.StatusAbsent,
		"var_log/aws-routed-eni/*":                          bundle.StatusAbsent,
		"containerd/containerd-images.txt":                  bundle.StatusAbsent,
	} {
		if it := c.item(t, path); it.Status != want || (want == bundle.StatusAbsent && it.Error == "") {
			t.Errorf("%s: %s (%s), want %s", path, it.Status, it.Error, want)
		}
	}
	if got := c.text(t, "var_log/kube-system_aws-node-x_uid/aws-node/0.log"); got != "from the pod\n" {
		t.Errorf("pod log: %q", got)
	}
	if c.res.Failed != 0 {
		t.Errorf("failed: %q", c.res.Errors)
	}
}

// Every entry of the table is in the manifest, whatever became of it.
func TestEveryEntryIsInTheManifest(t *testing.T) {
	c := collectTest(t, Options{Host: newFixture(t).host()}, fullTable())
	for _, n := range fullTable() {
		it := c.item(t, n.path)
		if it.Status != bundle.StatusOK && it.Status != bundle.StatusEmpty && it.Error == "" {
			t.Errorf("%s is %s without a reason", n.path, it.Status)
		}
		if it.Category != string(n.category) || it.Source == "" {
			t.Errorf("%s: category %q, source %q", n.path, it.Category, it.Source)
		}
	}
}

func TestOnlyTheCategoriesAskedForAreCollected(t *testing.T) {
	c := collectTest(t, Options{Host: newFixture(t).host(), Categories: []v1alpha1.LogCategory{"Base"}}, fullTable())
	for _, it := range c.manifest.Items {
		if it.Source != bundle.SourceAgent && it.Category != "Base" {
			t.Errorf("%s of %s", it.Path, it.Category)
		}
	}
	if !slices.Equal(c.manifest.Categories, []string{"Base"}) {
		t.Errorf("categories %q", c.manifest.Categories)
	}
}

func TestBundleHasItsHashBesideItAndOwnFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	out := filepath.Join(dir, "node-logs.tar.gz")
	c := collectTest(t, Options{Host: newFixture(t).host(), Output: out, Findings: []byte(`{"findings":[{"severity":"Fatal","reason":"X","subject":"gpu0","message":"token=hunter2"}]}`)}, nil)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	hexSum := hex.EncodeToString(sum[:])
	side, err := os.ReadFile(out + ".sha256")
	if err != nil || string(side) != hexSum+"  node-logs.tar.gz\n" {
		t.Errorf(".sha256: %q, %v", side, err)
	}
	if c.res.SHA256 != hexSum || c.res.Bytes != int64(len(b)) {
		t.Errorf("result %+v", c.res)
	}
	for name, mode := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, out: 0o600, out + ".sha256": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	for _, name := range []string{"manifest.json", "index.txt", "errors.txt", "log-capture-errors.log", "findings.json", "summary.txt"} {
		c.text(t, name)
	}
	if s := c.text(t, "summary.txt"); !strings.Contains(s, "Fatal X gpu0") || strings.Contains(s, "hunter2") {
		t.Errorf("summary:\n%s", s)
	}
	if s := c.text(t, "findings.json"); strings.Contains(s, "hunter2") || !json.Valid([]byte(s)) {
		t.Errorf("findings: %s", s)
	}
	onlyBundle(t, dir, "node-logs.tar.gz")
}

func TestSummaryTellsHealthyFromUnwatched(t *testing.T) {
	for findings, want := range map[string]string{
		"":                "not watched",
		"{}":              "not watched",
		`{"findings":[]}`: "no fault is known",
		`{"findings":[{"reason":"Y\n","severity":"Warning","evidence":"seen"}]}`: "Warning Y: seen",
	} {
		if got := findingsText([]byte(findings)); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("findings %q: %q, want %q", findings, got, want)
		}
	}
}

// onlyBundle checks that nothing but the bundle is in its folder.
func onlyBundle(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range entries {
		if !slices.Contains(names, strings.TrimSuffix(d.Name(), ".sha256")) {
			t.Errorf("left behind: %s", d.Name())
		}
	}
}

func TestFilesOverTheirBoundKeepHeadAndTail(t *testing.T) {
	f := newFixture(t)
	var big strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&big, "line %d\n", i)
	}
	f.write("/big", big.String())
	c := collectTest(t, Options{Host: f.host()}, category("Base", file("big", "/big").max(1000)))
	text := c.text(t, "big")
	if !strings.HasPrefix(text, "line 0\nline 1\n") || !strings.HasSuffix(text, "line 19998\nline 19999\n") || !strings.Contains(text, "left out") || len(text) > 1200 {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	if it := c.item(t, "big"); it.Status != bundle.StatusOK || !it.Truncated || it.Error == "" {
		t.Errorf("%+v", it)
	}
	if c.res.Truncated != 1 || !strings.Contains(c.text(t, "errors.txt"), "big: truncated") {
		t.Errorf("not told of: %+v", c.res)
	}
}

func TestFilesOfAPatternHaveThePatternsBound(t *testing.T) {
	f := newFixture(t)
	f.write("/d/a", strings.Repeat("line\n", 1000))
	c := collectTest(t, Options{Host: f.host()}, category("System", glob("d/", "/d/", "*").max(500)))
	if it := c.item(t, "d/a"); !it.Truncated || it.Bytes > 700 || it.Category != "System" {
		t.Errorf("%+v", it)
	}
}

func TestABundleNeverHoldsMoreThanItsBound(t *testing.T) {
	f := newFixture(t)
	var table []entry
	for i := range 30 {
		name := fmt.Sprintf("/f%d", i)
		f.write(name, strings.Repeat("0123456789abcde\n", 10_000))
		table = append(table, file(name[1:], name))
	}
	c := collectTest(t, Options{Host: f.host(), MaxBytes: rootReserve + 1<<20}, category("Base", table...))
	var sum int64
	for _, it := range c.manifest.Items {
		if it.Source != bundle.SourceAgent {
			sum += it.Bytes
		}
	}
	if sum > 1<<20 || c.res.OK < 3 || c.res.Failed == 0 {
		t.Errorf("%d bytes, %+v", sum, c.res)
	}
}

func TestTwoSourcesOfOneNameAreBothKept(t *testing.T) {
	f := newFixture(t)
	f.write("/a", "one")
	f.write("/b", "two")
	c := collectTest(t, Options{Host: f.host()}, category("Base", file("same", "/a"), file("same", "/b"), file("manifest.json", "/a")))
	if got := []string{c.text(t, "same"), c.text(t, "same~2")}; !slices.Contains(got, "one") || !slices.Contains(got, "two") {
		t.Errorf("%q", got)
	}
	if c.text(t, "manifest.json~2") != "one" {
		t.Error("a source may not take the manifest's name")
	}
}

func TestUnusableOptionsAreErrorsAndLeaveNothing(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	good := Options{Host: f.host(), Output: filepath.Join(dir, "b.tar.gz")}
	for name, change := range map[string]func(*Options){
		"no host":          func(o *Options) { o.Host = nil },
		"no name":          func(o *Options) { o.Output = "" },
		"not a tar.gz":     func(o *Options) { o.Output = filepath.Join(dir, "b.zip") },
		"unknown category": func(o *Options) { o.Categories = []v1alpha1.LogCategory{"Nope"} },
		"negative time":    func(o *Options) { o.Timeout = -1 },
		"bad findings":     func(o *Options) { o.Findings = []byte("{") },
		"folder is a file": func(o *Options) { o.Output = filepath.Join(f.root, "etc/os-release/b.tar.gz") },
	} {
		opts := good
		change(&opts)
		if _, err := Collect(t.Context(), opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	onlyBundle(t, dir)
}

func TestACancelledCaptureLeavesTheOlderBundle(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "b.tar.gz")
	if err := os.WriteFile(out, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := function("x", "", func(ctx context.Context, _ *env, _ io.Writer) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	_, err := collectTable(ctx, Options{Host: f.host(), Output: out}, category("Base", stop))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "older" {
		t.Errorf("older bundle: %q, %v", b, err)
	}
	onlyBundle(t, dir, "b.tar.gz")
}
