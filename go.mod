module github.com/holdfast-go/holdfast

go 1.26

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.22.0
)
