# `make` lists the targets. Every target works from a clean clone.

PYTHON ?= python3
VENV := .venv/bin
# Static checks read the settings, which want a home: not the person's own.
SCRATCH := MEMORY_STUDIO_HOME=$(CURDIR)/.venv/check-home

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run worker test check lint types imports templates migrations
.PHONY: format cases bench messages python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: python ## Make .venv and install what the product needs
	@$(PYTHON) -m memstudio.bootstrap setup

run: setup ## Start the studio (options: make run ARGS="--port 9000")
	@exec $(VENV)/python manage.py studio $(ARGS)

worker: setup ## Start a worker of its own (needs CELERY_BROKER_URL)
	@test -n "$$CELERY_BROKER_URL$$CELERY_BROKER_URL_FILE" || { \
	  echo "memory studio: set CELERY_BROKER_URL; without it the studio runs its jobs itself." >&2; exit 2; }
	@exec $(VENV)/celery --app memstudio.celery worker --beat --queues interactive,bulk $(ARGS)

test: setup-dev ## Run every test, in the browser too (options: make test ARGS="-k word")
	@$(VENV)/python -m pytest $(ARGS)

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

messages: setup-dev ## Bring the Japanese and Chinese catalogues up to date
	@$(SCRATCH) $(VENV)/python manage.py messages

setup-dev: python
	@$(PYTHON) -m memstudio.bootstrap setup --dev

python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "memory studio: there is no $(PYTHON) here; install Python 3.11 or newer." >&2; exit 1; }
