// Package logtext makes records of logs that were saved as text: by dmesg (plain, -T,
// -x, --time-format iso), from /dev/kmsg itself, by journalctl (short and its kin,
// json), by syslog daemons, by the container runtime, from pstore, or as rows of
// "kubectl get events". Each line is recognised by itself, so that a paste of several
// works.
//
// A line without any prefix is taken as what Options say, by default as the kernel's:
// that is what dmesg prints when told to print no time. A line that names a service is
// that service's, whatever it quotes.
package logtext
