# make demo         install, then a real model on a real benchmark: no key, no network but the package index
# make test         install, then every test            make test-fast   the same without the slow ones: under 3 minutes
# make lint         style, types, layering, house rules  make format      mend what a tool can mend
# make bench        performance, on an installed and byte-compiled package (bench/README.md)
# make constraints  resolve the versions in constraints.txt anew
# make clean        remove what the above left
#
# PYTHON=…      the Python to use; else the first fitting one on PATH
# JOBS=…        test processes at a time (default: one a core, at most 8)
# PYTEST_ARGS=… more for pytest, for example PYTEST_ARGS='-k ledger -x'

SHELL := /bin/sh
.DELETE_ON_ERROR:
.NOTPARALLEL: # the targets share one environment
.PHONY: install install-dev demo test test-fast lint lint-style lint-types lint-order lint-house format bench constraints clean

VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= logical
PLUGINS := $(patsubst %/pyproject.toml,./%,$(wildcard plugins/*/pyproject.toml))
EDITABLE := $(foreach plugin,$(PLUGINS),-e $(plugin))

# A machine's settings that would put packages elsewhere than into the environment, or leave them uncompiled. Where packages
# come from (index, proxy, certificate, site constraints) stays the machine's choice.
unexport PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_NO_COMPILE PIP_NO_DEPS
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP_INSTALL := $(BIN)/python -m pip install -qq --no-user --compile -c constraints.txt
# An editable install leaves our own sources as they are. One that does not compile says so better when it is imported.
COMPILE := $(BIN)/python -m compileall -qq src $(addsuffix /src,$(PLUGINS)) || true
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder # conftest.py has the order

# One environment serves demo and test, so its install is editable. Each stamp is older than what an install depends on
# if and only if there is something to do; the one with the dev extra does for both.
INPUTS := pyproject.toml constraints.txt Makefile $(addsuffix /pyproject.toml,$(PLUGINS))

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(VENV)/.installed: $(INPUTS)
	@python=$$(tools/find-python) || exit 1; \
	  "$(BIN)/python" -c '' 2>/dev/null || "$$python" -m venv --clear $(VENV)
	@echo "installing evalcore into $(VENV) …"
	@# All of ours in one command: a name of ours is never looked up on an index.
	@$(PIP_INSTALL) -e . $(EDITABLE)
	@$(COMPILE)
	@touch $@

$(VENV)/.installed-dev: $(INPUTS)
	@python=$$(tools/find-python) || exit 1; \
	  "$(BIN)/python" -c '' 2>/dev/null || "$$python" -m venv --clear $(VENV)
	@echo "installing evalcore with what its development needs into $(VENV) …"
	@$(PIP_INSTALL) -e '.[dev]' $(EDITABLE)
	@$(COMPILE)
	@touch $(VENV)/.installed $@

demo: install
	@$(COMPILE)
	@tools/demo $(BIN)/evalcore

test: install-dev
	$(PYTEST) $(PYTEST_ARGS)

test-fast: install-dev
	$(PYTEST) -m 'not slow' $(PYTEST_ARGS)

# `make -k lint` goes on after the first of the four that finds something.
lint: lint-style lint-types lint-order lint-house

lint-style: install-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types: install-dev
	$(BIN)/mypy --strict

lint-order: install-dev
	$(BIN)/lint-imports --no-logo

lint-house: install-dev
	$(BIN)/python tools/check_tree.py

format: install-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Installed as a user would, not editable: start-up and speed are measured on what is shipped.
bench: install-dev
	@rm -rf .venv-bench && $(BIN)/python -m venv .venv-bench
	@.venv-bench/bin/python -m pip install -qq --no-user --compile -c constraints.txt . $(PLUGINS) psutil
	@.venv-bench/bin/python bench/run.py $(BENCH_ARGS)

constraints: install-dev
	$(BIN)/python tools/pin_constraints.py

clean:
	rm -rf .venv-bench .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src plugins tests tools bench examples -name __pycache__ -prune -exec rm -rf {} +
	if [ "$(VENV)" = .venv ]; then rm -rf .venv; fi
