package ekslogs

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// printResults writes the results in the form that o asks for.
func printResults(w io.Writer, o *Options, results []*Result) error {
	switch {
	case o.Output == "json" || o.Output == "yaml":
		return printList(w, o.Output, results)
	case o.Output == "name":
		for _, r := range results {
			if r.State != StateFailed {
				if _, err := fmt.Fprintln(w, "node/"+r.Node); err != nil {
					return err
				}
			}
		}
		return nil
	case o.Quiet:
		for _, r := range results {
			if r.File != "" {
				if _, err := fmt.Fprintln(w, r.File); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return printTable(w, o.Output == "wide", results)
}

func printList(w io.Writer, form string, results []*Result) error {
	list := BundleList{APIVersion: "ekslogs.io/v1", Kind: "BundleList", Items: make([]Result, len(results))}
	for i, r := range results {
		list.Items[i] = *r
	}
	var b []byte
	var err error
	if form == "yaml" {
		b, err = yaml.Marshal(list)
	} else {
		b, err = json.MarshalIndent(list, "", "  ")
		b = append(b, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func printTable(w io.Writer, wide bool, results []*Result) error {
	table := printers.GetNewTabWriter(w)
	header := []string{"NODE", "STATE", "SIZE", "DURATION", "ERRORS", "FILE"}
	if wide {
		header = append(header, "VERIFIED", "AGENT", "SHA256", "MESSAGE")
	}
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, r := range results {
		cells := []string{r.Node, string(r.State), "-", term.Seconds(time.Duration(r.Seconds * float64(time.Second))), "-", orDash(r.File)}
		if r.Bytes > 0 {
			cells[2] = term.Bytes(r.Bytes)
		}
		if r.Errors != nil {
			cells[4] = strconv.Itoa(*r.Errors)
		}
		if wide {
			message := r.Message
			if r.Error != "" {
				message = r.Error
			}
			cells = append(cells, orDash(r.Verified), orDash(r.AgentVersion), orDash(r.SHA256), orDash(message))
		}
		for i := range cells {
			cells[i] = term.Clean(cells[i])
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
