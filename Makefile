# The front door. `make test` on a fresh machine needs git, make, Python 3.11 or newer and Java 17 or newer.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CODE   := src tests conformance examples benchmarks tools
# Recorded answers of Kafka Streams; the project's tests carry a part of them, compressed.
GOLDEN := $(wildcard ../shared/golden/cases.jsonl ../shared/golden/scenarios.jsonl ../shared/golden/found.jsonl)
# ksqlDB's own cases: its licence lets them be run, not be part of the project.
QTT    := $(wildcard ../shared/ksqldb/qtt.jsonl)
REST   := $(wildcard ../shared/ksqldb/rest.jsonl)

.DEFAULT_GOAL := help
.PHONY: help venv demo java test check format pytest kafka spark browser pictures conformance bench bench-kafka soak docs site clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

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

# Brokers, JVMs, restarts and pages are waited for half of the time: two such parts side by side fill two cores. The
# browser has its turn when one of the others is over.
test: java check pytest conformance ## everything: check, tests, golden cases, Kafka, Spark, the browser
	@$(MAKE) --no-print-directory -j 2 kafka spark $(if $(BROWSER),browser)
	@$(if $(BROWSER),,$(MAKE) --no-print-directory browser)

check: $(STAMP) ## ruff and mypy --strict
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)

format: $(STAMP) ## let ruff format and fix the code
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

pytest: $(STAMP) ## unit tests and doctests, as far as they need neither Spark nor Kafka
	$(BIN)/python -m pytest -q -n 2 -m 'not spark and not kafka and not browser'

# One process, one broker, on free ports: started for the first test that needs it, stopped at the end. Its jars are kept.
kafka: $(STAMP) java ## the tests with a real Kafka broker, some of them on Spark
	$(BIN)/python -m pytest -q -m kafka

# Of the golden cases 320 are among the tests.
spark: $(STAMP) java ## the tests that run on Spark, golden cases and some of ksqlDB's among them
	$(BIN)/python -m pytest -q -m 'spark and not kafka and not browser'
ifneq ($(QTT),)
	$(BIN)/python conformance/qtt.py --engine spark --no-registry --sample 200 $(QTT)
	$(BIN)/python conformance/rest.py --engine spark --no-registry --sample 30 $(REST)
endif

# What HEADRACE_BROWSER names, or a Chromium of the system; without one the last line says what was left out.
BROWSER := $(or $(HEADRACE_BROWSER),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
browser: $(STAMP) java ## the console in Chromium, once on the running demo
ifneq ($(BROWSER),)
	$(BIN)/python -m pytest -q -m browser
else
	@echo "no browser here: the tests of the console in Chromium were left out; install chromium, or set HEADRACE_BROWSER"
endif

pictures: $(STAMP) java ## take the pictures of the console in docs/pictures anew
	HEADRACE_PICTURES=1 $(BIN)/python -m pytest -q -m browser

conformance: $(STAMP) ## the golden cases of ../shared/golden and ksqlDB's cases of ../shared/ksqldb, if they are there
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py $(GOLDEN)
else
	@echo "no ../shared/golden here: the tests have run the part of the golden cases that the project carries"
endif
ifneq ($(QTT),)
	$(BIN)/python conformance/qtt.py $(QTT)
	$(BIN)/python conformance/rest.py $(REST)
else
	@echo "no ../shared/ksqldb here: ksqlDB's cases were NOT run; the tests have run the project's own cases of SQL"
endif

BENCHMARKS := driver expiry embedded_log metrics_cost query query_http sql_formats sql sql_many store_engines engine engine_latency engine_growth backfill
bench: $(STAMP) java ## everything next to something else; fails if a target was missed
	@failed=; for each in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$each || failed="$$failed $$each"; done; \
	  test -z "$$failed" || { echo "missed targets in:$$failed" >&2; exit 1; }

bench-kafka: $(STAMP) java ## the engine on a real broker, next to Kafka Streams itself; needs Maven
	$(BIN)/python -m benchmarks.kafka

soak: $(STAMP) java ## the long versions: kills, memory, an hour of fuzzing, all golden cases on Spark
	$(BIN)/python -m tests.fuzz --seconds 3600
	$(BIN)/python -m tests.spark.faults.soak
	$(BIN)/python -m tests.spark.faults.soak --log kafka
	$(BIN)/python -m tests.simulation --seconds 3600
	$(BIN)/python -m tests.topics.start_soak
	$(BIN)/python -m tests.change.large_growth
	PYTHONPATH=conformance $(BIN)/python -m tests.takeover
	$(BIN)/python -m tests.sql.server.kill_soak
	$(BIN)/python -m tests.sql.server.kill_soak --log kafka
	$(BIN)/python -m benchmarks.soak_memory
ifneq ($(GOLDEN),)
	$(BIN)/python conformance/golden.py --engine spark $(GOLDEN)
endif
ifneq ($(QTT),)
	$(BIN)/python conformance/qtt.py --engine spark --no-registry $(QTT)
endif

docs: $(STAMP) ## write the generated pages and the drawn pictures anew
	$(BIN)/python -m tools.layers --write
	$(BIN)/python -m tools.configuration_table --write
	$(BIN)/python -m tools.api_reference
	$(BIN)/python -m tools.sql_reference
	$(BIN)/python -m tools.site

# Material says at each start that MkDocs 2 will be another program. No --quiet: strict mode would see no warnings.
site: $(STAMP) ## build the documentation site into build/site, strictly; it needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "look at it: $(BIN)/python -m http.server --directory build/site"

clean: ## remove the environment, caches and build results
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
