package ekslogs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
)

// durationValue is a flag for a span of time that is longer than nothing. Besides
// what Go knows it takes days, such as 10d.
type durationValue struct{ d *time.Duration }

func (v durationValue) String() string {
	if v.d == nil || *v.d == 0 {
		return ""
	}
	return shortDuration(*v.d)
}

// shortDuration is d without the zeros that time.Duration adds: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (v durationValue) Type() string { return "duration" }

func (v durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && n <= 36500 {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("must be longer than nothing and have a unit, for example 90s, 5m, 24h or 10d")
	}
	*v.d = d
	return nil
}

// categoriesValue is a flag for categories, without regard to case, repeated or
// separated by commas.
type categoriesValue struct{ categories *[]v1alpha1.LogCategory }

func (v categoriesValue) String() string {
	if v.categories == nil {
		return ""
	}
	names := make([]string, len(*v.categories))
	for i, c := range *v.categories {
		names[i] = string(c)
	}
	return strings.Join(names, ",")
}

func (v categoriesValue) Type() string { return "names" }

func (v categoriesValue) Set(s string) error {
	for _, word := range strings.Split(s, ",") {
		c, err := parseCategory(strings.TrimSpace(word))
		if err != nil {
			return err
		}
		if !strings.Contains(","+v.String()+",", ","+string(c)+",") {
			*v.categories = append(*v.categories, c)
		}
	}
	return nil
}

func parseCategory(word string) (v1alpha1.LogCategory, error) {
	names := categoryNames()
	for _, name := range names {
		if strings.EqualFold(word, name) {
			return v1alpha1.LogCategory(name), nil
		}
	}
	near := suggest.Near(word, names, 1)
	return "", fmt.Errorf("unknown category %q; there are %s.%s", word, strings.Join(names, ", "), suggest.Sentence(near))
}

func categoryNames() []string {
	var names []string
	for _, c := range v1alpha1.LogCategories() {
		names = append(names, string(c))
	}
	return names
}
