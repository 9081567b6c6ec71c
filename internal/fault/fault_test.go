package fault_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/fault"
)

func TestList(t *testing.T) {
	tests := []struct {
		name string
		fill func(l *fault.List)
		want string
	}{
		{"empty", func(*fault.List) {}, ""},
		{"all well", func(l *fault.List) {
			l.Check(true, "must be at least 0", "MaxQueue(%d)", 3)
			l.Nil(nil)
		}, ""},
		{"one", func(l *fault.List) {
			l.Check(false, "must be at least 0", "MaxQueue(%d)", -1)
		}, `bulkhead "payments": MaxQueue(-1): must be at least 0`},
		{"all of them, in the order of the checks", func(l *fault.List) {
			l.Nil([]string{"Clock(nil)", "Option(nil)"})
			l.Check(true, "must be positive", "New(%d)", 1)
			l.Check(false, "must be at least 0", "MaxQueue(%d)", -1)
			l.Check(false, "must not be empty", "Name(%q)", "")
		}, `bulkhead "payments": Clock(nil): must not be nil; Option(nil): must not be nil; ` +
			`MaxQueue(-1): must be at least 0; Name(""): must not be empty`},
		{"a value with a verb in it", func(l *fault.List) {
			l.Check(false, "must be 100%", "Name(%q)", "50%d")
		}, `bulkhead "payments": Name("50%d"): must be 100%`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := fault.For("bulkhead", "payments")
			tt.fill(l)
			got := ""
			if err := l.Err(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
