# A thin wrapper: every target is one `python -m …` or `pulumi …` call that works by itself and carries its own exit code.
SHELL := /bin/bash
STACK ?= dev
PY := .venv/bin/python
export STACK ARGS ID OUT ONLY REGISTRY DRY_RUN

.PHONY: up down test lint env

env: .venv/ready

.venv/ready: requirements.txt requirements-dev.txt .ci/environment
	@.ci/environment

lint: env
	@.venv/bin/ruff check -q . && .venv/bin/ruff format -q --check .
	@.venv/bin/basedpyright --level error
	@PYTHONPATH=. .venv/bin/lint-imports --no-cache > /tmp/moonstack-imports.$$$$ || { cat /tmp/moonstack-imports.$$$$; exit 1; }; rm -f /tmp/moonstack-imports.$$$$

test: env
	@$(PY) -m pytest -q tests/unit tests/policies

up down status: env
	@$(PY) -m local $@
