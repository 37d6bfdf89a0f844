package cli

import "github.com/spf13/cobra"

func newDemo(*process) *cobra.Command { return &cobra.Command{Use: "demo", Hidden: true} }
