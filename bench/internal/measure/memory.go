package measure

import "runtime"

// allocations are counted over this many operations.
const allocationRuns = 2_000

// Allocated is what one operation allocates.
func Allocated(loop func(n int)) (bytes, allocs float64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	loop(allocationRuns / 10) // what is made once does not count
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loop(allocationRuns)
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / allocationRuns,
		float64(after.Mallocs-before.Mallocs) / allocationRuns
}

// Retained is how many bytes of the heap each of n values keeps, once it has been made
// and use, which may be nil, has been called with it.
func Retained[T any](n int, build func() T, use func(T)) float64 {
	values := make([]T, n)
	before := live()
	for i := range values {
		values[i] = build()
		if use != nil {
			use(values[i])
		}
	}
	after := live()
	runtime.KeepAlive(values)
	return float64(after-before) / float64(n)
}

// live is the size of the heap after a collection. The second one frees what the first
// one's finalizers and pools let go.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
