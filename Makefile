# Needs make and Python 3.11 or newer, nothing else. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
DOCS_STAMP := $(VENV)/.docs-stamp

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types docs docs-open bench lowest clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create .venv and install the package for development

# Installs again only when pyproject.toml is newer than the last success.
$(STAMP): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || \
	  { echo "'$(PYTHON)' was not found. Name a Python 3.11 or newer: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "widemargin needs Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). Name another: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	@echo "Installing into $(VENV); the first time can take a few minutes."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(STAMP)  ## run the demonstration
	$(BIN)/python examples/demo.py

test: $(STAMP)  ## run the tests and the examples in docstrings
	$(BIN)/python -m tests.compiled
	$(BIN)/python -m pytest -n auto --maxprocesses 8

lint: $(STAMP)  ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## check types
	$(BIN)/mypy src

docs: $(DOCS_STAMP)  ## build the site into build/site, examples included; any warning is an error
	@echo "Building the site; its examples take some minutes."
	$(BIN)/python -m sphinx -W -q -b html docs build/site
	@echo "Built: build/site/index.html"

docs-open: docs  ## build the site and show it
	$(BIN)/python -m webbrowser -t "file://$(CURDIR)/build/site/index.html"

# What the site needs beside the package.
$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

lowest:  ## run the tests with the lowest versions that are allowed
	.ci/lowest

bench: $(STAMP)  ## run a benchmark: make bench NAME=...
	$(BIN)/python -m benchmarks $(NAME)

clean:  ## remove the environment, caches and build products
	rm -rf $(VENV) build dist docs/gallery docs/generated docs/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
