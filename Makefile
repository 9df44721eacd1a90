# Everything a person does here, by one name each. Needs make and Python >= 3.11, nothing else:
# the first target called builds the environment in .venv.
#
#   make demo     see a workflow survive a kill          make check    format, lint, types, floors
#   make test     the whole suite (ARGS="-k name")       make bench    measure, print ratios
#   make newest   a part of it on the newest Python      make clean    remove what was built
#   make setup    only build the environment
#
# PYTHON=/path/to/python3 picks the interpreter.

.DEFAULT_GOAL := help
.SUFFIXES:
.PHONY: help setup demo test newest newest-setup compiled check bench clean oracle

# xdist workers, and anything more for pytest. One more than the cores of the smallest machine that
# this runs on: much of what tests take that start processes is waited.
WORKERS ?= 3
ARGS ?=

# Compiled once, read by every worker and by every process that a test starts; what tests write
# themselves is never compiled (tests/conftest.py).
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
ORACLE := cel-expr-python==0.1.3
UNITS := tests/unit tests/conformance
PIP := -m pip --disable-pip-version-check -qq install

help:
	@sed -n 's/^#   //p' Makefile

setup: .venv/.installed

.venv/.installed: pyproject.toml
	@found=$$(sh .ci/find-python 11 "$(PYTHON)") || { \
	    echo "No Python >= 3.11 with venv was found: install one (on Debian with its -venv" \
	         "package), or name it: make PYTHON=/path/to/python3"; exit 1; }; \
	if ! $(BIN)/python -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then \
	    echo "== building .venv with $$($$found --version) (once; about half a minute)"; \
	    rm -rf .venv && $$found -m venv .venv; \
	else echo "== bringing .venv up to date with pyproject.toml"; fi
	@$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

demo: .venv/.installed
	@$(BIN)/perdure demo

test: .venv/.installed oracle
	@echo "== tests"
	@$(BIN)/python -m compileall -q src tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

# The same code on the newest Python that is here, where that is another one: what only its asyncio
# or typing does otherwise shows in these.
newest: newest-setup
	@if [ ! -e .venv-newest/.installed ]; then \
	    echo "!! no newer Python than 3.11 was found: nothing is run on one"; exit 0; fi; \
	echo "== tests on $$(cat .venv-newest/.installed)"; \
	.venv-newest/bin/python -m pytest -q -n $(WORKERS) --dist worksteal $(UNITS)

newest-setup: .venv/.installed
	@found=$$(for minor in 14 13 12; do sh .ci/find-python $$minor && break; done); \
	if [ -z "$$found" ]; then rm -rf .venv-newest; exit 0; fi; \
	version=$$($$found --version); \
	if [ "$$(cat .venv-newest/.installed 2>/dev/null)" != "$$version" ] \
	    || [ pyproject.toml -nt .venv-newest/.installed ]; then \
	    echo "== building .venv-newest with $$version"; \
	    rm -rf .venv-newest && $$found -m venv .venv-newest \
	        && .venv-newest/bin/python $(PIP) -e '.[dev]' \
	        && echo "$$version" >.venv-newest/.installed; fi

# What the tests import, compiled before the workers start, each of which would do it anew.
compiled: .venv/.installed
	@$(BIN)/python -m compileall -q src tests
	@$(BIN)/python -m pytest -q --collect-only >/dev/null
	@[ ! -e .venv-newest/.installed ] \
	    || .venv-newest/bin/python -m pytest -q --collect-only $(UNITS) >/dev/null

check: .venv/.installed
	@echo "== format" && $(BIN)/ruff format --check --quiet .
	@echo "== lint" && $(BIN)/ruff check --quiet .
	@echo "== types" && $(BIN)/mypy --no-error-summary
	@echo "== floors" && $(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter
	@echo "== tidy" && $(BIN)/python -m pytest -q tests/tidy tests/docs

bench: .venv/.installed
	@$(BIN)/python -m bench $(ARGS)

# A second implementation of the expression language to compare with. It has wheels for few
# platforms, so it lives apart; where it cannot be had those tests are skipped and say so.
# Not on 3.11: there the package aborts the interpreter after some thousand results.
oracle: .venv/.installed
	@if [ "$$(cat .venv-oracle/.installed 2>/dev/null)" = "$(ORACLE)" ]; then exit 0; fi; \
	echo "== building .venv-oracle (once)"; \
	if python=$$(sh .ci/find-python 12 $(ORACLE_PYTHON)) \
	    && "$$python" -m venv --clear .venv-oracle \
	    && .venv-oracle/bin/python $(PIP) $(ORACLE); then \
	    echo "$(ORACLE)" > .venv-oracle/.installed; \
	else \
	    rm -rf .venv-oracle; \
	    echo "!! NOT TESTED: expressions against $(ORACLE): it could not be installed here." \
	        "It takes Python 3.12 or newer; name one with ORACLE_PYTHON="; \
	fi

clean:
	rm -rf .venv .venv-newest .venv-oracle .cache .hypothesis build dist src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
