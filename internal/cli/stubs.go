package cli

import "github.com/spf13/cobra"

func newBench(*process) *cobra.Command   { return &cobra.Command{Use: "bench", Hidden: true} }
func newExplain(*process) *cobra.Command { return &cobra.Command{Use: "explain", Hidden: true} }
func newGateway(*process) *cobra.Command { return &cobra.Command{Use: "gateway", Hidden: true} }
func newDemo(*process) *cobra.Command    { return &cobra.Command{Use: "demo", Hidden: true} }
