# `make demo` and `make test` each set up all they need; `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
WORKERS ?= 2
PARALLEL := -n $(WORKERS) --dist worksteal

SEEDS_SHORT ?= 30
FUZZ_SECONDS ?= 60
SCENARIO ?=
SEED ?=
export PYTHON
# Where nft and iptables are: a user's PATH may lack it, and the tests in namespaces would be skipped.
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: help setup demo test check lint docs unit sim sim-long replay fuzz bench rewrite coverage clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup:  ## make .venv fit this clone (PYTHON=... chooses the interpreter)
	@.ci/venv dev
	@.ci/java

demo: setup  ## three zones of real peers on loopback; a delegate and a gateway are killed
	@.venv/bin/overlay demo

lint: setup
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy

docs: setup  ## build the documentation into site/; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet --clean
	@echo "docs: open site/index.html"

test: lint  ## everything that CI runs: lint, types, tests, SEEDS_SHORT=30 seeds per scenario
	@$(PY) -m nodes.scenarios.campaign --seeds $(SEEDS_SHORT)
	@$(PYTEST) $(PARALLEL) -m "not slow"

check: lint  ## the quick part of test: lint, types, unit tests
	@$(PYTEST) $(PARALLEL) -m "not slow" tests/unit

sim: SEEDS ?= 200
sim: setup  ## every scenario under SEEDS=200 seeds, in parallel processes
	@$(PY) -m nodes.scenarios.campaign --seeds $(SEEDS)

sim-long: SEEDS ?= 300
sim-long: setup  ## SEEDS=300 per scenario, each fifth in a large world; then all tests, slow ones too
	@$(PY) -m nodes.scenarios.campaign --seeds $(SEEDS) --long
	@HYPOTHESIS_PROFILE=long $(PYTEST) $(PARALLEL) --timeout 1800

replay: setup  ## run one seed again: make replay SEED=7 SCENARIO=echo-loss
	@$(if $(and $(SEED),$(SCENARIO)),,echo "usage: make replay SEED=7 SCENARIO=echo-loss" >&2; exit 2)
	@.venv/bin/overlay sim $(SCENARIO) --seed $(SEED)

fuzz: setup  ## atheris against the decoder and the driver, FUZZ_SECONDS=60 per target
	@.ci/venv fuzz
	@shopt -s nullglob; for target in tests/fuzz/fuzz_*.py; do \
		echo "fuzz: $$target for $(FUZZ_SECONDS) s"; \
		$(PY) "$$target" -max_total_time=$(FUZZ_SECONDS); \
	done

bench: setup  ## every benchmark, as tables (python -m bench NAME --json for one)
	@$(PY) -m bench all

rewrite: setup  ## rewrite the golden traces; read `git diff` before you commit them
	@$(PYTEST) -m golden --rewrite || { code=$$?; [ $$code = 5 ] || exit $$code; }  # 5: none yet

coverage: setup  ## the tests of `make test` with branch coverage
	@$(PYTEST) $(PARALLEL) -m "not slow" --cov --cov-report=term

clean:  ## remove .venv, caches and what runs left
	@rm -rf .venv .venv.lock build dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache \
		.pytest_cache .ruff_cache runs site *.egg-info
	@find overlay protocols nodes bench tests -name __pycache__ -type d -prune -exec rm -rf {} +
