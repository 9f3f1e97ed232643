# The two that matter: `make demo` and `make test`. Only Python 3.11+ and make are needed; the rest comes from the lock.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := base/src sdk/src plugins/marketplace-offers/src plugins/merchant-feed/src plugins/rendered-shop/src plugins/schemaorg/src plugins/shopify/src plugins/woocommerce/src resolver/src product/src examples/src
STATE ?=
ONCE ?=
JSON ?=
ARGS ?=
SEED ?=
WORKERS ?= 2
BENCH ?= collect reread rebuild

.DEFAULT_GOAL := help
.PHONY: help venv demo test soak mutants bench adapters check lint types imports proto-lint proto-breaking drift migrations lock-check \
	format proto docs docs-drift lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: ## make .venv from requirements.lock (does nothing when it is right)
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with make PYTHON=...")'
	@$(PYTHON) tools/make_venv.py

demo: venv ## the whole walk on an example street; ONCE=1 ends after the table, JSON=1, STATE=folder
	@$(BIN)/prw demo $(if $(ONCE),--once) $(if $(JSON),--json) $(if $(STATE),--state '$(STATE)') $(ARGS)

test: venv ## all tests; ARGS="tests/sdk -k name" for some of them
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

mutants: venv ## one rule broken at a time in a copy of the tree: its tests must go red; ARGS=pruner for some of them
	@$(BIN)/python -m tests.mutants.run $(ARGS)

soak: venv ## the long tests: kills at every point, and at random; SEED=n chooses the same again
	@seed='$(SEED)'; seed=$${seed:-$$(date +%s)}; echo "soak: SEED=$$seed"; \
		PRW_SEED=$$seed $(BIN)/python -m pytest -m soak -n $(WORKERS) $(ARGS)

adapters: venv ## the conformance suite on every adapter that is installed here
	@$(BIN)/prw adapter check --all $(ARGS)

bench: venv ## what is claimed about speed; each ends with its ratios. BENCH="collect reread rebuild", ARGS=--quick
	@for bench in $(BENCH); do $(BIN)/python -m bench.$$bench $(ARGS) || exit 1; done

check: lint types imports proto-lint proto-breaking drift docs-drift migrations lock-check ## everything that is checked without running: all below

lint: venv ## style and common mistakes
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo 'not formatted; run: make format'; $(BIN)/ruff format --check .; exit 1; }
	@echo 'lint: clean'

types: venv ## mypy, strict
	@$(BIN)/mypy proto/src/prw $(SOURCES) proto/generate.py tests tools $(wildcard bench)

imports: venv ## who may import whom
	@$(BIN)/lint-imports .importlinter --cache-dir .cache/import-linter

proto-lint: venv ## the contract's style
	@cd proto && ../$(BIN)/buf lint
	@echo 'proto-lint: clean'

proto-breaking: venv ## what the contract promises on main still holds
	@sh tools/proto_breaking.sh

drift: venv ## generated code is what the contract gives
	@$(BIN)/python proto/generate.py --check

docs-drift: venv ## the error pages are what the table gives
	@$(BIN)/python tools/make_error_pages.py --check

migrations: venv ## migrations that would lock or break a running system
	@sh tools/lint_migrations.sh

lock-check: venv ## the lock holds every requirement and no address
	@$(BIN)/python tools/make_lock.py --check

format: venv ## rewrite in the agreed style
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

proto: venv ## write the generated code anew
	@$(BIN)/python proto/generate.py

docs: venv ## write the pages of the error codes anew
	@$(BIN)/python tools/make_error_pages.py

lock: venv ## write requirements.lock anew; ARGS=--upgrade takes newer versions
	@$(BIN)/python tools/make_lock.py $(ARGS)

clean: ## remove what was made here: environment, caches and the demo's state
	@rm -rf .venv .venv.lock .prw .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis htmlcov .coverage .coverage.*
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
