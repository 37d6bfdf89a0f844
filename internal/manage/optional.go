package manage

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// optional is a member that a body may leave out, which leaves the value alone. null takes the value away: it goes
// back to its default, or, where there is none, the noun says that it is required.
type optional[T any] struct {
	Set   bool
	Null  bool
	Value T // zero if Null
}

// UnmarshalJSON is only called for members that are present.
func (o *optional[T]) UnmarshalJSON(data []byte) error {
	o.Set = true
	if string(data) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

// Schema describes the member as what it holds. Objects stand where they are used, since a reference could not be
// nullable.
func (o optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// pointer returns the value, or nil where null asks for the default. Call it only if Set.
func (o optional[T]) pointer() *T {
	if o.Null {
		return nil
	}
	return &o.Value
}

// change returns the new value, or nil if the member was left out.
func (o optional[T]) change() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// given returns the value, or nil where there is none.
func (o optional[T]) given() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// replace sets field if the member was given.
func (o optional[T]) replace(field *T) {
	if o.Set {
		*field = o.Value
	}
}
