package command

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// injectOptions are the flags of "node-agent inject".
type injectOptions struct {
	subject string
	dryRun  bool
	device  string
	streams genericiooptions.IOStreams
}

func newInjectCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &injectOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "inject REASON",
		Short: "Write a record to the kernel's log that looks like a fault, for drills",
		Long: `Write a record to /dev/kmsg of this machine as the kernel would print it for the
reason, marked as injected. The agent finds it as it would find a real one.

What user space writes to the kernel's log is never worth more than a Warning, so a
Fatal reason turns its condition only when the agent runs with
--trust-userspace-kmsg: then whatever acts upon conditions will act.`,
		Example: "  node-agent inject KernelOops\n  node-agent inject BlockDeviceIOError --subject nvme1n1 --dry-run",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return injectable(health.NewCatalog()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&o.subject, "subject", "", "what is at fault, such as a device (default: the sample's)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print the record instead of writing it")
	cmd.Flags().StringVar(&o.device, "device", "/dev/kmsg", "where to write it")
	return cmd
}

// injectedMark is at the end of every injected record.
const injectedMark = " (injected by node-agent)"

func (o *injectOptions) run(reason string) error {
	catalog := health.NewCatalog()
	row, ok := catalog.Lookup(reason)
	if !ok {
		return fmt.Errorf("no reason %s; \"node-agent reasons\" lists them", reason)
	}
	text, err := sampleFor(catalog, reason, o.subject)
	if err != nil {
		return err
	}
	if o.dryRun {
		fmt.Fprintln(o.streams.Out, text)
		return nil
	}
	// The kernel lets one open file write about ten records each five seconds, so it is
	// opened for this record only.
	f, err := os.OpenFile(o.device, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("%w; run it as root on the node", err)
	}
	_, err = f.WriteString("<2>" + text + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write to %s: %w", o.device, err)
	}
	fmt.Fprintf(o.streams.Out, "written: %s\n", text)
	if row.Severity == health.Fatal {
		fmt.Fprintln(o.streams.ErrOut, "this reason is Fatal; the agent takes it for a Warning unless it runs with --trust-userspace-kmsg")
	}
	return nil
}

// sampleFor finds a line that is found to be the reason, about the subject, by asking
// the detection itself.
func sampleFor(catalog *health.Catalog, reason, subject string) (string, error) {
	candidates, err := kernelSamples(reason)
	if err != nil {
		return "", err
	}
	p, err := detect.New(detect.Options{Catalog: catalog})
	if err != nil {
		return "", err
	}
	for _, text := range candidates {
		found, ok := detected(p, text+injectedMark, reason)
		if !ok {
			continue
		}
		if subject == "" || found == subject {
			return text + injectedMark, nil
		}
		if found == "" || !strings.Contains(text, found) {
			continue
		}
		text = strings.ReplaceAll(text, found, subject) + injectedMark
		if got, ok := detected(p, text, reason); ok && got == subject {
			return text, nil
		}
	}
	if subject != "" && len(candidates) > 0 {
		return "", fmt.Errorf("no record for %s can be about %q; leave --subject out to see what it can be about", reason, subject)
	}
	return "", fmt.Errorf("%s is not found by one line of the kernel's log, so it cannot be injected; \"node-agent reasons %s\" says what finds it", reason, reason)
}

// detected runs the detection over one line, to its end, and returns the subject of the finding
// with that reason.
func detected(p *detect.Pipeline, text, reason string) (subject string, ok bool) {
	r := host.Record{Source: host.SourceKmsg, Message: text, Kernel: true, Facility: host.FacilityKernel, Priority: 2}
	for _, f := range append(p.Detect(r), p.Flush(time.Time{})...) {
		if f.Reason == reason {
			return f.Subject, true
		}
	}
	return "", false
}

var xidCode = regexp.MustCompile(`^NvidiaXID([0-9]+)(Error|Warning)$`)
var sxidCode = regexp.MustCompile(`^NvidiaSXID([0-9]+)(Error|Warning)$`)

// kernelSamples are lines that the kernel prints for the reason: those that prove the
// rules, and for what is read by code, one for each kind.
func kernelSamples(reason string) ([]string, error) {
	if m := xidCode.FindStringSubmatch(reason); m != nil {
		return []string{"NVRM: Xid (PCI:0000:b3:00): " + m[1] + ", pid=1234, name=python3, an error"}, nil
	}
	if m := sxidCode.FindStringSubmatch(reason); m != nil {
		return []string{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): " + m[1] + ", Fatal, Link 28 an error"}, nil
	}
	rules, err := rule.Embedded()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range rules {
		if r.Reason != reason || r.Source != host.SourceKmsg {
			continue
		}
		for _, s := range r.Samples.Match {
			out = append(out, s.Text)
		}
	}
	return append(out, moreSamples()[reason]...), nil
}

// moreSamples are lines for the reasons that detectors find in single lines.
func moreSamples() map[string][]string {
	return map[string][]string{
		"FilesystemShutdown":   {"XFS (nvme1n1): Filesystem has been shut down due to log error (0x2)."},
		"FilesystemReadOnly":   {"EXT4-fs (nvme1n1): Remounting filesystem read-only"},
		"BlockDeviceIOError":   {"I/O error, dev nvme1n1, sector 1048576 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"},
		"KernelOops":           {"BUG: unable to handle kernel NULL pointer dereference at 0000000000000008"},
		"SystemOOM":            {"Out of memory: Killed process 4242 (stress) total-vm:8388608kB, anon-rss:8000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:16000kB oom_score_adj:0"},
		"NvidiaRecoveryAction": {"NVRM: Xid (PCI:0000:b3:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
		"NeuronHBMUncorrectableError": {
			"neuron: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR nd=0",
		},
	}
}

// injectable lists the reasons that can be injected, for shell completion.
func injectable(catalog *health.Catalog) []string {
	var out []string
	for _, r := range catalog.Reasons() {
		if s, err := kernelSamples(r.Code); err == nil && len(s) > 0 {
			out = append(out, r.Code)
		}
	}
	slices.Sort(out)
	return out
}
