# `make` lists the targets. Every target works from a clean clone.

PYTHON ?= python3
VENV := .venv/bin
CELERY := $(VENV)/celery --quiet --app memstudio.celery
# Static checks read the settings, which want a home: not the person's own.
SCRATCH := MEMORY_STUDIO_HOME=$(CURDIR)/.venv/check-home

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run worker beat vaultd broker test test-servers check lint types imports templates migrations
.PHONY: format cases behaviours bench fuzz chaos messages python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: python ## Make .venv and install what the product needs
	@$(PYTHON) -m memstudio.bootstrap setup

run: setup ## Start the studio (options: make run ARGS="--port 9000")
	@exec $(VENV)/python manage.py studio $(ARGS)

worker: setup broker ## Start a worker of its own (needs REDIS_URL or CELERY_BROKER_URL)
	@exec $(CELERY) worker --queues interactive,bulk \
	  --without-gossip --without-mingle --hostname "$$$$@%h" $(ARGS)

beat: setup broker ## Start what calls the workers' rounds; one is enough
	@exec $(CELERY) beat $(ARGS)

vaultd: setup ## Keep the keys of sealed vaults for several webs (needs DATABASE_URL)
	@exec $(VENV)/python manage.py vaultd $(ARGS)

broker:
	@test -n "$$REDIS_URL$$REDIS_URL_FILE$$CELERY_BROKER_URL$$CELERY_BROKER_URL_FILE" || { \
	  echo "memory studio: set REDIS_URL; without it the studio runs its jobs itself." >&2; exit 2; }

test: setup-dev ## Run every test, on servers and in the browser too (options: make test ARGS="-k word")
	@$(if $(ARGS),,TEST_STACK=servers $(VENV)/python -m pytest -m "not browser" memory memstudio)
	@$(VENV)/python -m pytest $(ARGS)

test-servers: setup-dev ## Run the API and job suites on Postgres and Redis
	@TEST_STACK=servers $(VENV)/python -m pytest -m "not browser" $(if $(ARGS),$(ARGS),memory memstudio)

check: lint types imports templates migrations ## Static checks (all of them: make -k check)

lint: setup-dev
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .

types: setup-dev
	$(SCRATCH) $(VENV)/mypy

imports: setup-dev
	$(VENV)/lint-imports --no-cache --no-logo

templates: setup-dev
	$(VENV)/djlint templates --check --quiet
	$(VENV)/djlint templates --lint --quiet

migrations: setup-dev
	$(SCRATCH) $(VENV)/python manage.py makemigrations --check --dry-run

format: setup-dev ## Put code and templates into shape
	$(VENV)/ruff check --fix-only --quiet .
	$(VENV)/ruff format .
	-$(VENV)/djlint templates --reformat --quiet

cases: setup ## Run a case file: make cases FILE=path/to/cases.json
	@test -n "$(FILE)" || { echo "memory studio: name a case file: make cases FILE=..." >&2; exit 2; }
	@$(SCRATCH) $(VENV)/python manage.py cases "$(FILE)" $(ARGS)

bench: setup-dev ## Measure speed beside other systems
	@$(VENV)/python -m benchmarks $(ARGS)

behaviours: setup ## List described cases that nothing holds: make behaviours FILE=path/to/cases.json
	@test -n "$(FILE)" || { echo "memory studio: name a case file: make behaviours FILE=..." >&2; exit 2; }
	@$(SCRATCH) $(VENV)/python manage.py behaviours "$(FILE)" $(ARGS)

fuzz: setup-dev ## Ten minutes of schemathesis against a studio (options: make fuzz ARGS="--minutes 1")
	@$(VENV)/python -m benchmarks.contract $(ARGS)

chaos: setup-dev ## Kill every process of an installation in turn while it is loaded
	@$(VENV)/python -m benchmarks.chaos $(ARGS)

messages: setup-dev ## Bring the Japanese and Chinese catalogues up to date
	@$(SCRATCH) $(VENV)/python manage.py messages

setup-dev: python
	@$(PYTHON) -m memstudio.bootstrap setup --dev

python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "memory studio: there is no $(PYTHON) here; install Python 3.11 or newer." >&2; exit 1; }
