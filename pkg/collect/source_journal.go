package collect

import (
	"fmt"
)

// journal is an entry for the journal of units, as far back as was asked for.
func journal(path string, units ...string) entry {
	return entry{
		path: path, bytes: logBytes, timeout: journalTimeout,
		src: commandSource{journal: true, units: units, argvs: func(e *env) [][]string {
			argv := journalctl(e)
			for _, u := range units {
				argv = append(argv, "-u", u)
			}
			return [][]string{argv}
		}},
	}
}

// kernelJournal is an entry for the kernel's records of a boot (0 is this one).
func kernelJournal(path, boot string) entry {
	return entry{
		path: path, bytes: logBytes, timeout: journalTimeout,
		src: commandSource{journal: true, argvs: func(*env) [][]string {
			return [][]string{{"journalctl", "--no-pager", "-q", "-o", "short-iso-precise", "-k", "-b", boot}}
		}},
	}
}

func journalctl(e *env) []string {
	return []string{
		"journalctl", "--no-pager", "-q", "-o", "short-iso-precise",
		// Relative, so that the host's clock and zone are used, not ours.
		"--since", fmt.Sprintf("-%ds", int64(e.since.Seconds())),
	}
}

// firstOf is an entry for the first of several sources that has something.
func firstOf(n entry, more ...entry) entry {
	srcs := []source{n.src}
	for _, m := range more {
		srcs = append(srcs, m.src)
		n.timeout = max(n.timeout, m.timeout)
		n.bytes = max(n.bytes, m.bytes)
	}
	n.src = firstSource(srcs)
	return n
}
