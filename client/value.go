package client

import "encoding/json"

// Value is a member of a change. The zero Value leaves things as they are.
type Value[T any] struct {
	value   *T
	isGiven bool
}

// Set changes a member to v.
func Set[T any](v T) Value[T] { return Value[T]{value: &v, isGiven: true} }

// Reset takes a member back to its default.
func Reset[T any]() Value[T] { return Value[T]{isGiven: true} }

// IsZero reports whether the member stays as it is; encoding/json leaves it out then.
func (v Value[T]) IsZero() bool { return !v.isGiven }

// MarshalJSON writes null for the default.
func (v Value[T]) MarshalJSON() ([]byte, error) { return json.Marshal(v.value) }
