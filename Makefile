# The front door. `make test` on a fresh machine needs git, make and Python 3.11 or newer.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CODE   := src tests conformance examples benchmarks tools
# Recorded answers of Kafka Streams; the project's tests carry a part of them, compressed.
GOLDEN := $(wildcard ../shared/golden/cases.jsonl ../shared/golden/scenarios.jsonl)

.DEFAULT_GOAL := help
.PHONY: help venv test check format pytest conformance bench docs clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP) ## create .venv and install the project into it

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $$($(PYTHON) --version) was found: say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: check pytest conformance ## everything: check, tests, golden cases

check: $(STAMP) ## ruff and mypy --strict
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)

format: $(STAMP) ## let ruff format and fix the code
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

pytest: $(STAMP) ## unit tests and doctests
	$(BIN)/python -m pytest -q -n 2

conformance: $(STAMP) ## the golden cases of ../shared/golden, if they are there
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py $(GOLDEN)
else
	@echo "no ../shared/golden here: the tests have run the part of the golden cases that the project carries"
endif

bench: $(STAMP) ## the driver next to hand-written loops, the embedded log next to plain files
	$(BIN)/python benchmarks/driver.py
	$(BIN)/python benchmarks/embedded_log.py

docs: $(STAMP) ## write the generated pages anew
	$(BIN)/python -m tools.configuration_table --write
	$(BIN)/python -m tools.api_reference

clean: ## remove the environment, caches and build results
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
