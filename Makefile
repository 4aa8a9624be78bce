# The commands of the README. Each creates and fills .venv as far as it needs.
# Another interpreter: make PYTHON=python3.13 demo

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test slow browser lowest wheel bench paper calibration campaign docs lint types format clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.core  ## explain a model on the built-in dataset (light core, no torch)
	$(BIN)/python -m elsewise demo

# One process per core, one thread in each: boosters' threads would fight over the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test: $(VENV)/.test  ## run the quick tests and the doctests: a few minutes
	$(PYTEST) -m "not slow"

slow: $(VENV)/.test  ## run the other tests: long laws, simulations, pages in Chromium, Dask clusters
	$(PYTEST) -m slow tests

lowest:  ## run the core tests on the lowest versions that pyproject.toml allows
	$(PYTHON) scripts/lowest.py

wheel:  ## build the wheel and run its demo in an empty environment
	scripts/try_wheel.sh $(PYTHON)

browser:  ## install Debian's Chromium, which the report is tested in (needs root)
	@command -v chromium > /dev/null || (apt-get update -q && \
		apt-get install -y -q --no-install-recommends chromium chromium-driver)

bench: $(VENV)/.test  ## quality, speed and growth: half an hour; growth goes on where it stopped
	$(BIN)/python benchmarks/run.py
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.difference
	$(BIN)/python -m benchmarks.questions
	$(BIN)/python -m benchmarks.optimality
	$(BIN)/python -m benchmarks.moves

paper: $(VENV)/.test  ## reproduce the paper into docs/paper.md: hours; QUICK=1: one seed, minutes
	$(BIN)/python -m benchmarks.paper $(if $(QUICK),--quick)

calibration: $(VENV)/.test  ## how often the certificates hold: an hour or two, goes on where it stopped
	$(BIN)/python -m benchmarks.calibration --jobs 2
	$(BIN)/python -m benchmarks.difference

campaign: $(VENV)/.test  ## try to break it 21,000 times: hours, goes on where it stopped
	$(BIN)/python -m benchmarks.campaign

docs: $(VENV)/.docs  ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: $(VENV)/.dev  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## check the types of src
	$(BIN)/python -m mypy

format: $(VENV)/.dev  ## rewrite files in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove .venv and every cache
	rm -rf $(VENV) .venv-lowest .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov build dist site
	find src tests benchmarks examples scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A stamp per set of requirements: nothing is installed twice until pyproject.toml changes.
# A .venv made without pip gets one.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.pip: | $(BIN)/python
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.pip
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.pip
	$(PIP_INSTALL) -e ".[test]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.pip
	$(PIP_INSTALL) -e ".[dev]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.pip
	$(PIP_INSTALL) -e ".[docs]"
	@touch $@
