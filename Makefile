# Every target makes its own virtual environment first; a second run finds it ready.

PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready
BIN    := $(VENV)/bin

TESTS  := $(filter-out %__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
# those that start few processes of their own
QUIET  := $(addprefix tests/,agents conformance crashes golden interop kernel machines mutants performers runtime \
            scripting simulation stores)

# run what a mark selects, in two processes
define tests
mkdir -p build; \
$(BIN)/pytest -m "$(1)" $(QUIET) >build/quiet-tests.log 2>&1 & quiet=$$!; \
$(BIN)/pytest -m "$(1)" $(filter-out tests/house $(QUIET),$(TESTS)); busy=$$?; \
wait $$quiet; quiet=$$?; cat build/quiet-tests.log; exit $$((busy | quiet))
endef

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check bench soak conformance clean system

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## run the demonstration, offline
	$(BIN)/python examples/demo.py

test: $(READY) system ## run the quick tests, on two cores
	@$(call tests,not soak and not slow)

test-slow: $(READY) system ## run the slow tests, the quick ones on other Pythons, and what a wheel installs
	@$(call tests,slow and not soak)
	tools/other-pythons
	PYTHON=$(PYTHON) tools/try-wheel

check: $(READY) ## format, lint, types, and the rules of the house
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest tests/house

bench: $(READY) ## measure
	$(BIN)/python benchmarks/run.py

soak: $(READY) system ## run the long tests
	$(BIN)/pytest -m soak
	$(BIN)/pytest tests/kernel tests/conformance tests/interop --cov --cov-report=
	$(BIN)/coverage report --include='src/moothall/kernel/*' --skip-covered --show-missing --fail-under=95

conformance: $(READY) ## run the whole public statechart suites (fetched with npm)
	$(BIN)/python tools/conformance.py

clean: ## remove the virtual environment and everything that tools left behind
	rm -rf $(VENV) build dist .coverage htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

system:
	@tools/system-packages

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@
