package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ekslogs/ekslogs/test/cluster/image"
	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

func newCommand() *cobra.Command {
	var state string
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real one-node Kubernetes cluster on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&state, "state-dir", "",
		"folder of the cluster's state (default $EKSLOGS_CLUSTER, or .cluster in the source tree)")
	root.AddCommand(
		verb("up", "Bring the cluster up; what runs already is left alone", cobra.NoArgs, &state,
			func(cmd *cobra.Command, c *onenode.Cluster, _ []string) error {
				if err := c.Up(cmd.Context(), cmd.ErrOrStderr()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", c.Kubeconfig())
				return err
			}),
		verb("packages", "Install the Debian packages that are missing, which up does otherwise", cobra.NoArgs, &state,
			func(cmd *cobra.Command, _ *onenode.Cluster, _ []string) error {
				return onenode.InstallPackages(cmd.Context())
			}),
		verb("build", "Build the cluster's programs ahead of up, which does it otherwise", cobra.NoArgs, &state,
			func(cmd *cobra.Command, c *onenode.Cluster, _ []string) error {
				return c.Build(cmd.Context(), cmd.ErrOrStderr())
			}),
		verb("down", "End the cluster and take away its traces", cobra.NoArgs, &state,
			func(cmd *cobra.Command, c *onenode.Cluster, _ []string) error {
				return c.Down(cmd.ErrOrStderr())
			}),
		verb("status", "Show what runs; the exit code is 1 unless the cluster can be used", cobra.NoArgs, &state, runStatus),
		newKubeconfigCommand(&state),
		verb("enter -- COMMAND...", "Run a command inside the node's mount namespace", cobra.MinimumNArgs(1), &state, runEnter),
		verb("load IMAGE PROGRAM [ARG...]", "Make an image of a program and give it to the node", cobra.MinimumNArgs(2), &state,
			func(cmd *cobra.Command, c *onenode.Cluster, args []string) error {
				return c.LoadImage(cmd.Context(), args[0], image.Spec{Binary: args[1], Args: args[2:]})
			}),
	)
	return root
}

// verb makes a subcommand that works on the cluster in the folder *state.
func verb(use, short string, args cobra.PositionalArgs, state *string,
	run func(*cobra.Command, *onenode.Cluster, []string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := onenode.New(*state)
			if err != nil {
				return err
			}
			return run(cmd, c, args)
		},
	}
}

func newKubeconfigCommand(state *string) *cobra.Command {
	var raw bool
	cmd := verb("kubeconfig", "Print the path of the administrator's kubeconfig", cobra.NoArgs, state,
		func(cmd *cobra.Command, c *onenode.Cluster, _ []string) error {
			if !raw {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
				return err
			}
			f, err := os.Open(c.Kubeconfig())
			if err != nil {
				return fmt.Errorf("the cluster is down, start it with 'go run ./test/cluster up': %w", err)
			}
			defer f.Close()
			_, err = io.Copy(cmd.OutOrStdout(), f)
			return err
		})
	cmd.Flags().BoolVar(&raw, "raw", false, "print its content instead")
	return cmd
}

func runStatus(cmd *cobra.Command, c *onenode.Cluster, _ []string) error {
	usable, err := c.Status(cmd.Context(), cmd.OutOrStdout())
	if err != nil {
		return err
	}
	if !usable {
		return errors.New("it cannot be used: start it with 'go run ./test/cluster up'")
	}
	return nil
}

// runEnter becomes the command, so that signals reach it.
func runEnter(cmd *cobra.Command, c *onenode.Cluster, args []string) error {
	enter, err := c.Enter(cmd.Context(), args...)
	if err != nil {
		return err
	}
	return syscall.Exec(enter.Path, enter.Args, os.Environ())
}
