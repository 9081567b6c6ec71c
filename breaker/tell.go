package breaker

import (
	"context"

	"github.com/holdfast-go/holdfast/policy"
)

// tellAdmitted is tell on behalf of a call that was admitted. If a callback panics, the
// call will not run, and gives its place back.
func (b *Breaker) tellAdmitted(ctx context.Context, t ticket) {
	told := false
	defer func() {
		if !told {
			b.record(ctx, t, policy.Ignored, false)
		}
	}()
	b.tell(ctx)
	told = true
}

// tell tells every transition that was not told yet, in order. One goroutine tells at a
// time; what others add meanwhile, and what its own callbacks do, it tells too. If a
// callback panics, the rest is still told before the panic goes on.
func (b *Breaker) tell(ctx context.Context) {
	b.mu.Lock()
	if b.telling || len(b.machine.moves) == 0 {
		b.mu.Unlock()
		return
	}
	b.telling = true
	b.mu.Unlock()
	b.tellAll(ctx)
}

func (b *Breaker) tellAll(ctx context.Context) {
	told := false
	defer func() {
		if !told {
			b.tellAll(ctx)
		}
	}()
	for {
		b.mu.Lock()
		if len(b.machine.moves) == 0 {
			b.telling, told = false, true
			b.mu.Unlock()
			return
		}
		m := b.machine.moves[0]
		b.machine.moves = b.machine.moves[1:]
		b.told++
		seq := b.told
		b.mu.Unlock()
		b.tellOne(ctx, m, seq)
	}
}

// tellOne asks for the next open period, and tells one transition to everybody, whoever
// of them panics.
func (b *Breaker) tellOne(ctx context.Context, m move, seq uint64) {
	clock := b.settings.clock
	at := clock.Now().Add(m.at - clock.Elapsed())
	defer func() {
		if b.events.Observed() {
			b.events.Emit(ctx, policy.Event{
				Kind:   policy.CircuitChanged,
				Time:   at,
				Policy: kind,
				Name:   b.settings.name,
				Reason: m.reason,
				Delay:  m.period,
				From:   m.from.String(),
				To:     m.to.String(),
			})
		}
	}()
	defer func() {
		if b.settings.onStateChange != nil {
			b.settings.onStateChange(Transition{b.settings.name, m.from, m.to, at, m.reason, seq})
		}
	}()
	b.askAhead()
}

// askAhead asks the user's function for the next open period, if it was not asked yet.
// Until it has answered, an opening lasts as long as the one before.
func (b *Breaker) askAhead() {
	if b.settings.opening.ask == nil {
		return
	}
	b.mu.Lock()
	opening := b.machine.openings + 1
	known := b.asked == opening
	b.mu.Unlock()
	if known {
		return
	}
	period := max(b.settings.opening.ask(opening), 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.machine.openings+1 == opening {
		b.machine.nextPeriod, b.asked = period, opening
		if opening == 1 {
			b.machine.firstPeriod = period
		}
	}
}
