package report

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine is where the numbers come from.
type Machine struct {
	Processor  string
	Processors int
	System     string
	Go         string
}

// ThisMachine looks around.
func ThisMachine() Machine {
	return Machine{
		Processor:  processor(),
		Processors: runtime.NumCPU(),
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
	}
}

func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// A Module is a peer with the version that was measured.
type Module struct{ Name, Path, Version string }

// measured are the peers, by module.
var measured = []Module{
	{Name: "failsafe-go", Path: "github.com/failsafe-go/failsafe-go"},
	{Name: "gobreaker", Path: "github.com/sony/gobreaker/v2"},
	{Name: "fortify", Path: "github.com/felixgeelhaar/fortify"},
	{Name: "go-resiliency", Path: "github.com/eapache/go-resiliency"},
	{Name: "backoff v4", Path: "github.com/cenkalti/backoff/v4"},
	{Name: "backoff v5", Path: "github.com/cenkalti/backoff/v5"},
	{Name: "avast/retry-go", Path: "github.com/avast/retry-go/v5"},
	{Name: "go-retry", Path: "github.com/sethvargo/go-retry"},
	{Name: "x/time/rate", Path: "golang.org/x/time"},
	{Name: "uber ratelimit", Path: "go.uber.org/ratelimit"},
	{Name: "x/sync semaphore", Path: "golang.org/x/sync"},
}

// Peers are the peers in the versions that this program was built with.
func Peers() []Module {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	peers := make([]Module, len(measured))
	for i, m := range measured {
		if m.Version = versions[m.Path]; m.Version == "" {
			m.Version = "unknown"
		}
		peers[i] = m
	}
	return peers
}

// absent are peers and uses that have no place, each with the reason.
var absent = [][2]string{
	{"cep21/circuit/v4, alibaba/sentinel-golang, slok/goresilience, mercari/go-circuitbreaker", "the module proxy served no version of them"},
	{"go.klarlabs.de/fortify", "not served under its new name; measured is github.com/felixgeelhaar/fortify, its last version before the move"},
	{"go-resiliency, closed breaker", "it counts errors until there was none for a period, whatever succeeds in between: no condition of ours means the same"},
	{"gobreaker, count window", "it has none"},
	{"fortify, count and time window", "it has none that slides: its interval clears all counts at once"},
	{"fortify, retry without delay", "a delay of 0 is taken as its default"},
	{"any peer, slow calls", "those that could be had do not know them"},
	{"any peer, observed", "none tells of every attempt and call"},
}
