# make run        sets up, then two loads on the simulator: LTYARN's, and one where queues never pause; reports at the end
# make test       sets up, then the tests that this machine can run, without the slow ones; says what it left out and why
# make test-all   the same with the slow ones, as CI runs them
# make test-checked  the tests of the engine, compiled with a check of every index (YARNFAIR_CHECKED=1)
# make test-long  the long series in full (PART=tests/cluster: some of it); goes on where it stopped, until a file changes
# make bench-check  this machine's figures (ratios to a calibration loop) against the last record; ten minutes, outside the tests
# make records    every simulated record in docs/records made again (ONLY=NAME: one); exit 3 when a value differs
# make figures    the pages of figures and the gallery in docs/, made from studies/pages and docs/records
# make reference  the generated parts of docs/reference made from the code (commands, settings, keys)
# make kerberos   the extra `kerberos` into .venv (needs libkrb5-dev, python3-dev and gcc)
# make site       docs/ as a site with search, in build/site (open index.html); its generator comes into build/site-venv
# make lint       ruff, mypy, import rules; whether the changes that tests plant still have their place
# make clean      removes the environment and caches (not ./runs)
SHELL := /bin/bash
PYTHON ?= python3
# The pinned versions; requirements-lowest.txt has the lowest that pyproject.toml admits.
REQUIREMENTS ?= requirements.txt
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.requirements-installed
RUN_STAMP := $(VENV)/.needed-installed
PART ?= tests
# One more than two cores: tests on real clusters mostly wait.
JOBS ?= 3
# The tests start Python some hundred times: without its compiled files each start takes seconds more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup kerberos run engine test test-all test-bare test-parts test-checked test-long bench-check records figures reference site lint format lock clean

help:
	@sed -n 's/^# //p' Makefile | head -13

setup: $(STAMP)

# What the product needs, without the tools of its development. pip compiles its files on one core: here all do it.
$(RUN_STAMP): $(REQUIREMENTS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: Python 3.11 or newer is needed ($(PYTHON) is $$($(PYTHON) --version 2>&1)); set PYTHON=..." >&2; exit 1; }
	@echo "Making $(VENV) from $(REQUIREMENTS) (pinned, hashed; half a minute to some minutes the first time)"
	$(PYTHON) -m venv $(VENV)
	@$(PYTHON) .ci/needed $(REQUIREMENTS) > $(VENV)/needed.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r $(VENV)/needed.txt
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib/python3*/site-packages || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(RUN_STAMP)

$(STAMP): $(RUN_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(REQUIREMENTS)
	@touch $(STAMP)

kerberos: setup
	@$(BIN)/python -c 'import gssapi' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
	    -r requirements-kerberos.txt

run: $(RUN_STAMP)
	$(BIN)/yarnfair run experiments/ltyarn.yaml experiments/contended.yaml

lint: setup
	$(BIN)/ruff check harness studies tests yarnfair
	$(BIN)/ruff format --check harness studies tests yarnfair
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.planting

# What is left out: LEAVE=long runs the slow tests too.
LEAVE ?= long or slow
# The slowest tests are named at the end, and those that computed most, so that whoever makes one slow sees it.
PYTEST = $(BIN)/python -m pytest -p tests.computing -n $(JOBS) --dist loadgroup --no-loadscope-reorder \
  --durations=40 --durations-min=10

# The engine is compiled while mypy has the other core.
test: setup
	$(MAKE) --no-print-directory -j2 lint engine
	$(PYTEST) -m "not ($(LEAVE))" tests
	@[ "$(LEAVE)" = long ] || echo "make: the slow tests were left out; make test-all runs them too"

test-all:
	@$(MAKE) --no-print-directory LEAVE=long test

# Beside it, once, what the workers of the tests would each compile.
engine: setup
	@$(BIN)/python -m tests.prepared & \
	  { $(BIN)/python -c 'from harness.sim.compiled import compile_engine as c; c(); c("capacity")' && \
	    $(BIN)/python -m tests.prepared decisions; } && wait $$!

# The two halves of `make test`: what a machine with Python, make and git can run, and what needs more.
# BUT: files that are left out of the first.
BUT ?=
test-bare: engine
	$(PYTEST) -m "not ($(LEAVE) or parts)" $(addprefix --ignore=,$(BUT)) tests

test-parts: engine
	$(PYTEST) -m "not ($(LEAVE)) and parts" tests

# The engine's tests with a check of every index: small ones, since compiling is most of it.
CHECKED = tests/fuzz/test_engine.py tests/fuzz/test_kernels.py tests/oracle/test_recorded_decisions.py \
  tests/oracle/test_recorded_run.py tests/sim/test_room.py tests/sim/test_simulate.py tests/sim/test_scheduler.py \
  tests/systems/qknober/test_simulator.py tests/sim/capacity/test_world.py tests/policies/test_weights_kernel.py

test-checked: export YARNFAIR_CHECKED = 1
test-checked: engine
	$(PYTEST) -m "not long and not parts" $(CHECKED)

test-long: lint
	YARNFAIR_ORACLE_SCRIPTS=$${YARNFAIR_ORACLE_SCRIPTS:-1000} YARNFAIR_ORACLE_FILES=$${YARNFAIR_ORACLE_FILES:-20000} \
	  YARNFAIR_TRACE_FILES=$${YARNFAIR_TRACE_FILES:-20000} $(PYTEST) -p tests.taken_up $(PART)

bench-check: setup
	@mkdir -p build
	$(BIN)/yarnfair baseline docs/records/bench.json -o build/bench-baseline.json
	$(BIN)/yarnfair bench --json > build/bench.json
	$(BIN)/yarnfair check build/bench.json --baseline build/bench-baseline.json

records: setup
	$(BIN)/python -m studies.remake $(addprefix --only ,$(ONLY))

figures: setup
	$(BIN)/python -m studies.figures

reference: setup
	$(BIN)/python -m studies.reference

# The generator has an environment of its own: nothing of it is needed by the product.
site: build/site-venv/.installed
	build/site-venv/bin/sphinx-build -q -W -c docs/site -d build/site-doctrees docs build/site
	@echo "the site: build/site/index.html"

build/site-venv/.installed: docs/site/requirements.txt
	$(PYTHON) -m venv build/site-venv
	build/site-venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/site/requirements.txt
	@touch $@

format: setup
	$(BIN)/ruff check --fix harness studies tests yarnfair
	$(BIN)/ruff format harness studies tests yarnfair

# Pins every dependency with hashes and without any registry's address.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml --output-file requirements.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  docs/site/requirements.in --output-file docs/site/requirements.txt
	@rm -f requirements-lowest.txt  # versions in it would be kept
	uv pip compile --quiet --python-version 3.11 --resolution lowest-direct --generate-hashes --no-emit-index-url --no-header \
	  --extra dask --extra plot --extra workloads pyproject.toml .ci/lowest.in --output-file requirements-lowest.txt

clean:
	rm -rf $(VENV) build/site* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache
	find harness studies tests yarnfair -name __pycache__ -type d -prune -exec rm -rf {} +
