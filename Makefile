# The commands of the README. Everything lands in .venv and in git-ignored folders of this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
DEMO_DIR ?= demo
CORPUS ?= corpus
CORPUS_DIR ?= corpus-run

# Compiled bytecode is kept even where the environment forbids it: tests start hundreds of short processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo corpus-run test test-quick check lint types imports unit coverage docs clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lapledger needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.core: pyproject.toml constraints.txt | $(UV)
	@$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt overrides-dev.txt readers.txt | $(UV)
	@$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt --override overrides-dev.txt --editable '.[dev]'
	@$(UV) pip install --quiet --python $(BIN)/python --target $(VENV)/readers --no-deps --requirement readers.txt
	@touch $@ $(VENV)/.core

install: $(VENV)/.core  ## make the environment in .venv
	@echo "installed; try: $(BIN)/lap --help"

demo: $(VENV)/.core  ## run the main job on four problems of the corpus (under 3 minutes)
	@$(BIN)/lap demo --into $(DEMO_DIR) --replace

corpus-run: $(VENV)/.core  ## run the whole corpus (about a quarter of an hour)
	@$(BIN)/lap ledger init --ledger $(CORPUS_DIR)
	@$(BIN)/lap import icpc $(CORPUS) --ledger $(CORPUS_DIR)
	@$(BIN)/lap run --ledger $(CORPUS_DIR)
	@$(BIN)/lap problems --ledger $(CORPUS_DIR)
	@$(BIN)/lap replay --ledger $(CORPUS_DIR) --tau 100 --tau 50 --tau 30 --tau 10

test: $(VENV)/.dev  ## everything CI runs: lint, types, import contracts, tests
	@$(MAKE) --no-print-directory --jobs 2 check unit

check: lint types imports  ## all but the tests

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev
	@$(BIN)/mypy

imports: $(VENV)/.dev
	@$(BIN)/lint-imports

# Three workers on two cores: tests of servers that die wait more than they work.
PYTEST := $(BIN)/pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder

unit: $(VENV)/.dev
	@$(PYTEST) --cov --cov-report= --cov-fail-under=85

test-quick: $(VENV)/.dev  ## the tests that need no server, no sandbox and no new environment (about 3 minutes)
	@$(PYTEST) -m 'not slow' --hypothesis-profile quick

docs: $(VENV)/.dev  ## write the generated reference pages
	@$(BIN)/lap docs docs

clean:  ## remove the environment and everything that was made here
	rm -rf $(VENV) $(DEMO_DIR) $(CORPUS_DIR) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
