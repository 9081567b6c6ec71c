package cases

import "testing"

// BenchmarkCases is the report's table as ordinary benchmarks:
//
//	go test ./internal/cases -bench 'Cases/bulkhead/' -cpu 1,2
func BenchmarkCases(b *testing.B) {
	for _, c := range All() {
		for _, implementation := range c.Implementations {
			b.Run(c.Key+"/"+implementation.Name, func(b *testing.B) { bench(b, c, implementation) })
		}
	}
}

func bench(b *testing.B, c Case, implementation Implementation) {
	setup := NewSetup()
	defer setup.Close()
	ctx, cancel := c.Context()
	defer cancel()
	work, loop := c.NewWork(ctx), implementation.New(setup)
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		loop(b.N, work)
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				loop(1, work)
			}
		})
	})
}
