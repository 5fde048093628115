# Every target sets up .venv by itself when it is missing or stale; `make` alone lists them.
# Paths are relative and quoted, so that a clone may lie anywhere, spaces in its path included.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= 2
PYTEST := .venv/bin/python -m pytest
STAMP := .venv/.all
DEMO := .venv/.demo

# The environment is stale when pyproject.toml or a lock is newer than its stamp, when its
# interpreter has gone, or when the clone has moved (console scripts hold absolute paths).
SETTLED := $(shell .venv/bin/python -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null) $(shell cat $(DEMO) 2>/dev/null)
ifneq ($(SETTLED),True $(shell pwd -P))
.PHONY: $(STAMP) $(DEMO)
endif

.PHONY: help demo test lab docs check format lint types directions agreement doctests coverage bench \
	fuzz sbom notebooks lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s%s\n", $$1, $$2}' Makefile

demo: $(DEMO)  ## build the example report, build/report/wallet.html, offline
	@echo "demo: simulating the exchange (half a minute the first time) and building the report"
	@.venv/bin/toolkit report wallet --out build/report/wallet.html
	@echo "demo: open build/report/wallet.html in a browser"

test: $(STAMP)  ## run every test and doctest, JupyterLab in Chromium included
	@bash .ci/clients
	@echo "test: tests and doctests on $(JOBS) processes"
	@$(PYTEST) -n $(JOBS) --dist loadgroup --no-loadscope-reorder -p no:benchmark $(ARGS)

coverage: override ARGS += --cov --cov-report=term
coverage: test  ## run every test, and list the lines and branches that no test reaches; twice as slow

lab: $(STAMP)  ## open JupyterLab on the notebooks, the local service ready in each of them
	@echo "lab: JupyterLab on notebooks/ (Ctrl-C stops it)"
	@.venv/bin/toolkit lab

docs: $(STAMP)  ## build the documentation as a site, build/site/index.html, offline
	@echo "docs: executing the notebooks, drawing the figures, checking the links"
	@.venv/bin/python docs/build_site.py

check: format lint types directions agreement doctests  ## run the six checks below; `make -k check` does not stop at the first failure

format: $(STAMP)  ##   is the code formatted?
	@echo "check: format"
	@.venv/bin/ruff format --check --quiet . || { echo "check: run .venv/bin/ruff format ."; exit 1; }

lint: $(STAMP)  ##   ruff
	@echo "check: lint"
	@.venv/bin/ruff check --quiet .

types: $(STAMP)  ##   mypy, strict
	@echo "check: types"
	@.venv/bin/mypy

directions: $(STAMP)  ##   import-linter
	@echo "check: import directions"
	@.venv/bin/lint-imports --no-cache --no-logo

agreement: $(STAMP)  ##   tables, code, documents, notebooks, dependencies agree
	@echo "check: agreement"
	@$(PYTEST) -q tests/agreement

doctests: $(STAMP)  ##   every example in a docstring
	@echo "check: doctests"
	@$(PYTEST) -q toolkit

bench: $(STAMP)  ## measure against what users would otherwise install; write docs/benchmarks.md
	@echo "bench: tests/benchmarks, alone on this machine for meaningful numbers"
	@$(PYTEST) -q tests/benchmarks --write-page $(ARGS)

fuzz: $(STAMP)  ## send 100,000 random requests to the service and 10,000 random answers to the client
	@echo "fuzz: docs/faults.md has the figures of such a run"
	@.venv/bin/python -m tests.faults.fuzz $(ARGS)

sbom: $(STAMP)  ## write the bill of materials and the licences of all dependencies into build/
	@bash .ci/sbom

notebooks: $(STAMP)  ## write every notebook's .ipynb anew from the .py that is its source
	@.venv/bin/jupytext --quiet --to ipynb --update --update-metadata '{"language_info": {"name": "python"}}' notebooks/*.py

COMPILE := uv pip compile pyproject.toml --quiet --universal --fork-strategy fewest --python-version 3.11 \
	--generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock:  ## pin the newest versions that pyproject.toml allows (needs uv)
	@echo "lock: writing requirements.lock, and requirements-demo.lock with some of its pins"
	@$(COMPILE) --upgrade --extra all --extra spark --extra docs --extra dev --output-file requirements.lock
	@$(COMPILE) --group build --extra reports --constraint requirements.lock --output-file requirements-demo.lock

clean:  ## remove the environment and everything built
	rm -rf .venv build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP): pyproject.toml requirements.lock
	@bash .ci/setup all

$(DEMO): pyproject.toml requirements-demo.lock
	@bash .ci/setup demo
