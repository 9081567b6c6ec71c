package policy

import "log/slog"

// A Description tells people, and Compose, what a policy is and how it is set.
type Description struct {
	Kind   string        // "breaker"
	Name   string        // "payments"
	Params []slog.Attr   // effective settings, defaults included
	Layers []Description // of a pipeline, outermost first
}

// Param is the value of the setting named key, or the zero [slog.Value].
func (d Description) Param(key string) slog.Value {
	for _, p := range d.Params {
		if p.Key == key {
			return p.Value
		}
	}
	return slog.Value{}
}

// A Describer can describe itself. Every policy of Holdfast does.
type Describer interface {
	Describe() Description
}
