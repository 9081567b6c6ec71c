package cases

import (
	"context"

	fortifyfallback "github.com/felixgeelhaar/fortify/fallback"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
)

func fallbackUnused() Case {
	return Case{
		Key:             "fallback-unused",
		Title:           "Fallback, not needed",
		About:           "The call succeeds.",
		Implementations: fallbacks(),
	}
}

func fallbackUsed() Case {
	return Case{
		Key:             "fallback-used",
		Title:           "Fallback, used",
		About:           "The call fails, and the fallback answers with a value that is at hand.",
		Work:            Fail,
		Implementations: fallbacks(),
	}
}

func fallbacks() []Implementation {
	return []Implementation{
		ours("holdfast", "", func(*Setup) Loop { return do(holdfast.Compose(fallback.Value(substitute))) }),
		bareCall(),
		peer("fortify", "", func(*Setup) Loop {
			return fortifyLoop(fortifyfallback.New(fortifyfallback.Config[*Result]{
				Fallback: func(context.Context, error) (*Result, error) { return substitute, nil },
			}))
		}),
		peer("failsafe-go, Get", "", func(*Setup) Loop { return failsafeGet(newFailsafeFallback()) }),
	}
}
