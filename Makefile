# Two commands do everything: `make run` shows it work, `make test` proves it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
IN_VENV := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
WARMED := $(VENV)/.warmed
STUBS := .
SIDE_BY_SIDE := -n auto --maxprocesses 4 --max-worker-restart 0
SOAK ?= 1800
BUF := 1.74.0
CHART := deploy/helm/pathsieve
MANIFESTS := deploy/kubernetes/pathsieve.yaml
HELM_TEMPLATE := $(VENV)/bin/helm template pathsieve $(CHART) --namespace pathsieve
SOURCES := $(shell find sievecore xpathfilter boolmatch server/log/segments.py server/rpc/packed.py -name '*.py')

# The first Python on PATH that really starts, is new enough and can make environments. Shims of version
# managers may be on PATH without a version behind them, so each candidate is tried by running it.
# `make PYTHON=/path/to/python env` decides otherwise.
PYTHON ?=
define FIND_PYTHON
old=""; bare=""; \
for name in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3 python; do \
    for candidate in $$(type -ap "$$name"); do \
        "$$candidate" -c "" 2>/dev/null || continue; \
        "$$candidate" -c "import sys; sys.exit(sys.version_info < (3, 11))" || { old="$$candidate"; continue; }; \
        "$$candidate" -c "import ensurepip, venv" 2>/dev/null || { bare="$$candidate"; continue; }; \
        python="$$candidate"; break 2; \
    done; \
done; \
if [[ -z "$${python:-}" && -n "$$bare" ]]; then \
    echo "$$bare cannot make a virtual environment: its modules venv and ensurepip are missing." >&2; \
    echo "Install them (Debian, Ubuntu: apt install python3-venv) and run make again." >&2; exit 1; \
elif [[ -z "$${python:-}" ]]; then \
    echo "PathSieve needs Python 3.11 or newer; found $${old:+only the older }$${old:-none} on PATH." >&2; \
    echo "Install one, or name it: make PYTHON=/path/to/python3.12 env" >&2; exit 1; \
fi
endef

.PHONY: help env run taste test soak test-bounds check check-deploy manifests proto format bench bench-bool bench-server bench-cluster bench-spark spark-example bench-10m clean

help: ## list these targets
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/  make \1 \t\2/p' $(MAKEFILE_LIST) | expand -t 22

env: $(WARMED) ## make the environment in .venv, install everything, compile the kernels

run: env ## start a server with its defaults and have a first taste of it; it serves until Ctrl-C
	@$(IN_VENV) -m pathsieve.taste

taste: env ## the XPath engine alone: forty thousand subscriptions, who wants what, why, and how fast
	@$(IN_VENV) -m xpathfilter.taste

test: env ## the whole suite
	@echo "Running the tests: quick ones, then those with servers, clusters and Spark; some side by side"
	@$(IN_VENV) -m pytest $(SIDE_BY_SIDE) -m "not slow and not spark"
	@$(IN_VENV) -m pytest $(SIDE_BY_SIDE) -m "slow or spark"

soak: env ## kill a server sixty times, and ill-treat a cluster for SOAK seconds (1800); judge what was seen
	@PATHSIEVE_TEST_KILLS=60 $(IN_VENV) -m pytest -s tests/integration/test_server_crashes.py
	@PATHSIEVE_TEST_SOAK=$(SOAK) $(IN_VENV) -m pytest -s tests/integration/test_cluster_nemesis.py

test-bounds: env ## the tests marked `kernels` once more, with every array access checked
	@echo "Running the tests of kernels with NUMBA_BOUNDSCHECK=1"
	@NUMBA_BOUNDSCHECK=1 $(IN_VENV) -m pytest $(SIDE_BY_SIDE) -m kernels

check: env check-deploy ## lint, format and types, of Python, of the wire contract and of deploy/
	@echo "Checking lint, format and types"
	@$(IN_VENV) -m ruff check .
	@$(IN_VENV) -m ruff format --check .
	@$(IN_VENV) -m mypy
	@if command -v npx > /dev/null; then npx --yes @bufbuild/buf@$(BUF) lint proto; \
	else echo "Left out: buf's lint of proto/, which needs npx (Node.js)"; fi

