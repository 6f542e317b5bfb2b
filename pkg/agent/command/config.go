package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/health"
)

func newConfigCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "The agent's config file",
	}
	cmd.AddCommand(newConfigValidateCommand(streams))
	return cmd
}

func newConfigValidateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a config file without using it",
		Long: `Check a config file as "node-agent run" would at its start and at each reload.
Errors name the line. The exit code is 1 when there is one.

The file of the EKS node monitoring agent ("monitors" and nothing else) is accepted
as it is.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := defaultConfigPath
			if len(args) == 1 {
				path = args[0]
			}
			return validateConfig(streams, path)
		},
	}
}

func validateConfig(streams genericiooptions.IOStreams, path string) error {
	cfg, err := config.LoadExisting(path)
	if err != nil {
		return err
	}
	unknown := cfg.UnknownReasons(health.NewCatalog())
	slices.Sort(unknown)
	for _, code := range unknown {
		fmt.Fprintf(streams.ErrOut, "warning: reason %s is not in the catalogue; that is right only if a rule of your own gives it\n", code)
	}
	fmt.Fprintf(streams.Out, "%s is good\n", path)
	return nil
}
