// Package fault collects what is wrong with the settings of a policy, so that its
// constructor can tell all of it at once.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// A List holds the faults of one policy. Make it with [For].
type List struct {
	of     string
	faults []string
}

// For starts the list of a policy of this package and name.
func For(pkg, name string) *List {
	return &List{of: fmt.Sprintf("%s %q", pkg, name)}
}

// Check adds a fault unless ok: the setting as the caller wrote it, made of format
// and args, and the rule that it breaks.
func (l *List) Check(ok bool, rule, format string, args ...any) {
	if !ok {
		l.faults = append(l.faults, fmt.Sprintf(format, args...)+": "+rule)
	}
}

// Nil adds a fault for each option that was given nil, as the caller wrote it.
func (l *List) Nil(options []string) {
	for _, option := range options {
		l.Check(false, "must not be nil", "%s", option)
	}
}

// Err is nil if there is no fault, else one error with all of them.
func (l *List) Err() error {
	if len(l.faults) == 0 {
		return nil
	}
	return errors.New(l.of + ": " + strings.Join(l.faults, "; "))
}
