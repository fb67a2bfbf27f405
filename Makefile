# `make` lists what there is. Everything runs in .venv, which the first target that needs it creates.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
UV     ?= uv
PRESET ?= locomotion
TASK   ?= reach
ARGS   ?=
# all extras but gpu and ray, whose environments have other builds of the same packages
LOCKED := train serve client cpu store sign remote otel rl dev docs
STAMP  := .venv/ready
BIN    := .venv/bin

# glibc hands big tensors back to the system after every use, and the kernel clears them again: a tenth of a run's time.
export MALLOC_MMAP_THRESHOLD_ = 33554432
export MALLOC_TRIM_THRESHOLD_ = 4294967296
export MALLOC_TOP_PAD_ = 67108864

.PHONY: help setup pretrain hlc serve evaluate lock check format test test-slow bench bench-store bench-serve docs clean profile

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/' | expand -t 14

setup: $(STAMP) ## create .venv with pinned dependencies

# torch first and alone: a range that admits another build would bring gigabytes of CUDA
$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c requirements.lock "pip>=23.2" "torch==2.13.0"
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c requirements.lock -e ".[train,serve,cpu,dev]"
	touch $(STAMP)

pretrain: $(STAMP) ## clips -> published skill library (PRESET=locomotion|mobility|switching|everyday|all|ase|toy; ARGS="seed=1 ...")
	$(BIN)/python -m pretrain.train preset=$(PRESET) $(ARGS)

hlc: $(STAMP) ## published skills -> published controller (TASK=reach)
	$(BIN)/python -m hlc.train task=$(TASK) $(ARGS)

evaluate: $(STAMP) ## the skill card of a published library, shown and in cards/NAME@N (ARGS="skill=humanoid@latest")
	$(BIN)/python -m pretrain.evaluate $(ARGS)

serve: $(STAMP) ## HTTP service over the store, http://127.0.0.1:8000/docs
	$(BIN)/python -m serving $(ARGS)

lock: ## write requirements.lock anew (needs uv; ARGS=--upgrade takes the newest of each range)
	$(UV) pip compile pyproject.toml --universal --python-version 3.11 --no-annotate --quiet \
	  --custom-compile-command "make lock" $(addprefix --extra ,$(LOCKED)) --output-file requirements.lock $(ARGS)

check: $(STAMP) ## formatting, lint, types, import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(STAMP) ## rewrite to the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: $(STAMP) ## all tests but the slow ones, on two cores
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-slow: $(STAMP) ## long evidence
	$(BIN)/python -m pytest -m slow $(ARGS)

bench: $(STAMP) ## measure training speed
	$(BIN)/python -m benchmarks.pretraining $(ARGS)

profile: $(STAMP) ## where the time of training goes, and a trace for the browser (PRESET=..., ARGS="--iterations 12")
	$(BIN)/python -m benchmarks.training_profile preset=$(PRESET) $(ARGS)

bench-store: $(STAMP) ## measure the skill store
	$(BIN)/python -m benchmarks.store $(ARGS)

bench-serve: $(STAMP) ## measure the service beside a plain FastAPI endpoint
	$(BIN)/python -m benchmarks.serving $(ARGS)

docs: $(STAMP) ## the documentation as a site, in build/site
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c requirements.lock -e ".[docs]"
	$(BIN)/mkdocs build --strict

clean: ## remove environment, caches, runs and cards; the store stays
	rm -rf .venv .cache runs cards build *.egg-info .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
