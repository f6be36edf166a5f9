# The front door. `make test` on a fresh machine needs git, make, Python 3.11 or newer and Java 17 or newer.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CODE   := src tests conformance examples benchmarks tools
# Recorded answers of Kafka Streams; the project's tests carry a part of them, compressed.
GOLDEN := $(wildcard ../shared/golden/cases.jsonl ../shared/golden/scenarios.jsonl)

.DEFAULT_GOAL := help
.PHONY: help venv demo test check format pytest conformance bench docs clean

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

demo: $(STAMP) ## a pipeline of purchases on Spark, live in the terminal, for about a minute
	@$(BIN)/python -m headrace.cli demo $(DEMO)

java: $(STAMP)
	@$(BIN)/python -c 'from headrace.spark.java import find_java; find_java()' 2>/dev/null || \
	  { $(BIN)/python -c 'from headrace.spark.java import find_java; find_java()' 2>&1 | tail -1 >&2; exit 1; }

test: java check pytest conformance spark ## everything: check, tests, golden cases, tests on Spark

check: $(STAMP) ## ruff and mypy --strict
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)

format: $(STAMP) ## let ruff format and fix the code
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

pytest: $(STAMP) ## unit tests and doctests, as far as they need no Spark
	$(BIN)/python -m pytest -q -n 2 -m 'not spark'

# One process: two that start Spark would only get in each other's way.
spark: $(STAMP) java ## the tests that run on Spark, and golden cases on it
	$(BIN)/python -m pytest -q -m spark
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py --engine spark --sample 320 $(GOLDEN)
endif

conformance: $(STAMP) ## the golden cases of ../shared/golden, if they are there
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py $(GOLDEN)
else
	@echo "no ../shared/golden here: the tests have run the part of the golden cases that the project carries"
endif

BENCHMARKS := driver embedded_log engine engine_latency engine_growth
bench: $(STAMP) java ## everything next to something else; fails if a target was missed
	@failed=; for each in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$each || failed="$$failed $$each"; done; \
	  test -z "$$failed" || { echo "missed targets in:$$failed" >&2; exit 1; }

soak: $(STAMP) java ## the long versions: kills, memory, all golden cases on Spark
	$(BIN)/python -m tests.spark.faults.soak
	$(BIN)/python -m benchmarks.soak_memory
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py --engine spark $(GOLDEN)
endif

docs: $(STAMP) ## write the generated pages anew
	$(BIN)/python -m tools.configuration_table --write
	$(BIN)/python -m tools.api_reference

clean: ## remove the environment, caches and build results
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
