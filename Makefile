# Everything made here lies in .venv, .venvs and build, which git ignores. The work itself is in scripts/.
SHELL := /bin/bash
# make test BPY=5.3 VENV=.venvs/bpy-5.3 takes another Blender, in an environment of its own.
VENV := .venv
BPY := any
PYTHON := $(VENV)/bin/python
FUZZ_SECONDS ?= 120
FUZZ_ARGS ?= --seconds $(FUZZ_SECONDS)
BENCH_ARGS ?=
DOCS_ARGS ?=
VERSION ?=
PYTEST_ARGS ?=
WINDOWS_ARGS ?=
# Two processes, with half of the tests in Blender each (see tests/conftest.py). PYTEST_ARGS=-n0 runs all tests in one.
PROCESSES := -n 2
# Compiled modules are kept, even on a machine whose environment says otherwise: pytest rewrites the assertions of all
# test modules, which takes 13 s in each process, and the tests start many processes that import the whole package.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup convert test test-all package package-test bench fuzz coverage lint format docs release gui-test blender-test windows-test clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv with Blender as a Python module and everything the other targets need
	@scripts/create_environment "$(VENV)" "$(BPY)"

convert: setup ## Convert the bundled example to .blend and back; IN=… OUT=… converts your own file
ifdef IN
	@[ -n "$(OUT)" ] || { echo "Say where to: make convert IN=$(IN) OUT=…"; exit 2; }
	@mkdir -p "$$(dirname "$(OUT)")"
	@$(VENV)/bin/meshferry convert "$(IN)" "$(OUT)"
else
	@scripts/convert_example
endif

test: setup ## Run all but the slow tests on .venv; PYTEST_ARGS=… adds options
	@timeout --signal=INT --kill-after=60 1800 $(PYTHON) -m pytest $(PROCESSES) -m "not slow" $(PYTEST_ARGS)

test-all: setup ## Run all tests on .venv
	@timeout --signal=INT --kill-after=60 3600 $(PYTHON) -m pytest $(PROCESSES) $(PYTEST_ARGS)

package: setup ## Build and validate the extension packages, wheel and sdist into build/packages
	@$(PYTHON) scripts/package_extension.py

package-test: package ## Install the built package in both LTS versions of Blender and use it
	@scripts/run_packaged_tests

bench: setup ## Measure speed; BENCH_ARGS=… adds options
	@$(PYTHON) tests/bench/run_bench.py $(BENCH_ARGS)

fuzz: setup ## Feed broken files to the readers for FUZZ_SECONDS (120) or with FUZZ_ARGS=…
	@$(PYTHON) tests/fuzz/run_fuzz.py $(FUZZ_ARGS)

coverage: setup ## Measure the branches of io_formats that the codec tests and a short fuzzer run reach
	@rm -rf build/coverage && mkdir -p build/coverage
	@MESHFERRY_SAMPLES=build/no-samples timeout 1800 $(PYTHON) -m coverage run -m pytest -q -r f -m "not slow and not needs_bpy" \
	  tests/codec tests/fuzz/test_fuzz_smoke.py tests/cli/test_special_files.py
	@$(PYTHON) -m coverage combine --quiet
	@$(PYTHON) scripts/report_coverage.py build/coverage/data

lint: ## Check style and types
	@scripts/run_lint

format: ## Put the code into the style that lint asks for
	@scripts/create_environment .venvs/lint lint
	@.venvs/lint/bin/ruff check --fix --exit-zero --quiet . && .venvs/lint/bin/ruff format .

docs: ## Build the documentation site into build/site; DOCS_ARGS=--external checks links to other sites
	@scripts/create_environment .venvs/docs docs
	@.venvs/docs/bin/python scripts/build_site.py $(DOCS_ARGS)

release: setup ## Make a release: VERSION=0.2.0 goes into manifest and changelog, then a commit and a tag
	@$(PYTHON) scripts/make_release.py "$(VERSION)"

blender-test: setup ## Run the tests inside a real Blender, where one can be had
	@scripts/run_blender_tests

windows-test: ## Run tests in the Windows builds of Python and Blender under Wine; WINDOWS_ARGS=--all runs more
	@scripts/run_windows_tests $(WINDOWS_ARGS)

gui-test: ## Import by menu, dialog and drop in a real Blender window; pictures in build/pictures
	@scripts/run_window_test

clean: ## Remove everything that was made here
	rm -rf .venv .venvs build dist meshferry.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
