# A fresh machine needs Python 3.11 or newer and make; everything else goes into .venv.

PYTHON ?= python3
BIN    := .venv/bin
# Of two cores: two workers a core, and one where tests wait for real terminals, kills and agents.
WORKERS := 4
REAL_TESTS := tests/agents tests/core/server/test_review_*.py tests/process tests/screen
# Its bytecode is kept: without, each worker compiles every module and rewrites every assert anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
REAL = $(BIN)/python -m pytest -n 2 --dist worksteal -m real

.PHONY: help demo setup node test test-all fuzz check format shape stress chaos bench pictures connector confusables clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo:  ## set up .venv, then show the console at work: six scenes on a temporary home
	@$(PYTHON) .ci/setup.py
	@$(BIN)/aileron demo

setup:  ## make .venv with everything that tests and checks need
	@$(PYTHON) .ci/setup.py test lint connector

node: setup  ## fetch the official TypeScript MCP client and conformance suite (npm) for the tests
	@$(BIN)/python .ci/node.py

test: node  ## run the whole suite (about 10 minutes on 2 cores)
	@[ -e tests/screen/__pycache__ ] || for part in tests/core "tests/agents tests/fast tests/process tests/screen"; do \
		$(BIN)/python -m pytest -q --collect-only $$part > /dev/null & done; wait # compiled once, not in each worker
	$(PYTEST) -m "not real"
	$(REAL) $(REAL_TESTS)

# Needs Rust with its target wasm32-wasip1; in Debian's packages: rustc cargo libstd-rust-dev-wasm32 lld librust-serde-json-dev.
test-all: export AILERON_TEST_ALL := 1
test-all: export HYPOTHESIS_PROFILE := deep
test-all: node  ## the whole suite with many more examples and kills (about an hour)
	@$(PYTHON) .ci/setup.py test lint connector go clients
	$(PYTEST) --timeout 1800 -m "not real"
	$(REAL) --timeout 1800 $(REAL_TESTS)

fuzz: setup  ## 2,000 examples each: files, guests, templates, previews, text, HTTP, MCP; 100,000 archives (under 10 minutes)
	HYPOTHESIS_PROFILE=deep $(PYTEST) -q --timeout 1800 tests/fast/property tests/core/property tests/fast/connectors/test_compiled_modules.py \
		tests/fast/connectors/test_target.py tests/fast/mcp/test_relay_parsing.py tests/fast/server/test_requests.py

# Fast tests wait for nothing, and each worker reads them all.
check: WORKERS := 3
check: setup  ## format, lint, types, import contracts, sizes, fast tests (under a minute)
	@bash -n .ci/run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --cache-dir .import_linter_cache > .import_linter_cache.txt || { cat .import_linter_cache.txt; exit 1; }
	@rm -f .import_linter_cache.txt
	$(BIN)/pyright
	$(BIN)/python .ci/shape.py --check
	$(PYTEST) -q tests/fast

format: setup  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

shape: setup  ## print how large each package is, what is behind the gate, and who knows what
	$(BIN)/python .ci/shape.py

# WHAT='-m "not real" tests/core': other tests, whose own threads stand still, too.
stress: WHAT := -m real $(REAL_TESTS)
stress: node  ## run the tests of real terminals, kills and agents beside a freezer, on a slow disk (Linux, a C compiler; half an hour)
	$(BIN)/python .ci/stress.py -n $(WORKERS) --dist worksteal --timeout 900 $(WHAT)

# KILLS=1000, or ARGS="--hours 8 --seed 7": what .ci/chaos.py knows.
chaos: KILLS := 100
chaos: setup  ## kill console, relays and connectors at random under 50 agents, on a bad disk; count what was lost (Linux, a C compiler; a quarter of an hour)
	PYTHONPATH=. $(BIN)/python .ci/chaos.py --kills $(KILLS) $(ARGS)

bench: setup  ## print the measurements of bench/ (minutes; never part of a test)
	$(BIN)/python -m bench

pictures: setup  ## draw the pictures of README and docs from the snapshot tests
	$(BIN)/python -m pytest -q tests/screen/test_pictures.py --snapshot-update
	$(BIN)/python docs/generate.py

connector:  ## rebuild the example connector (needs nothing but .venv)
	@$(PYTHON) .ci/setup.py connector
	$(BIN)/python examples/connectors/build.py

confusables:  ## make the table of look-alike letters from Unicode's own
	@$(PYTHON) .ci/setup.py confusables
	$(BIN)/python .ci/confusables.py

clean:  ## remove what was built
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis tests/node/node_modules tests/node/runtime/node_modules tests/node/servers/node_modules
