# Development commands; CI uses the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
STUDIO := src/runyard/server/studio/index.html
NODE   := $(shell node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && command -v npm)
UI     := $(shell find ui -type f -not -path 'ui/node_modules/*')

.PHONY: help setup ui demo check test quick fuzz soak bench clean

help:
	@echo "make demo    set everything up and train a real model"
	@echo "make test    whole test suite                        make quick   tests without downloads"
	@echo "make check   format, lint, types, imports, language  make bench   benchmarks against peers"
	@echo "make fuzz    20 minutes of generated requests: nightly"
	@echo "make soak    an hour of runs, faults, services and readers; MINUTES=5 for less"
	@echo "make setup   development environment                 make clean   remove it"
	@echo "make ui      build the studio with Node (part of setup if Node is installed)"

setup: $(STAMP)
ifneq ($(NODE),)
setup: $(STUDIO)
endif

$(STAMP): pyproject.toml distributions/runyard-azureml/pyproject.toml
	@echo "setup: Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --editable . --editable distributions/runyard-azureml --group dev
	@touch $@

ui: $(STUDIO)

$(STUDIO): $(UI) ui/node_modules/.package-lock.json
	@echo "ui: building the studio in $(@D)"
	@cd ui && npm run --silent build

# not `npm ci`: it rejects a lock file without the optional binaries of other platforms
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
	$(BIN)/python scripts/check_language.py
ifneq ($(NODE),)
	$(BIN)/python scripts/ui_types.py --check
	cd ui && npm run --silent check
endif

test: setup
	@scripts/test

quick: setup
	$(BIN)/python -m pytest -n 2 -m "not real"

MINUTES ?= 20
fuzz: setup
	$(BIN)/python scripts/fuzz.py --seconds $$(($(MINUTES) * 60))

soak: MINUTES = 60
soak: setup
	$(BIN)/python -m soak --minutes $(MINUTES)

bench: setup
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) ui/node_modules $(dir $(STUDIO)) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
