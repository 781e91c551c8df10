# Slackwater's commands; `make` alone lists them. Each sets up what it needs in .venv, once.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.set-up

CASES ?= tests/conformance/cases
ENGINE ?= memory
ONLY ?=
N ?= 50
BATCHES ?= 2000
ARGS ?=
UPGRADE ?=

# Spark starts many Python processes. Without bytecode on disk, each of them would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

# The fast way to trace lines, where Python has it.
TRACER = $(shell $(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')

CHECKED := $(wildcard src tests benchmarks examples)

.DEFAULT_GOAL := help
.PHONY: help demo test long check conformance bench coverage crash soak docs pictures dist lock clean java

help: ## List the targets and their variables
	@echo "Slackwater: event-time stream processing on Spark."
	@echo
	@echo "Targets (each sets up .venv when needed; needs Python 3.11 or newer and Java 17 or newer):"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Variables:"
	@awk -F '## var ' '/^## var / { at = index($$2, ": "); printf "  %-17s %s\n", substr($$2, 1, at - 1), substr($$2, at + 2) }' $(firstword $(MAKEFILE_LIST))
## var CASES=folder: conformance: where the case files are (default tests/conformance/cases)
## var ENGINE=memory: conformance: the engine that replays them, memory or spark
## var ONLY=a,b: bench: only these cases
## var N=50: crash: how many kills
## var BATCHES=2000: soak: how many batches
## var SINK=postgres: demo: where results go as well as to files, crash: where they go: kafka, postgres, delta, redis or http
## var ARGS="-k late": test, long, coverage: more arguments for pytest
## var UPGRADE=1: lock: take newer versions instead of keeping what is locked
## var PYTHON=path: the Python that .venv is made with (default: the first of python3.11, python3.12, python3.13, python3)

demo: $(READY) java ## Run a live stream with late, broken and future events for a minute, and account for each one
	$(BIN)/slackwater demo $(if $(filter-out files,$(SINK)),--sink "$(SINK)")

test: check java ## Run `check`, then every test that is short: unit, in memory, Spark, crash, cluster, docs
	$(BIN)/pytest -n 3 --dist loadscope --no-loadscope-reorder --durations=25 -m "not long" $(ARGS)

long: $(READY) java ## Run what `make test` leaves out for its time, and more generated examples (docs/inside/testing.md)
	$(BIN)/pytest -n 2 --dist loadscope --durations=15 -m long $(ARGS)
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -n 2 --dist loadscope --durations=15 -m "hypothesis and not long and not spark" $(ARGS)

check: $(READY) ## Lint, formatting, spelling, strict types, and that imports point one way
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/mypy $(CHECKED)
	$(BIN)/pytest -q tests/architecture/test_imports_point_one_way.py

coverage: $(READY) ## Print the share of lines that the tests in memory run; the lines are in build/coverage
	COVERAGE_FILE=build/.coverage COVERAGE_CORE=$(TRACER) $(BIN)/pytest -n 3 --dist loadscope -q \
		-m "not long and not spark and not kafka and not crash and not cluster" \
		--cov --cov-report=html:build/coverage --cov-report= $(ARGS)
	@echo "coverage: $$(COVERAGE_FILE=build/.coverage $(BIN)/coverage report --format=total) % of the lines of src/slackwater"

conformance: $(READY) $(if $(filter spark,$(ENGINE)),java) ## Replay the conformance cases of a folder
	@$(BIN)/python -m slackwater.testing.conformance "$(CASES)" --engine "$(ENGINE)"

bench: $(READY) java ## Compare with Spark's own windows on the same data; writes build/bench.json
	$(BIN)/python -m benchmarks.run $(if $(ONLY),--only "$(ONLY)")

crash: $(READY) java ## Kill a running job N times, start it again, and compare its output with an undisturbed run
	$(BIN)/python -m tests.crash.run --kills "$(N)" $(if $(SINK),--sink "$(SINK)")

soak: $(READY) java ## Run thousands of tiny batches and show that descriptors, threads, memory and files stay flat
	$(BIN)/python -m tests.soak.run --batches "$(BATCHES)"

docs: $(READY) ## Build the documentation as a site that needs no network: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html."

pictures: $(READY) java ## Take the screenshots of the demo's page and of the simulator for the docs, in Chromium
	$(BIN)/python -m tests.observe.page.pictures

dist: $(READY) ## Build the wheel and the source distribution of the version into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

lock: $(READY) ## Resolve pyproject.toml into requirements.lock (hashes, no addresses)
	$(BIN)/pip-compile pyproject.toml --extra dev --output-file requirements.lock --quiet $(if $(UPGRADE),--upgrade) \
		--generate-hashes --allow-unsafe --strip-extras --no-annotate --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
	@! grep -n '://' requirements.lock || { echo "requirements.lock must hold no addresses; see the lines above" >&2; exit 1; }

clean: ## Remove .venv and everything the other targets made
	rm -rf $(VENV) build dist demo-run spark-warehouse metastore_db derby.log src/*.egg-info \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): requirements.lock pyproject.toml
	@scripts/set-up

java:
	@scripts/preflight java
