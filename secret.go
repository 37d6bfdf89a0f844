package freshet

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that must not be shown: a password, a token. It hides itself in logs and formatted output.
type Secret string

const hiddenSecret = "[hidden]"

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text from fmt.
func (s Secret) String() string { return hiddenSecret }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return hiddenSecret }

// Format hides the text from every verb of fmt, wrong ones included.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hiddenSecret) }

// MarshalText hides the text from encoders, so that a struct around it can be logged as JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hiddenSecret), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hiddenSecret) }
