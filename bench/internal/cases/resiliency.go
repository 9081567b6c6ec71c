package cases

import "github.com/eapache/go-resiliency/breaker"

// newResiliencyBreaker counts errors until there was none for a period, whatever
// succeeds in between: no condition of ours means the same, so it takes part in the
// refusal only.
func newResiliencyBreaker() Loop {
	b := breaker.New(failuresInARow, 1, openFor)
	return func(n int, w Work) (v *Result, err error) {
		for range n {
			v, err = broken(b, w)
		}
		return v, err
	}
}

func broken(b *breaker.Breaker, w Work) (value *Result, err error) {
	err = b.Run(func() (err error) {
		value, err = w.Plain()
		return err
	})
	return value, err
}
