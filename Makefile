# Every target works on each module by its own go.mod, as its users get it, and not
# by the workspace; make check sees to it that the workspace builds too.
export GOWORK := off
# Git may refuse to tell about a clone that belongs to somebody else.
export GOFLAGS ?= -buildvcs=false

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

# Of each fuzz target: some seconds, but counted in runs, because Go before 1.27 may take
# the end of a duration for a failure (go.dev/issue/75804). Minimizing inputs, which has
# no end of its own, is left out.
FUZZTIME ?= 10000x
# What the demonstration divides every duration by.
SPEED ?= 4
# Or quick.
BENCH ?= full

# tools has a go.mod, but no code of its own.
ALL     := . $(patsubst %/go.mod,%,$(sort $(shell find . -mindepth 2 -name go.mod -not -path '*/.*/*')))
MODULES := $(filter-out ./tools,$(ALL))
TOOL    := go tool -modfile='$(CURDIR)/tools/go.mod'

# make check vets, so the tests need not.
GOTEST := go test -vet=off

# The race detector needs a C compiler; without one, the tests still run.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# $(call each,MODULES,COMMAND) runs COMMAND in each of MODULES, and ends with the first
# that fails.
each = @for m in $(1); do echo "$$m: $(2)"; (cd "$$m" && $(2)); done

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: format vet fix lint tidy house workspace ## Everything but the tests: all of the following

.PHONY: format
format: ## Is all code formatted? (gofumpt)
	@echo "gofumpt -l ."
	@files=$$($(TOOL) gofumpt -l .); if [ -n "$$files" ]; then echo "not formatted; run make fmt:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## go vet
	$(call each,$(MODULES),go vet ./...)

.PHONY: fix
fix: ## Is all code modern? (go fix)
	$(call each,$(MODULES),go fix -diff ./...)

.PHONY: lint
lint: ## staticcheck, all checks
	$(call each,$(MODULES),$(TOOL) staticcheck -checks all ./...)

.PHONY: tidy
tidy: ## Is every go.mod tidy?
	$(call each,$(ALL),go mod tidy -diff)

.PHONY: house
house: ## Import rules, undocumented names, the pages' code and links
	go test -count=1 -run '^TestHouse' .

.PHONY: workspace
workspace: ## Do all modules build in the workspace too, with go.work.sum as it is?
	@echo "go build, in the workspace"; sum=$$(cat go.work.sum); \
	GOWORK='$(CURDIR)/go.work' go build -o /dev/null $(MODULES:%=%/...); \
	if [ "$$sum" != "$$(cat go.work.sum)" ]; then echo "go.work.sum has grown: check it in"; exit 1; fi

.PHONY: fmt
fmt: ## Format all code
	$(TOOL) gofumpt -l -w .

.PHONY: test
test: unit fuzz ## The tests of every module, then each fuzz target for FUZZTIME

.PHONY: unit
unit: ## The tests of every module, under the race detector
	$(if $(RACE),,@echo "no C compiler: the tests run without the race detector")
	$(call each,$(MODULES),$(GOTEST) $(RACE) -shuffle=on ./...)

.PHONY: fuzz
fuzz: ## Each fuzz target for FUZZTIME
	@for m in $(MODULES); do (cd "$$m"; \
		$(GOTEST) -list '^Fuzz' ./... | \
		awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { while (n > 0) print $$2, names[--n] }' | \
		while read -r package name; do \
			echo "$$package: $$name"; \
			$(GOTEST) -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 0x "$$package" </dev/null; \
		done); done

.PHONY: demo
demo: ## The lab: what each policy does during an outage, in less than a minute
	cd cmd/holdfast && go run . lab run --speed $(SPEED)

.PHONY: bench
bench: ## Side by side with other libraries (BENCH=quick: less than a minute)
	cd bench && go run . $(if $(filter quick,$(BENCH)),-quick)

.PHONY: bench-once
bench-once: ## Does every benchmark still run?
	$(call each,$(MODULES),$(GOTEST) -run '^$$' -bench . -benchtime 1x ./...)
