package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// maxFile bounds the file; a ConfigMap cannot be larger.
const maxFile = 1 << 20

// Load reads and checks the file. A file that does not exist is the default config.
func Load(path string) (*Config, error) {
	c, err := LoadExisting(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Config{}, nil
	}
	return c, err
}

// LoadExisting is Load, but that the file must exist.
func LoadExisting(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("config: %w", err)
	case len(data) > maxFile:
		return nil, fmt.Errorf("config %s: larger than %d bytes", path, maxFile)
	}
	return Parse(path, data)
}

// Parse checks a file's content; name is what errors call it. Every error names the
// line. A file without apiVersion and kind is taken for the EKS agent's, whose keys
// are a part of ours.
func Parse(name string, data []byte) (*Config, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", name, tidy(err))
	}
	if len(root.Content) == 0 {
		return &Config{}, nil
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	c := &Config{}
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, tidy(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document: the config is a single one", name)
	}
	if p := c.check(root.Content[0]); len(p) > 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(p...))
	}
	return c, nil
}

// unknownField is how the YAML library says that a key is unknown.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// goType is how it says what it wanted instead.
var goType = regexp.MustCompile(` into (map\[string\])?config\.\S+`)

// tidy makes the library's errors speak of the file instead of Go types.
func tidy(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text = unknownField.ReplaceAllString(text, `unknown field "$1"`)
	text = goType.ReplaceAllString(text, "")
	return errors.New(strings.Join(strings.Fields(text), " "))
}

// problems collects errors with the lines that they are about.
type problems struct {
	root *yaml.Node
	errs []error
}

func (p *problems) add(at []string, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("line %d: %s: %s", line(p.root, at), strings.Join(at, "."), fmt.Sprintf(format, args...)))
}

// line is where the last key of the path that is there stands.
func line(n *yaml.Node, path []string) int {
	at := n.Line
	for _, key := range path {
		if n.Kind != yaml.MappingNode {
			break
		}
		found := false
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				at, n, found = n.Content[i].Line, n.Content[i+1], true
				break
			}
		}
		if !found {
			break
		}
	}
	return at
}

func (c *Config) check(root *yaml.Node) []error {
	p := &problems{root: root}
	foreign := c.APIVersion == "" && c.Kind == ""
	switch {
	case foreign && len(c.Monitors) > 0 && len(root.Content) == 2:
		// The EKS agent's file: "monitors" and nothing else.
	case c.APIVersion != APIVersion:
		p.add([]string{"apiVersion"}, "%q is not known to this build; say %s", c.APIVersion, APIVersion)
	case c.Kind != Kind:
		p.add([]string{"kind"}, "%q; say %s", c.Kind, Kind)
	}
	c.checkMonitors(p)
	if c.Mode != "" && c.Mode != shadow {
		p.add([]string{"mode"}, "%q; say shadow, or leave it out", c.Mode)
	}
	if c.CleanSamples < 0 || c.CleanSamples > 100 {
		p.add([]string{"cleanSamples"}, "%d is not between 1 and 100", c.CleanSamples)
	}
	if c.EventStyle != "" && c.EventStyle != "events" && c.EventStyle != "eks" {
		p.add([]string{"eventStyle"}, "%q; say events or eks", c.EventStyle)
	}
	c.checkReasons(p)
	for name, ch := range c.Checks {
		if ch.Interval != 0 && ch.Interval < Duration(1e9) {
			p.add([]string{"checks", name, "interval"}, "less than a second")
		}
	}
	return p.errs
}

func (c *Config) checkMonitors(p *problems) {
	known := names()
	seen := map[string]string{}
	for name, m := range c.Monitors {
		at := func(key string) []string { return []string{"monitors", name, key} }
		if _, ok := known[name]; !ok {
			p.add([]string{"monitors", name}, "no such monitor; there are kernel, container-runtime, networking, storage, nvidia and neuron")
			continue
		}
		if other, twice := seen[canonical(name)]; twice {
			p.add([]string{"monitors", name}, "it is the same monitor as %s", other)
		}
		seen[canonical(name)] = name
		if canonical(name) != "networking" && (len(m.AllowedIPTablesChains) > 0 || len(m.ExcludedInterfaceNameRegexps) > 0 || len(m.EssentialInterfaces) > 0) {
			p.add([]string{"monitors", name}, "allowedIPTablesChains, excludedInterfaceNameRegexps and essentialInterfaces belong to networking")
		}
		if canonical(name) != "container-runtime" && len(m.EssentialUnits) > 0 {
			p.add(at("essentialUnits"), "belongs to container-runtime")
		}
		if canonical(name) != "storage" && len(m.EssentialMounts) > 0 {
			p.add(at("essentialMounts"), "belongs to storage")
		}
		for _, mount := range m.EssentialMounts {
			if !strings.HasPrefix(mount, "/") {
				p.add(at("essentialMounts"), "%q; say an absolute path", mount)
			}
		}
		if name != "nvidia" && m.ExpectedGPUs != 0 {
			p.add(at("expectedGPUs"), "belongs to nvidia")
		}
		if m.ExpectedGPUs < -1 {
			p.add(at("expectedGPUs"), "%d; say a number of GPUs, or -1 to expect nothing", m.ExpectedGPUs)
		}
		for _, chain := range m.AllowedIPTablesChains {
			table, rest, ok := strings.Cut(chain, "/")
			if !ok || table == "" || rest == "" || strings.ContainsAny(rest, "/ \t") || strings.ContainsAny(table, " \t") {
				p.add(at("allowedIPTablesChains"), "%q; say table/chain, such as filter/MY-CHAIN", chain)
			}
		}
		for _, expr := range m.ExcludedInterfaceNameRegexps {
			if _, err := regexp.Compile(expr); err != nil || strings.TrimSpace(expr) == "" {
				p.add(at("excludedInterfaceNameRegexps"), "%q is no regular expression", expr)
			}
		}
	}
}

func (c *Config) checkReasons(p *problems) {
	for code, r := range c.Reasons {
		at := func(key string) []string { return []string{"reasons", code, key} }
		if r.Severity != "" && r.Severity.Rank() == 0 {
			p.add(at("severity"), "%q; say %s, %s or %s", r.Severity, health.Fatal, health.Warning, health.Info)
		}
		if r.Mode != "" && r.Mode != shadow {
			p.add(at("mode"), "%q; say shadow, or leave it out", r.Mode)
		}
		switch r.Clears {
		case "", "event", "poll", "reboot", "never":
		default:
			p.add(at("clears"), "%q; say event, poll, reboot or never", r.Clears)
		}
	}
}

// UnknownReasons are codes in the config that no row of the catalogue explains. They
// may be those of the operator's own rules, so they are no error.
func (c *Config) UnknownReasons(catalog *health.Catalog) []string {
	rows := map[string]bool{}
	for _, r := range catalog.Reasons() {
		rows[r.Code] = true
	}
	var out []string
	for code := range c.Reasons {
		if _, ok := catalog.Lookup(code); !ok && !rows[code] {
			out = append(out, code)
		}
	}
	return out
}
