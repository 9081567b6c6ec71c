// Package holdfast chains resilience policies into a pipeline that application code
// builds once per dependency and calls for every request.
//
//	pipeline := holdfast.Layers{
//		Timeout:  timeout.New(time.Second),     // bounds each attempt
//		Bulkhead: bulkhead.New(20),             // bounds concurrent attempts
//		Breaker:  breaker.New("payments"),      // one per dependency, shared by its pipelines
//		Retry:    retry.New(retry.Attempts(3)), // repeats what may pass
//	}.Compose()
//
//	payment, err := holdfast.Do(ctx, pipeline, func(ctx context.Context) (*Payment, error) {
//		return client.Charge(ctx, order)
//	})
//
// From the call outward the order is timeout → bulkhead → rate limit → breaker →
// retry → total timeout → fallback. [Compose] takes the policies in that order and
// refuses one that cannot work; [Pipeline.Advice] tells what is legal but unwise.
//
// Each policy is a package of its own: timeout, bulkhead, ratelimit, breaker, retry
// and fallback. Package holdfasthttp puts a pipeline under an http.Client or around an
// http.Handler. Package policy is the contract between policies, for those of your own;
// package policytest helps to prove a composition in tests.
package holdfast
