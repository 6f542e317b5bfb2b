package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// hintUsage makes wrong flags and arguments of cmd and its subcommands errors that
// say where help is, and a verb that a group of commands does not have an error too.
func hintUsage(cmd *cobra.Command) {
	hint := func(c *cobra.Command, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%w (see %s --help)", err, c.CommandPath())
	}
	cmd.SetFlagErrorFunc(hint)
	check := cmd.Args
	if check == nil && cmd.HasSubCommands() {
		check = noSuchVerb
		if !cmd.Runnable() {
			// Without it cobra shows help for any words, and calls that success.
			cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error { return hint(c, check(c, args)) }
	}
	for _, sub := range cmd.Commands() {
		hintUsage(sub)
	}
}

func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}
