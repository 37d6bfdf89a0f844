package freshet

import "fmt"

// Distribution is how the program came to the machine.
type Distribution string

// The distributions. The container images say so in their configuration.
const (
	DistributionBinary    Distribution = "binary"
	DistributionContainer Distribution = "container"
)

// Edition is what an installation may do.
type Edition struct {
	Name        string
	Connections int64 // subscribers at once, on all nodes together; 0 is any number
}

// BetaEdition is the container distribution without an activation key: to try things out, not for production.
var BetaEdition = Edition{Name: "beta", Connections: 10}

// OpenEdition is the plain binary without an activation key: it has no limits of its own.
var OpenEdition = Edition{Name: "open"}

// EditionOf returns the edition of an installation. An activation key, if there is one, decides; nil means none.
func EditionOf(d Distribution, a *Activation) Edition {
	switch {
	case a != nil:
		return Edition{Name: a.Edition, Connections: a.Limits.Connections}
	case d == DistributionContainer:
		return BetaEdition
	}
	return OpenEdition
}

// Refusal is what a subscriber beyond the limit is told.
func (e Edition) Refusal() string {
	text := fmt.Sprintf("Too many connections: the %s edition of this server allows %d", e.Name, e.Connections)
	if e == BetaEdition {
		text += "; an activation key lifts the limit"
	}
	return text
}
