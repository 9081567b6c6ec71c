package policy

import (
	"log/slog"
	"strconv"
)

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

// LogValue has package slog show the settings by name, and the layers in order.
func (d Description) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("kind", d.Kind)}
	if d.Name != "" {
		attrs = append(attrs, slog.String("name", d.Name))
	}
	attrs = append(attrs, d.Params...)
	if len(d.Layers) > 0 {
		layers := make([]slog.Attr, len(d.Layers))
		for i, layer := range d.Layers {
			layers[i] = slog.Any(strconv.Itoa(i+1), layer)
		}
		attrs = append(attrs, slog.Attr{Key: "layers", Value: slog.GroupValue(layers...)})
	}
	return slog.GroupValue(attrs...)
}

// A Describer can describe itself. Every policy of Holdfast does.
type Describer interface {
	Describe() Description
}
