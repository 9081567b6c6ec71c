package cases

import (
	"context"
	"errors"
)

// Result is what the measured work returns: a pointer, so that nobody has to box it.
type Result struct{ ID int }

// Value is a result that does not fit into a pointer.
type Value struct{ ID, Count, Size int }

// Work is the protected call, in the shapes in which libraries take it.
type Work struct {
	Context context.Context // the caller's

	Do    func(ctx context.Context) (*Result, error)
	Plain func() (*Result, error)                  // for libraries that hand on no ctx
	Value func(ctx context.Context) (Value, error) // for the case of a struct result
}

// NewWork gives do its shapes.
func NewWork(do func(ctx context.Context) (*Result, error)) Work {
	return Work{
		Context: context.Background(),
		Do:      do,
		Plain:   func() (*Result, error) { return do(context.Background()) },
		Value: func(ctx context.Context) (Value, error) {
			r, err := do(ctx)
			if r == nil {
				return Value{}, err
			}
			return Value{ID: r.ID}, err
		},
	}
}

var (
	done       = &Result{ID: 1}
	substitute = &Result{ID: 2}

	// ErrWork is the error of failing work.
	ErrWork = errors.New("work failed")
)

// Succeed is the work of most cases: it returns a pointer.
func Succeed() Work {
	return Work{
		Context: context.Background(),
		Do:      func(context.Context) (*Result, error) { return done, nil },
		Plain:   func() (*Result, error) { return done, nil },
		Value:   func(context.Context) (Value, error) { return Value{ID: done.ID}, nil },
	}
}

// Fail is work that fails.
func Fail() Work {
	return Work{
		Context: context.Background(),
		Do:      func(context.Context) (*Result, error) { return nil, ErrWork },
		Plain:   func() (*Result, error) { return nil, ErrWork },
		Value:   func(context.Context) (Value, error) { return Value{}, ErrWork },
	}
}

// SelectOnDone is work that waits for its answer or for the end of its ctx. The
// answer is there at once.
func SelectOnDone() Work {
	answer := make(chan struct{})
	close(answer)
	return NewWork(func(ctx context.Context) (*Result, error) {
		select {
		case <-answer:
			return done, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// errRefused is the answer of implementations by hand that refuse with a bool.
var errRefused = errors.New("refused")
