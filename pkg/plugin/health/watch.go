package health

import "github.com/spf13/cobra"

func newWatchCommand(_ *shell) *cobra.Command { return &cobra.Command{Use: "watch"} }
