package policy

import (
	"errors"
	"fmt"
	"slices"
)

// Outcome is what a finished call says about the dependency.
type Outcome uint8

// The outcomes. The zero Outcome is none of them: a [Classifier] returns it to
// leave the decision to [DefaultClassifier].
const (
	Success Outcome = iota + 1
	Failure
	Ignored // says nothing about the dependency
)

// String returns "success", "failure", "ignored", "none" for 0, or "outcome(n)".
func (o Outcome) String() string {
	switch o {
	case 0:
		return "none"
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Ignored:
		return "ignored"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}

// MarshalText has JSON show the outcome as String does.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// A Classifier decides what an outcome says. It must be safe for concurrent use;
// no lock is held while it runs. A zero Outcome is taken as what err alone says:
// see [DefaultClassifier].
type Classifier func(value any, err error) Outcome

// DefaultClassifier calls a nil error a Success, a refusal (see [Rejected])
// Ignored, and every other error a Failure. It does not look at value.
func DefaultClassifier(_ any, err error) Outcome {
	switch {
	case err == nil:
		return Success
	case Rejected(err):
		return Ignored
	default:
		return Failure
	}
}

// Judgement is what the outcome means: what classify says, else the call if it is a
// [Judge], else [DefaultClassifier], each asked only where those before have no
// say. A nil classify has none.
func Judgement(classify Classifier, call Call, value any, err error) Outcome {
	outcome := Outcome(0)
	if classify != nil {
		outcome = classify(value, err)
	} else if j, ok := call.(Judge); ok {
		outcome = j.Outcome(value, err)
	}
	if outcome == 0 {
		return DefaultClassifier(value, err)
	}
	return outcome
}

// Classify makes a [Classifier] of a typed function. An untyped nil beside an error
// is passed as T's zero value; any other value that is no T goes to
// [DefaultClassifier]. It panics if f is nil.
func Classify[T any](f func(value T, err error) Outcome) Classifier {
	if f == nil {
		panic("policy: Classify(nil): must not be nil")
	}
	return func(value any, err error) Outcome {
		typed, ok := value.(T)
		if !ok && (value != nil || err == nil) {
			return DefaultClassifier(value, err)
		}
		return f(typed, err)
	}
}

// IgnoreErrors makes a [Classifier] that calls an error Ignored if it is one of
// targets, by errors.Is, and leaves the rest to [DefaultClassifier].
func IgnoreErrors(targets ...error) Classifier {
	targets = slices.Clone(targets)
	return func(value any, err error) Outcome {
		for _, target := range targets {
			if err != nil && errors.Is(err, target) {
				return Ignored
			}
		}
		return DefaultClassifier(value, err)
	}
}
