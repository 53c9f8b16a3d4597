# The verbs of this project; CI uses the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
STUDIO := src/runyard/server/studio/index.html
NODE   := $(shell node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm)
UI     := $(shell find ui -type f -not -path 'ui/node_modules/*')

.PHONY: help setup ui demo check test quick bench clean

help:
	@echo "make demo    train a real model through the yard, from nothing"
	@echo "make test    the whole test suite          make quick   the tests that need no downloads"
	@echo "make check   format, lint, types, imports  make bench   speed, side by side with peers"
	@echo "make setup   the development environment   make clean   remove it"
	@echo "make ui      the studio's page, by Node (setup does it too, where Node is)"

setup: $(STAMP)
ifneq ($(NODE),)
setup: $(STUDIO)
endif

$(STAMP): pyproject.toml distributions/runyard-azureml/pyproject.toml
	@echo "setup: a Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --editable . --editable distributions/runyard-azureml --group dev
	@touch $@

ui: $(STUDIO)

$(STUDIO): $(UI) ui/node_modules/.package-lock.json
	@echo "ui: the studio's page in $(@D)"
	@cd ui && npm run --silent build

# not `npm ci`: it refuses a lock that lacks the binaries of platforms which the registry of whoever wrote it does not have
ui/node_modules/.package-lock.json: ui/package-lock.json
	@cd ui && npm install --no-save --silent
	@touch $@

demo: setup
	@$(BIN)/python examples/digits/submit.py

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
ifneq ($(NODE),)
	$(BIN)/python scripts/ui_types.py --check
	cd ui && npm run --silent check
endif

test: setup
	@scripts/test

quick: setup
	$(BIN)/python -m pytest -n 2 -m "not real"

bench: setup
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) ui/node_modules $(dir $(STUDIO)) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
