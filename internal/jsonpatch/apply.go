package jsonpatch

import (
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrTest is what a [PatchError] wraps when a test operation found another value.
	ErrTest = errors.New("the value differs")
	// ErrTooLong is what it wraps when the patched document, or what its operations copy, would be longer than the limit.
	ErrTooLong = errors.New("the document, or what is copied on the way to it, becomes too long")
)

// A PatchError says which operation of a JSON Patch cannot be applied, and why. Its texts may be shown to whoever sent the
// patch.
type PatchError struct {
	Index int    // of the operation, from 0; -1 if the patch as a whole is at fault
	Op    string // as sent, if it was text
	Path  string // as sent, if it was text
	Err   error
}

func (e *PatchError) Error() string {
	if e.Index < 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("operation %d (%s %s): %s", e.Index, quoteName(e.Op), quote([]byte(e.Path)), e.Err)
}

func (e *PatchError) Unwrap() error { return e.Err }

// Malformed reports whether the patch is none, whatever the document it is applied to.
func (e *PatchError) Malformed() bool {
	_, shape := errors.AsType[shapeError](e.Err)
	return shape
}

// A shapeError says what an operation lacks to be one.
type shapeError string

func (e shapeError) Error() string { return string(e) }

// quoteName shows a short name plainly and anything else quoted.
func quoteName(name string) string {
	switch name {
	case "add", "remove", "replace", "move", "copy", "test":
		return name
	}
	return quote([]byte(name))
}

// Apply applies a JSON Patch (RFC 6902) and returns the new document; the old one stays as it is, also when an operation
// fails. A patch that is no JSON gives a *SyntaxError, everything else a *PatchError. The bytes that copy operations
// make count against limits.MaxBytes even where they are overwritten later.
func Apply(doc *Document, patch []byte, limits Limits) (*Document, error) {
	p, err := ParsePatch(patch, limits)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc, limits)
}

// A Patch is a JSON Patch (RFC 6902) that was read, to be applied to any number of documents. It never changes.
type Patch Document

// ParsePatch reads a JSON Patch. It takes src over. Its errors are those that Apply has for any document; a malformed operation is not
// among them, since what fails before it comes first.
func ParsePatch(src []byte, limits Limits) (*Patch, error) {
	parsed, err := Parse(src, limits)
	if err != nil {
		return nil, err
	}
	if parsed.Root().Kind() != Array {
		return nil, &PatchError{Index: -1, Err: shapeError("a JSON Patch must be an array of operations")}
	}
	return (*Patch)(parsed), nil
}

// Apply is the function Apply.
func (p *Patch) Apply(doc *Document, limits Limits) (*Document, error) {
	a := applier{root: rootTree(doc), limits: limits, room: limits.bytes()}
	index := 0
	for v := range (*Document)(p).Root().Elements() {
		if err := a.operation(v); err != nil {
			return nil, &PatchError{Index: index, Op: memberText(v, "op"), Path: memberText(v, "path"), Err: err}
		}
		index++
	}
	text, err := a.root.appendTo(nil, limits.depth())
	if err != nil {
		return nil, &PatchError{Index: -1, Err: err}
	}
	return accept(doc, text, limits)
}

// accept parses what a patch made of a document.
func accept(doc *Document, text []byte, limits Limits) (*Document, error) {
	if len(text) > limits.bytes() {
		return nil, &PatchError{Index: -1, Err: ErrTooLong}
	}
	next, err := ParseNext(doc, text, limits)
	if err != nil {
		return nil, &PatchError{Index: -1, Err: fmt.Errorf("the patched document is refused: %w", err)}
	}
	return next, nil
}

func memberText(v Value, name string) string {
	m, _ := v.Member(name)
	if m.doc == nil {
		return ""
	}
	return m.Text()
}

// An applier holds a document while operations are applied to it.
type applier struct {
	root   tree
	limits Limits
	room   int // bytes that copies may still take
}

// operation applies one operation.
func (a *applier) operation(v Value) error {
	if v.Kind() != Object {
		return shapeError("an operation must be an object")
	}
	op, err := requireText(v, "op")
	if err != nil {
		return err
	}
	path, err := requirePointer(v, "path")
	if err != nil {
		return err
	}
	switch op {
	case "remove":
		return a.remove(path)
	case "move", "copy":
		from, err := requirePointer(v, "from")
		if err != nil {
			return err
		}
		if op == "move" {
			return a.move(from, path)
		}
		return a.copy(from, path)
	case "add", "replace", "test":
		value, ok := v.Member("value")
		if !ok {
			return shapeError(`"value" is missing`)
		}
		return a.withValue(op, path, value)
	}
	return shapeError("there is no such operation")
}

