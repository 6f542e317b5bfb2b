package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// WriteKmsg writes a critical record to the kernel's log. The file is opened anew:
// the kernel drops all but some ten records per five seconds of one open file. Without
// the newline, the kernel would keep the record open for more of the same line, and
// show it to no reader until the next record comes.
func WriteKmsg(text string) error {
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("<2>" + text + "\n")
	return errors.Join(err, f.Close())
}

// InKmsg reports whether the kernel's log holds the text: it drops a record now and
// then without a word.
func InKmsg(text string) (bool, error) {
	found := false
	err := readKmsg(func(_ uint64, record string) { found = found || strings.Contains(record, text) })
	return found, err
}

// NextKmsg is the sequence number that the next record of the kernel's log gets.
func NextKmsg() (uint64, error) {
	var next uint64
	err := readKmsg(func(seq uint64, _ string) { next = seq + 1 })
	return next, err
}

// readKmsg reads what the kernel's log holds.
func readKmsg(take func(seq uint64, record string)) error {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/kmsg: %w", err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			continue // overwritten meanwhile: what is there still comes next
		case err != nil:
			return fmt.Errorf("/dev/kmsg: %w", err)
		}
		record := string(buf[:n])
		var priority, seq uint64
		if _, err := fmt.Sscanf(record, "%d,%d,", &priority, &seq); err != nil {
			return fmt.Errorf("/dev/kmsg: %q: %w", record, err)
		}
		take(seq, record)
	}
}
