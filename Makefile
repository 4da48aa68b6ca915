# The verbs people use. Each makes .venv when it is missing and is quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOWEST := .venv-lowest
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

.PHONY: help venv demo test lowest lint bench docs clean

help:
	@echo "make demo    a known effect, and an audit of a real table with a report, in a minute"
	@echo "make test    the test suite"
	@echo "make lowest  a quick run with the lowest supported versions, in $(LOWEST)"
	@echo "make lint    ruff and mypy"
	@echo "make bench   time, memory and coverage against DoubleML and EconML"
	@echo "make docs    the documentation, into site/"
	@echo "make venv    only the set-up"

venv: $(VENV)/.core

# A stamp a set of extras, so that a verb installs only what it needs, and only once.
$(VENV)/.core: pyproject.toml constraints.txt ddml_fs/version.py
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.%: $(VENV)/.core
	@echo "Installing the '$*' extra ..."
	@$(PIP) --editable '.[$*]'
	@touch $@

demo: $(VENV)/.report
	@$(BIN)/ddml-fs demo

test: $(VENV)/.test
	@$(BIN)/python -m pytest

# The lower bounds, not the versions of constraints.txt, hence a venv of its own. Tried on Python 3.11.
lowest: $(LOWEST)/.core
	@$(LOWEST)/bin/python -m pytest --override-ini addopts= -q tests/smoke.py

$(LOWEST)/.core: pyproject.toml constraints-lowest.txt ddml_fs/version.py
	@echo "Setting up $(LOWEST) (once, a minute or two) ..."
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints-lowest.txt --editable . pytest
	@touch $@

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/.experiments
	@$(BIN)/python -m benchmarks.effect
	@$(BIN)/python -m benchmarks.sweep
	@$(BIN)/python -m benchmarks.coverage --quick
	@$(BIN)/python -m benchmarks.growth --quick
	@$(BIN)/python -m benchmarks.blocks
	@$(BIN)/python -m benchmarks.screen
	@$(BIN)/python -m benchmarks.workers
	@$(BIN)/python -m benchmarks.trunk
	@$(BIN)/python -m benchmarks.wide
	@$(BIN)/python -m benchmarks.federated

docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Written to site/index.html"

clean:
	rm -rf $(VENV) $(LOWEST) site build *.egg-info
