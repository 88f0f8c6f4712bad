# A thin wrapper: every target is one `python -m …` call that works by itself and carries its own exit code.
SHELL := /bin/bash
STACK ?= dev
PY := .venv/bin/python
LOCAL := $(PY) -m local

.PHONY: up down status test test-apart test-cluster lint env preview smoke doctor pulse drill audit render rehearse images rotate bench

up: env
	@$(LOCAL) deploy --stack $(STACK)

down: env
	@$(LOCAL) down

status: env
	@$(LOCAL) status

test: env
	@$(LOCAL) tools
ifdef ARGS
	@$(PY) -m pytest -q $(ARGS)
else
	@$(MAKE) --no-print-directory --keep-going --jobs 2 test-apart test-cluster
endif

# Beside those of the local cluster, which mostly wait; at low priority where only cores are wanted, and shown as a whole when it is over.
test-apart: env
	@unset MAKEFLAGS MFLAGS MAKELEVEL; said=$$(mktemp); trap 'rm -f $$said' EXIT; code=0; \
	echo "tests that need no cluster run beside those of the local one"; \
	nice $(PY) -m pytest -q -n 2 --dist worksteal tests/unit tests/policies > $$said 2>&1 || code=$$?; \
	$(PY) -m pytest -q tests/envoy >> $$said 2>&1 || code=$$?; \
	nice $(PY) -m pytest -q --durations 10 -m "not cluster" tests/real >> $$said 2>&1 || code=$$?; \
	cat $$said; exit $$code

test-cluster: env
	@unset MAKEFLAGS MFLAGS MAKELEVEL; $(PY) -m pytest -q --durations 20 -m cluster tests/real

lint: env
	@.venv/bin/ruff check -q .
	@.venv/bin/ruff format -q --check .
	@.venv/bin/basedpyright --level error
	@PYTHONPATH=. .venv/bin/lint-imports --no-cache

preview: env
	@$(LOCAL) preview --stack $(STACK) $(ARGS)

render: env
	@$(LOCAL) render --stack $(STACK) $(if $(OUT),--out $(OUT)) $(ARGS)

images: env
	@$(LOCAL) images $(ARGS)

rehearse: env
	@$(LOCAL) rehearse --stack $(STACK) $(ARGS)

smoke: env
	@$(PY) -m smoke run --stack $(STACK) $(ARGS)

doctor pulse drill: env
	@$(PY) -m smoke $@ --stack $(STACK) $(if $(ONLY),--only $(ONLY)) $(ARGS)

audit: env
	@$(PY) -m policies audit --stack $(STACK) $(ARGS)

rotate: env
	@$(PY) -m rotation --stack $(STACK) $(if $(ID),--id $(ID)) $(ARGS)

bench: env
	@$(PY) -m bench $(ARGS)

env: .venv/ready

.venv/ready: requirements.txt requirements-dev.txt .ci/environment
	@.ci/environment
