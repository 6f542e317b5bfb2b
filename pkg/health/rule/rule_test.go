package rule

import (
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func TestEmbeddedRulesAreProvedByTheirSamples(t *testing.T) {
	rules, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(rules, health.NewCatalog()); err != nil {
		t.Fatal(err)
	}
}