func (a *applier) withValue(op string, path pointer, v Value) error {
	switch op {
	case "add":
		return a.add(path, tree{doc: v.doc, at: v.at})
	case "replace":
		target, err := a.find(path)
		if err == nil {
			*target = tree{doc: v.doc, at: v.at}
		}
		return err
	default:
		target, err := a.find(path)
		if err == nil && !target.equals(v.doc, v.at) {
			err = ErrTest
		}
		return err
	}
}

// requireText returns a member that must be a string.
func requireText(v Value, name string) (string, error) {
	m, ok := v.Member(name)
	switch {
	case !ok:
		return "", shapeError(fmt.Sprintf("%q is missing", name))
	case m.Kind() != String:
		return "", shapeError(fmt.Sprintf("%q must be a string", name))
	}
	return m.Text(), nil
}

func requirePointer(v Value, name string) (pointer, error) {
	text, err := requireText(v, name)
	if err != nil {
		return nil, err
	}
	p, err := parsePointer(text)
	if err != nil {
		return nil, shapeError(fmt.Sprintf("%q is no JSON Pointer: %s", name, err))
	}
	return p, nil
}

// find returns the value at a path.
func (a *applier) find(path pointer) (*tree, error) {
	t := &a.root
	for i, token := range path {
		c := t.unfold()
		if c == nil {
			return nil, fmt.Errorf("%s is neither an object nor an array", quote([]byte(path[:i].String())))
		}
		next, err := c.child(token)
		if err != nil {
			return nil, err
		}
		t = next
	}
	return t, nil
}

// child returns the child of a name or index.
func (c *container) child(token string) (*tree, error) {
	if c.kind == Array {
		i, err := arrayIndex(token, c.count-1)
		if err != nil {
			return nil, err
		}
		return c.element(i), nil
	}
	i := c.find(token)
	if i < 0 {
		return nil, fmt.Errorf("there is no member %s", quote([]byte(token)))
	}
	return &c.members[i].value, nil
}

// parent returns the container that the last token of a path is in.
func (a *applier) parent(path pointer) (*container, string, error) {
	last := len(path) - 1
	t, err := a.find(path[:last])
	if err != nil {
		return nil, "", err
	}
	c := t.unfold()
	if c == nil {
		return nil, "", fmt.Errorf("%s is neither an object nor an array", quote([]byte(path[:last].String())))
	}
	return c, path[last], nil
}

func (a *applier) add(path pointer, v tree) error {
	if len(path) == 0 {
		a.root = v
		return nil
	}
	c, token, err := a.parent(path)
	if err != nil {
		return err
	}
	if c.kind == Array {
		i := c.count
		if token != "-" {
			if i, err = arrayIndex(token, c.count); err != nil {
				return err
			}
		}
		c.insert(i, v)
		return nil
	}
	if i := c.find(token); i >= 0 {
		c.members[i].value = v
		return nil
	}
	c.append(token, appendEscaped(nil, []byte(token)), v)
	return nil
}

func (a *applier) remove(path pointer) error {
	if len(path) == 0 {
		return errors.New("the whole document cannot be removed")
	}
	c, token, err := a.parent(path)
	if err != nil {
		return err
	}
	if c.kind == Array {
		i, err := arrayIndex(token, c.count-1)
		if err == nil {
			c.removeElement(i)
		}
		return err
	}
	i := c.find(token)
	if i < 0 {
		return fmt.Errorf("there is no member %s", quote([]byte(token)))
	}
	c.removeMember(i)
	return nil
}

func (a *applier) move(from, path pointer) error {
	v, err := a.find(from)
	if err != nil {
		return fmt.Errorf(`"from": %w`, err)
	}
	if path.isBelow(from) {
		return errors.New("a value cannot be moved into itself")
	}
	if slices.Equal(from, path) {
		return nil
	}
	moved := *v
	if err := a.remove(from); err != nil {
		return err
	}
	return a.add(path, moved)
}

func (a *applier) copy(from, path pointer) error {
	v, err := a.find(from)
	if err != nil {
		return fmt.Errorf(`"from": %w`, err)
	}
	if err := v.fold(a.limits); err != nil {
		return err
	}
	if a.room -= int(v.doc.node(v.at).size); a.room < 0 {
		return ErrTooLong
	}
	return a.add(path, *v)
}
