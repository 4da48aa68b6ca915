# The verbs people use. Each makes .venv when it is missing and is quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help venv demo test lint bench docs clean

help:
	@echo "make demo    an effect and a selection on data with known truth, in two minutes"
	@echo "make test    the test suite"
	@echo "make lint    ruff and mypy"
	@echo "make bench   time and memory against DoubleML and EconML"
	@echo "make docs    the documentation, into site/"
	@echo "make venv    only the set-up"

venv: $(VENV)/.core

# A stamp a set of extras, so that a verb installs only what it needs, and only once.
$(VENV)/.core: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.%: $(VENV)/.core
	@echo "Installing the '$*' extra ..."
	@$(PIP) --editable '.[$*]'
	@touch $@

demo: $(VENV)/.core
	@$(BIN)/ddml-fs demo

test: $(VENV)/.test
	@$(BIN)/python -m pytest

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/.experiments
	@$(BIN)/python -m benchmarks.effect
	@$(BIN)/python -m benchmarks.sweep

docs: $(VENV)/.docs
	@$(BIN)/mkdocs build --strict --quiet
	@echo "Written to site/index.html"

clean:
	rm -rf $(VENV) site build *.egg-info
