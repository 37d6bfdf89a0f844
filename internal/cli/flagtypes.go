package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/freshet-io/freshet/client"
)

// countFlag is a number that --help calls N.
type countFlag struct{ n *int }

func (f *countFlag) String() string {
	if f.n == nil || *f.n == 0 {
		return ""
	}
	return strconv.Itoa(*f.n)
}

func (f *countFlag) Type() string { return "N" }

// Set takes positive numbers.
func (f *countFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("must be a number from 1")
	}
	*f.n = n
	return nil
}

// listFlag may be repeated.
type listFlag struct {
	list        *[]string
	placeholder string
}

func (f *listFlag) String() string {
	if f.list == nil {
		return ""
	}
	return strings.Join(*f.list, ", ")
}

func (f *listFlag) Type() string { return f.placeholder }

// Set adds to the list.
func (f *listFlag) Set(text string) error {
	*f.list = append(*f.list, text)
	return nil
}

// quotaFlag is a limit: a number, or the word default.
type quotaFlag struct{ client.Value[int64] }

func (f *quotaFlag) String() string { return "" }
func (f *quotaFlag) Type() string   { return "N" }

// Set takes numbers from 0 and the word default.
func (f *quotaFlag) Set(text string) error {
	if text == "default" {
		f.Value = client.Reset[int64]()
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New("must be a number from 0, or default")
	}
	f.Value = client.Set(n)
	return nil
}

func quotaText(n int64) string {
	if n == 0 {
		return "any number"
	}
	return strconv.FormatInt(n, 10)
}
