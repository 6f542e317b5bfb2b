package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// iptablesKey is where the check remembers which rules it has told.
	iptablesKey = "check/iptables"
	// kubeletPort is where the API server reaches the kubelet.
	kubeletPort = 10250
	// iptablesTime bounds the reading of all tables.
	iptablesTime = 15 * time.Second
)

// iptables finds firewall rules that turn packets away and that nobody known has made,
// and rules that take the kubelet's port away from it. A set of rules is told once, not
// at each sample.
type iptables struct {
	check.Info
	opts Options
	told string
	save func(ctx context.Context, h *host.Host, to *ruleLines) error
}

func newIPTables(o Options) *iptables {
	return &iptables{Info: info("iptables", 5*time.Minute, "UnexpectedRejectRule", "PortConflict"), opts: o, save: saveIPTables}
}

// Run implements check.Check. Hybrid nodes have firewalls of their owners.
func (c *iptables) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	lines := &ruleLines{}
	err := c.save(ctx, h, lines)
	if errors.Is(err, host.ErrAbsent) {
		return nil, check.ErrNoData
	}
	if err != nil {
		return nil, err
	}
	bad := checkRules(c.opts, lines.rules)
	mark := fingerprint(bad)
	if c.told == "" && c.opts.Memory != nil {
		c.told = c.opts.Memory.Get(iptablesKey)
	}
	if len(bad) > 0 && mark == c.told {
		return nil, check.ErrNoData // neither news nor a clean sample
	}
	c.told = mark
	if c.opts.Memory != nil && c.opts.Memory.Get(iptablesKey) != mark {
		c.opts.Memory.Set(iptablesKey, mark)
	}
	return bad, nil
}

// fingerprint is the same for the same findings.
func fingerprint(fs []health.Finding) string {
	h := fnv.New64a()
	for _, f := range fs {
		fmt.Fprint(h, f.Reason, f.Subject, f.Evidence, "\n")
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// saveIPTables reads all tables by one process for each family of addresses. A copy of
// a machine's files has no rules.
func saveIPTables(ctx context.Context, h *host.Host, to *ruleLines) error {
	if !sameMachine(h) {
		return host.ErrAbsent
	}
	_, err := h.Run(ctx, host.Command{Argv: []string{"iptables-save"}, Stdout: to, Timeout: iptablesTime})
	if err != nil {
		return err
	}
	_, err = h.Run(ctx, host.Command{Argv: []string{"ip6tables-save"}, Stdout: to, Timeout: iptablesTime})
	if errors.Is(err, host.ErrAbsent) {
		return nil
	}
	return err
}

// ruleLines keeps of what iptables-save writes the rules that may matter: there may be
// tens of thousands of others.
type ruleLines struct {
	table string
	rest  []byte
	rules []firewallRule
}

// maxRuleLine bounds an unfinished line.
const maxRuleLine = 64 << 10

// Write implements io.Writer.
func (w *ruleLines) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			break
		}
		w.take(string(line))
		w.rest = rest
	}
	if len(w.rest) > maxRuleLine {
		w.rest = nil
	}
	return len(p), nil
}

func (w *ruleLines) take(line string) {
	if table, ok := strings.CutPrefix(line, "*"); ok {
		w.table = strings.TrimSpace(table)
		return
	}
	if !strings.Contains(line, "REJECT") && !strings.Contains(line, "DROP") && !strings.Contains(line, "DNAT") {
		return
	}
	if r, ok := parseRule(w.table, line); ok {
		w.rules = append(w.rules, r)
	}
}

// checkRules makes one finding for each chain.
func checkRules(o Options, rules []firewallRule) []health.Finding {
	var out []health.Finding
	list, index := knownRules(), map[string]int{}
	add := func(r firewallRule, reason, message string) {
		subject := r.table + "/" + r.chain
		if i, ok := index[reason+subject]; ok {
			out[i].Evidence += "\n" + r.text
			return
		}
		index[reason+subject] = len(out)
		f := check.Finding(o.Catalog, reason, subject, message)
		f.Evidence = r.text
		f.Fields = map[string]any{"table": r.table, "chain": r.chain, "target": r.target, "comment": r.comment}
		out = append(out, f)
	}
	for _, r := range rules {
		if r.redirects(kubeletPort) {
			add(r, "PortConflict", fmt.Sprintf("A rule in %s/%s sends what comes for the kubelet's port %d elsewhere: logs, exec and metrics fail.", r.table, r.chain, kubeletPort))
		}
		if r.refuses() && !o.Platform.Hybrid && !r.isKnown(list, o.AllowedChains) {
			add(r, "UnexpectedRejectRule", fmt.Sprintf("The chain %s/%s turns packets away, and is none of Kubernetes' or of a known network's.", r.table, r.chain))
		}
	}
	return out
}
