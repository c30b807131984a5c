# Every target makes its own virtual environment first; a second run finds it ready.

PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready
BIN    := $(VENV)/bin

TESTS  := $(filter-out %__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
# half of them by the time that they take
HALF   := $(addprefix tests/,agents conformance crashes examples faults golden interop kernel lookback machines models mutants performers \
            runtime sandboxes scripting simulation stores testing toolservers typing workspaces)
SOAKED := $(addprefix tests/,kernel mutants sandboxes simulation)

# run what a mark selects, in two processes: these folders, and the others
define tests
mkdir -p build; \
$(BIN)/pytest -m "$(1)" $(2) >build/other-half.log 2>&1 & half=$$!; \
$(BIN)/pytest -m "$(1)" $(filter-out tests/house $(2),$(TESTS)); rest=$$?; \
wait $$half; half=$$?; cat build/other-half.log; exit $$((rest | half))
endef

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check bench screenshots soak conformance clean system

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## run the demonstration, offline
	$(BIN)/python examples/demo.py

test: $(READY) system ## run the quick tests, on two cores
	@$(call tests,not soak and not slow,$(HALF))

test-slow: $(READY) system ## run the slow tests, the quick ones on other Pythons, and what a wheel installs
	@$(call tests,slow and not soak,$(HALF))
	tools/other-pythons
	PYTHON=$(PYTHON) tools/try-wheel

check: $(READY) system ## format, lint, types, and the rules of the house
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	@mkdir -p build; \
	$(BIN)/mypy >build/types.log 2>&1 & types=$$!; \
	$(BIN)/pytest tests/house; house=$$?; \
	wait $$types; types=$$?; cat build/types.log; exit $$((house | types))

bench: $(READY) ## measure
	$(BIN)/python benchmarks/run.py

screenshots: $(READY) system ## take the pictures of the page that the documents show
	$(BIN)/python tools/screenshots

soak: $(READY) system ## run the long tests
	@$(call tests,soak,$(SOAKED))
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
