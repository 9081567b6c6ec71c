package report

import (
	"encoding/json"
	"io"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/scenario"
)

// JSON prints one object per scenario, each on a line of its own.
type JSON struct{ Out io.Writer }

// Result prints the line of one scenario.
func (j JSON) Result(r scenario.Result) error {
	e := json.NewEncoder(j.Out)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
