package policytest

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// bubble runs f in a synctest bubble and makes a failure, with the stacks, of the
// panic that synctest has for goroutines left behind: other checks can then go on.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	self := ""
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("goroutines hang, or are left behind: %v\n%s", r, digest(stacks(self)))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		self = bubbleName()
		f(t)
	})
}

// bubbleName is how stack traces name the bubble of this goroutine:
// "goroutine 7 [running, synctest bubble 3]:".
func bubbleName() string {
	_, name, _ := strings.Cut(header(trace(false)), "synctest bubble")
	return "synctest bubble" + name
}

// stacks are those of the goroutines in the bubble of that name, this one first, and
// without synctest's own.
func stacks(bubble string) []string {
	return slices.DeleteFunc(strings.Split(trace(true), "\n\n"), func(stack string) bool {
		return !strings.Contains(header(stack), bubble) ||
			strings.Contains(stack, "\ninternal/synctest.Run(") ||
			strings.Contains(stack, "\ncreated by testing/synctest.Test ")
	})
}

// header is the line of a stack that says what its goroutine waits for.
func header(stack string) string {
	line, _, _ := strings.Cut(stack, "\n")
	return line
}

func trace(all bool) string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, all)])
}

// How much of the stacks a failure shows.
const (
	shownStacks = 5
	shownFrames = 8
)

// A group is goroutines of the same stack.
type group struct {
	stack string
	ours  bool // nothing of the policy is in it
	n     int
}

// digest shows each distinct stack once, the policies' first, with the number of
// goroutines that have it: a hundred calls mostly wait at the same place.
func digest(stacks []string) string {
	var groups []*group
	for _, stack := range stacks {
		shown, ours := condense(stack)
		at := slices.IndexFunc(groups, func(g *group) bool { return g.stack == shown })
		if at < 0 {
			at, groups = len(groups), append(groups, &group{stack: shown, ours: ours})
		}
		groups[at].n++
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		if a.ours == b.ours {
			return cmp.Compare(b.n, a.n)
		}
		if a.ours {
			return 1
		}
		return -1
	})
	var b strings.Builder
	for i, g := range groups {
		if i == shownStacks {
			fmt.Fprintf(&b, "and %d other stacks\n", len(groups)-i)
			break
		}
		fmt.Fprintf(&b, "%d × %s\n", g.n, g.stack)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var (
	state     = regexp.MustCompile(`\[([^],(]*[^],( ])`)
	arguments = regexp.MustCompile(`\([^()]*\)$`)
	offset    = regexp.MustCompile(` \+0x[0-9a-f]+$`)
	creator   = regexp.MustCompile(` in goroutine \d+$`)
	// What a goroutine is in when it waits, on behalf of somebody else.
	elsewhere = regexp.MustCompile(`^(runtime|internal/[a-z/]+|sync|time|context|testing(/synctest)?|` + module + `/policy(test)?)\.`)
	suite     = regexp.MustCompile(`^` + module + `/policytest\.`)
)

const module = `github\.com/holdfast-go/holdfast`

// condense shows what a goroutine waits for, and where: the frames between the wait as
// such and the suite. Numbers that differ from one goroutine to the next are left out.
// Of a goroutine with no code but ours, it shows where in the suite that is.
func condense(stack string) (shown string, ours bool) {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	var frames []frame
	for i := 1; i+1 < len(lines); i += 2 {
		frames = append(frames, frame{
			function: creator.ReplaceAllString(arguments.ReplaceAllString(lines[i], ""), ""),
			position: offset.ReplaceAllString(strings.TrimSpace(lines[i+1]), ""),
		})
	}
	first := slices.IndexFunc(frames, func(f frame) bool { return !f.is(elsewhere) })
	if ours = first < 0; ours {
		first = max(0, slices.IndexFunc(frames, func(f frame) bool { return f.is(suite) }))
		frames = frames[first:min(first+1, len(frames))]
	} else {
		frames = frames[first:]
		if last := slices.IndexFunc(frames, func(f frame) bool { return f.is(suite) }); last > 0 {
			frames = frames[:last]
		}
	}
	var b strings.Builder
	b.WriteString(strings.Join(state.FindStringSubmatch(lines[0])[1:], ""))
	for _, f := range frames[:min(len(frames), shownFrames)] {
		fmt.Fprintf(&b, "\n\t%s\n\t\t%s", f.function, f.position)
	}
	return b.String(), ours
}

type frame struct{ function, position string }

// is tells whether the function, or the creator of the goroutine, is one of those.
func (f frame) is(those *regexp.Regexp) bool {
	return those.MatchString(strings.TrimPrefix(f.function, "created by "))
}
