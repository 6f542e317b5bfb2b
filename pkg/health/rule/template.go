package rule

import (
	"fmt"
	"regexp"
	"strings"
)

var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

// template is text with fields in it: "{device} is full". A field that a line does
// not have is an empty string.
type template struct {
	text   string
	fields bool
}

// parseTemplate checks that every field that is named can be there.
func parseTemplate(text string, known map[string]bool) (template, error) {
	t := template{text: text}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		t.fields = true
		if !known[m[1]] {
			return template{}, fmt.Errorf("%q names the field %q, which no pattern has", text, m[1])
		}
	}
	return t, nil
}

func (t template) expand(fields map[string]any) string {
	if !t.fields {
		return t.text
	}
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(t.text, func(m string) string {
		if v, ok := fields[m[1:len(m)-1]]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}))
}
