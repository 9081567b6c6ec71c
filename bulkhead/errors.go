package bulkhead

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/policy"
)

// ErrFull is what every [FullError] Is.
var ErrFull = errors.New("bulkhead: full")

// A FullError refuses a call because every slot is taken, and no place in the queue
// was free or no slot came free within MaxWait. It Is [ErrFull] and
// [policy.ErrRejected]. When a slot comes free is not known, so it says nothing of
// a wait.
type FullError struct {
	Name     string // the bulkhead's
	Limit    int    // slots there are
	InFlight int    // slots taken when the call was refused
	Queued   int    // calls then waiting, not counting the refused one
}

// Error names the bulkhead and its numbers.
func (e *FullError) Error() string {
	return fmt.Sprintf("bulkhead %q: full: %d of %d slots taken, %d queued", e.Name, e.InFlight, e.Limit, e.Queued)
}

// Is reports a match with [ErrFull] and [policy.ErrRejected].
func (e *FullError) Is(target error) bool {
	return target == ErrFull || target == policy.ErrRejected
}
