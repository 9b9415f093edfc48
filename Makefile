# Two commands set everything up: `make demo` and `make test`. Nothing but Python 3.11 is needed.
PYTHON ?= python3.11
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif
VENV := .venv
BIN := $(VENV)/bin
TIMED := $(BIN)/python -m tools.timed
LANE := $(BIN)/pytest -m 'spark or server' -o console_output_style=classic
QUICK := "lint" "$(BIN)/ruff check . && $(BIN)/ruff format --check ." \
         "types" "$(BIN)/mypy" \
         "contracts" "$(BIN)/lint-imports" \
         "tests without a JVM" "$(BIN)/pytest -m 'not spark and not server' --junitxml \$$PARTS/quick.xml"
KILLS ?= 50

.DEFAULT_GOAL := help
.PHONY: help demo test check chaos fuzz-sql docs site bench jar lock clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.make/run: requirements/run.txt pyproject.toml
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@mkdir -p .make && touch $@

.make/java: .make/run
	@$(BIN)/python -m tools.java || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/java.txt
	@touch $@

.make/dev: .make/run .make/java requirements/dev.txt tools/browser.py tools/prometheus.py tools/typescript.py
	@echo "installing what the tests need (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m tools.browser
	@$(BIN)/python -m tools.prometheus
	@$(BIN)/python -m tools.typescript
	@touch $@

demo: .make/run .make/java ## Run a real pipeline end to end and explain what happened
	@$(BIN)/python -m tools.demo

test: .make/dev ## Lint, types, contracts and the whole test suite
	@$(TIMED) $(QUICK) \
	          "tests with Spark" "$(LANE) --taken=\$$PARTS --lane=spark --junitxml \$$PARTS/spark.xml" \
	          "+ tests with servers" "$(LANE) --taken=\$$PARTS --lane=servers --junitxml \$$PARTS/servers.xml"

check: .make/dev ## The quick lane: everything that needs no JVM
	@$(TIMED) $(QUICK)

chaos: .make/dev ## Kill workers, drivers and servers KILLS=50 times; SEED=… repeats a run
	@seed=$(or $(SEED),$$(date +%s)); echo "SEED=$$seed KILLS=$(KILLS)"; \
	 MILLSTREAM_KILLS=$(KILLS) MILLSTREAM_SEED=$$seed $(BIN)/pytest -s tests/chaos tests/conformance/test_killed.py tests/conformance/test_debezium.py tests/engine/incremental/test_killed_servers.py tests/engine/incremental/test_heap.py

fuzz-sql: .make/dev ## Compare COUNT=200 random queries, kept up to date, with Spark's batch answers; SEED=… repeats a run
	@seed=$(or $(SEED),$$(date +%s)); echo "SEED=$$seed COUNT=$(or $(COUNT),200)"; $(BIN)/python -m tests.sql.random $$seed $(or $(COUNT),200)

docs: .make/dev ## Generate the reference pages from the classes
	@$(BIN)/python -m tools.docs

.make/site: .make/run requirements/site.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $@

site: .make/site ## Build the docs as a web site, in site/
	@$(BIN)/python -m tools.site

bench: .make/dev ## Measure against hand-written PySpark and print the ratios
	@$(BIN)/python -m bench

jar: .make/dev ## Compile the Java classes of the package; no JDK is needed
	@$(BIN)/python -m tools.jar

lock: ## Pin every dependency anew
	@$(BIN)/python -m tools.lock

clean: ## Remove what make made
	rm -rf $(VENV) .make .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
