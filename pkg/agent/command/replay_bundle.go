package command

import (
	"context"
	"fmt"
	"strings"
)

func isBundle(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

func (o *replayOptions) bundle(context.Context, string) error {
	return fmt.Errorf("bundles: unpack it and replay the files")
}
