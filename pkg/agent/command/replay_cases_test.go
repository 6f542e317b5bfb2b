package command

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// logCase is a case of cases.json: a log as its reporter saw it, and what it means.
type logCase struct {
	ID, Kind, Channel string
	Input, Messages   []string
	Expect            struct {
		Reason   *string
		Severity string
		Fields   map[string]any
	}
}

// described are fields of cases that describe what happened and are no part of a line,
// or are of a later line of the same incident: they are not extracted.
var described = map[string]bool{
	"K-28/overflow":    true, // of the second DIMM
	"K-48/reset":       true, // told by the finding that it recovered
	"K-48/recovered":   true,
	"R-02/last_active": true, // of the second line
	"R-02/flapping":    true,
	"K-26/corrected":   true, // unknown
}

func readCases(t *testing.T) []logCase {
	t.Helper()
	data, err := os.ReadFile(detectData + "cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []logCase
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var logs []logCase
	for _, c := range all {
		if c.Kind == "log" {
			logs = append(logs, c)
		}
	}
	if len(logs) < 80 {
		t.Fatalf("only %d log cases", len(logs))
	}
	return logs
}

func (c logCase) flags() []string {
	kind, name, _ := strings.Cut(c.Channel, ":")
	switch kind {
	case "journal":
		return []string{"--source", "journal", "--unit", name}
	case "file":
		return []string{"--source", "file", "--path", name}
	case "kmsg":
		return []string{"--source", "kmsg"}
	}
	return nil
}

// check compares what was found with what the case says. oneBoot says that the text
// has the times that group its lines.
func (c logCase) check(t *testing.T, got []replayLine) {
	t.Helper()
	found := loud(got)
	switch c.Expect.Severity {
	case "none":
		if len(found) > 0 {
			t.Errorf("found %+v, want nothing above Info", found)
		}
		return
	case "warning-at-most":
		for _, l := range found {
			if l.Severity == "Fatal" {
				t.Errorf("found %+v, want a Warning at most", l)
			}
		}
		return
	}
	severity := map[string]string{"fatal": "Fatal", "warning": "Warning"}[c.Expect.Severity]
	var matching []replayLine
	for _, l := range found {
		if string(l.Severity) == severity && c.isReason(l.Reason) {
			matching = append(matching, l)
		} else if l.Severity == "Fatal" {
			t.Errorf("also found Fatal %+v", l)
		}
	}
	if len(matching) == 0 {
		t.Fatalf("found %+v, want %s with severity %s", got, reasonOf(c), severity)
	}
	if n, ok := c.Expect.Fields["events"].(float64); ok && len(matching) != int(n) {
		t.Errorf("%d findings of one incident: %+v", len(matching), matching)
	}
	for name, want := range c.Expect.Fields {
		if name == "events" || described[c.ID+"/"+name] {
			continue
		}
		if got := matching[0].Fields[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("field %s is %v, want %v", name, got, want)
		}
	}
}

func (c logCase) isReason(reason string) bool {
	switch {
	case c.Expect.Reason == nil:
		return true
	case strings.HasPrefix(*c.Expect.Reason, "{Unit}"):
		return strings.HasSuffix(reason, strings.TrimPrefix(*c.Expect.Reason, "{Unit}"))
	}
	return reason == *c.Expect.Reason
}

func reasonOf(c logCase) string {
	if c.Expect.Reason == nil {
		return "a reason of our own"
	}
	return *c.Expect.Reason
}

func TestReplayFindsEveryCase(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			text := strings.Join(c.Input, "\n") + "\n"
			c.check(t, replayText(t, text, c.flags()...))
			if kind, _, _ := strings.Cut(c.Channel, ":"); kind != "kmsg" && kind != "other" {
				// Without the unit or the path, the line itself must do.
				c.check(t, replayText(t, text, "--source", kind))
			}
		})
	}
}

// TestReplayFindsKernelCasesInEveryShape prints the kernel's messages as each tool does.
func TestReplayFindsKernelCasesInEveryShape(t *testing.T) {
	shapes := map[string]func(i int, message string) string{
		"raw kmsg": func(i int, m string) string {
			return fmt.Sprintf("4,%d,%d,-,caller=T%d;%s", 100+i, 5000000+i*100, 7+i, strings.ReplaceAll(m, "\n", `\x0a`))
		},
		"dmesg":         func(i int, m string) string { return indented(fmt.Sprintf("[    5.%06d] ", i*100), m) },
		"dmesg, caller": func(i int, m string) string { return indented(fmt.Sprintf("[    5.%06d][ T%d] ", i*100, 7+i), m) },
		"dmesg -T":      func(_ int, m string) string { return indented("[Mon Aug  5 03:54:13 2024] ", m) },
		"dmesg -x":      func(i int, m string) string { return indented(fmt.Sprintf("kern  :warn  : [    5.%06d] ", i*100), m) },
		"dmesg iso": func(i int, m string) string {
			return indented(fmt.Sprintf("2025-01-21T04:41:44,%06d+00:00 ", i*100), m)
		},
		"journal short": func(_ int, m string) string { return indented("Aug 10 15:36:05 node-a kernel: ", m) },
		"journal precise": func(i int, m string) string {
			return indented(fmt.Sprintf("Aug 10 15:36:05.%06d node-a kernel: ", i*100), m)
		},
		"journal iso": func(_ int, m string) string { return indented("2025-08-10T15:36:05+0200 node-a kernel: ", m) },
		"syslog, uptime": func(i int, m string) string {
			return indented(fmt.Sprintf("Aug 10 15:36:05 node-a kernel: [    5.%06d] ", i*100), m)
		},
		"syslog priority":  func(i int, m string) string { return indented(fmt.Sprintf("<4>[    5.%06d] ", i*100), m) },
		"journal json":     func(i int, m string) string { return journalJSON(i, m, false) },
		"journal json raw": func(i int, m string) string { return journalJSON(i, m, true) },
	}
	for _, c := range readCases(t) {
		if len(c.Messages) == 0 || c.ID == "X-48" {
			continue // X-48 is about the facility of one shape
		}
		for name, shape := range shapes {
			t.Run(c.ID+"/"+name, func(t *testing.T) {
				var lines []string
				for i, m := range c.Messages {
					lines = append(lines, shape(i, m))
				}
				c.check(t, replayText(t, strings.Join(lines, "\n")+"\n"))
			})
		}
	}
}

// indented prints a message of several lines as dmesg and journalctl do.
func indented(prefix, message string) string {
	return prefix + strings.ReplaceAll(message, "\n", "\n"+strings.Repeat(" ", len(prefix)))
}

func journalJSON(i int, message string, bytes bool) string {
	var value any = message
	if bytes {
		var numbers []int
		for _, b := range []byte(message) {
			numbers = append(numbers, int(b))
		}
		value = numbers
	}
	b, err := json.Marshal(map[string]any{
		"MESSAGE": value, "PRIORITY": "4", "SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": "kernel", "_TRANSPORT": "kernel",
		"__REALTIME_TIMESTAMP": fmt.Sprint(1723304165000000 + i*100), "__MONOTONIC_TIMESTAMP": fmt.Sprint(5000000 + i*100),
		"_BOOT_ID": "0123456789abcdef0123456789abcdef", "__CURSOR": fmt.Sprintf("s=1;i=%x", i),
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}