check-deploy: env ## lint and schemas of what is in deploy/
	@echo "Checking deploy/"
	@$(VENV)/bin/yamllint --strict --config-file deploy/.yamllint deploy
	@$(VENV)/bin/hadolint deploy/Dockerfile
	@$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.compose-spec deploy/compose.yaml
	@$(VENV)/bin/check-jsonschema --quiet --check-metaschema $(CHART)/values.schema.json
	@$(VENV)/bin/kubernetes-validate --strict --quiet $(MANIFESTS)
	@if [[ -x $(VENV)/bin/helm ]]; then $(VENV)/bin/helm lint --strict --quiet $(CHART); \
	else echo "Left out: helm's lint of the chart; its wheel is for Linux on x86-64"; fi
	@export PATH="$$PATH:$(CURDIR)/build/tools/usr/bin"; cd deploy/prometheus; \
	if command -v promtool > /dev/null; then \
		promtool check config prometheus.yml > /dev/null; \
		promtool test rules alerts_test.yml > /dev/null; \
	else echo "Left out: the tests of the alerts, which need promtool (Debian: prometheus)"; fi
	@if command -v systemd-analyze > /dev/null; then mkdir -p build/units; \
		sed 's|^ExecStart=/opt/pathsieve/bin/pathsieve|ExecStart=/bin/true|' deploy/systemd/pathsieve.service > build/units/pathsieve.service; \
		systemd-analyze verify build/units/pathsieve.service; \
		systemd-analyze security --offline=true --threshold=20 build/units/pathsieve.service > /dev/null; \
	else echo "Left out: the check of the unit, which needs systemd-analyze (Debian: systemd)"; fi

manifests: env ## render the chart into deploy/kubernetes again
	@$(HELM_TEMPLATE) > $(MANIFESTS)

proto: env ## generate pathsieve/v1 from proto/ again
	@export PATH="$(VENV)/bin:$$PATH"; protoc="$(IN_VENV) -m grpc_tools.protoc --proto_path=proto"; \
	$$protoc --python_out=$(STUBS) --mypy_out=quiet:$(STUBS) proto/pathsieve/v1/*.proto; \
	$$protoc --grpc_python_out=$(STUBS) --mypy_grpc_out=quiet:$(STUBS) proto/pathsieve/v1/*_service.proto

format: env ## rewrite the code in the project's format
	@$(IN_VENV) -m ruff check --fix .
	@$(IN_VENV) -m ruff format .

bench: env ## measure everything, with checked answers
	@$(IN_VENV) -m benchmarks --plot build/benchmark.svg

bench-bool: env ## measure the Boolean engine alone
	@$(IN_VENV) -m benchmarks --engine boolean --json build/bench-bool.json

bench-server: env ## measure the server alone, over gRPC
	@$(IN_VENV) -m benchmarks --engine server --json build/bench-server.json

bench-cluster: env ## measure two replicas against one
	@$(IN_VENV) -m benchmarks --engine cluster --json build/bench-cluster.json

bench-spark: env ## measure Spark alone, its matching and its sink (needs Java 17)
	@$(IN_VENV) -m benchmarks --engine spark --json build/bench-spark.json

spark-example: env ## XML files to a server through Spark, to a subscriber; and the same matched inside Spark
	@$(IN_VENV) examples/spark_pipeline.py

bench-10m: env ## measure with ten million subscriptions (needs time and memory)
	@$(IN_VENV) -m benchmarks --ten-million --json build/bench-10m.json

clean: ## delete the environment and everything generated, compiled kernels included
	@echo "Deleting $(VENV), caches and build output"
	@rm -rf $(VENV) build dist ./*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(IN_VENV):
	@$(FIND_PYTHON); \
	echo "Making the environment $(VENV) with $$python ($$($$python --version))"; \
	$$python -m venv --clear $(VENV)

$(INSTALLED): pyproject.toml | $(IN_VENV)
	@echo "Installing pathsieve and its tools into $(VENV)"
	@$(IN_VENV) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --config-settings editable_mode=compat
	@touch $@

$(WARMED): $(INSTALLED) $(SOURCES)
	@echo "Compiling the kernels (kept for later runs)"
	@$(IN_VENV) -c "from server.warmup import warm_up; warm_up()"
	@touch $@
