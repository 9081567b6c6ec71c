package fallback

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/fault"
	"github.com/holdfast-go/holdfast/policy"
)

const kind = "fallback"

// An Option changes a setting of [Value] or [Func]. The last of two equal options wins.
// None may be nil, nor a classifier that is given to one.
type Option interface{ apply(*settings) }

// Name names the fallback in events, errors and descriptions; not empty. Default:
// "fallback".
func Name(name string) Option {
	return option(func(s *settings) { s.name = name })
}

// If has the fallback answer for what c calls a Failure. Default: every error but
// the caller's own cancellation, and values that the call's [policy.Judge] calls a
// Failure.
func If(c policy.Classifier) Option {
	return option(func(s *settings) {
		s.classify = c
		if c == nil {
			s.nils = append(s.nils, "If(nil)")
		}
	})
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	name     string
	classify policy.Classifier
	nils     []string // options given nil, as the caller wrote them
}

func build(answer func(context.Context, error) (any, error), opts []Option) *Fallback {
	s := settings{name: kind}
	for _, o := range opts {
		if o == nil {
			s.nils = append(s.nils, "Option(nil)")
			continue
		}
		o.apply(&s)
	}

	faults := fault.For(kind, s.name)
	faults.Nil(s.nils)
	faults.Check(s.name != "", "must not be empty", "Name(%q)", s.name)
	if err := faults.Err(); err != nil {
		panic(err.Error())
	}
	return &Fallback{settings: s, answer: answer}
}
