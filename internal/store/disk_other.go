//go:build !linux && !darwin

package store

import "errors"

func spaceOf(string) (Space, error) { return Space{}, errors.ErrUnsupported }
