package ekslogs

import (
	"errors"

	"github.com/spf13/pflag"
)

// foreignFlags are those of the EKS node monitoring agent's script of the same name
// that mean something here only to be answered. Its -t, --timeout, -l and
// --output-dir are taken as they are.
type foreignFlags struct {
	s3, key, debugImage string
	noProxy             bool
}

func (f *foreignFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.s3, "s3", "", "")
	flags.StringVar(&f.key, "key", "", "")
	flags.StringVar(&f.debugImage, "debug-image", "", "")
	flags.BoolVar(&f.noProxy, "no-proxy", false, "")
	for _, name := range []string{"s3", "key", "debug-image", "no-proxy"} {
		// Unknown only to a flag set that does not have it.
		_ = flags.MarkHidden(name)
	}
}

func (f *foreignFlags) validate() error {
	switch {
	case f.s3 != "" || f.key != "":
		return errors.New("--s3 and --key are not here: bundles come through the API server and need no bucket.\n" +
			"To put one into a bucket:      aws s3 cp NODE-logs.tar.gz s3://BUCKET/KEY\n" +
			"To upload from the node itself: create a NodeDiagnostic whose spec.logCapture.destination is a presigned PUT URL")
	case f.noProxy || f.debugImage != "":
		return errors.New("--no-proxy and --debug-image are not here: no pod is started on the node to fetch a bundle.\n" +
			"Downloads need the right to \"get\" on \"nodes/proxy\". Without it, create a NodeDiagnostic whose\n" +
			"spec.logCapture.destination is a presigned PUT URL")
	}
	return nil
}
