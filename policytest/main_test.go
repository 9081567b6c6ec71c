package policytest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("POLICYTEST_BROKEN") != "" {
		os.Exit(m.Run()) // broken policies leave goroutines behind: that is what they are for
	}
	goleak.VerifyTestMain(m)
}
