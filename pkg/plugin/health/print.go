package health

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/report"
)

// printer is kubectl's own one for that form of output.
func printer(output string) (printers.ResourcePrinter, error) {
	flags := genericclioptions.NewPrintFlags("")
	*flags.OutputFormat = output
	p, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("-o %s: unknown form of results; use wide, json, yaml, name, jsonpath=TEMPLATE or go-template=TEMPLATE", output)
	}
	if err != nil {
		return nil, fmt.Errorf("-o %s: %w", output, err)
	}
	return p, nil
}

// printTyped prints the typed list, or the names of its nodes.
func printTyped(w io.Writer, s *snapshot, o *Options) error {
	p, err := printer(o.Output)
	if err != nil {
		return err
	}
	rows := chosen(s.rows, o)
	if o.Output == "name" {
		for i := range rows {
			node := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
				ObjectMeta: metav1.ObjectMeta{Name: rows[i].Name},
			}
			if err := p.PrintObj(node, w); err != nil {
				return err
			}
		}
		return nil
	}
	list := report.NodeHealthList{ServerTime: metav1.NewTime(s.view.Now.UTC()), Totals: fleet.Count(s.rows), Missing: s.missing}
	if o.GroupBy != "" {
		for _, g := range fleet.GroupBy(s.rows, o.GroupBy) {
			list.Groups = append(list.Groups, report.Group{Label: o.GroupBy, Value: g.Value, Totals: g.Totals})
		}
	}
	for _, h := range fleet.Shares(s.rows) {
		list.Shares = append(list.Shares, report.Share(h))
	}
	for i := range rows {
		list.Items = append(list.Items, report.FromRow(rows[i]))
	}
	object, err := list.Object()
	if err != nil {
		return err
	}
	return p.PrintObj(object, w)
}
