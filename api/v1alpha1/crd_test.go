package v1alpha1

import (
	"bytes"
	"os"
	"testing"
)

// Helm installs CRDs from a folder of the chart and cannot reach outside of it.
func TestTheChartHoldsTheSameCRD(t *testing.T) {
	const name = "eks.amazonaws.com_nodediagnostics.yaml"
	ours, err := os.ReadFile("../crds/" + name)
	if err != nil {
		t.Fatal(err)
	}
	charts, err := os.ReadFile("../../charts/node-agent/crds/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours, charts) {
		t.Errorf("charts/node-agent/crds/%s differs from api/crds: copy it", name)
	}
}
