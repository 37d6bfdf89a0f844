// Package chart holds the tests of the Helm chart in charts/freshet. They are apart from the rest because Helm and the types
// of Kubernetes take minutes to compile.
package chart
