# `make demo` and `make test` are all that a newcomer needs; each makes what it needs first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-long test-all test-fast test-failover test-patroni test-coverage test-clients test-schemathesis test-console test-wheel test-image screenshots check bench format requirements release docs migration clean

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## Fill a demo database, print requests to try, and serve it
	@$(BIN)/normata demo

# Without bytecode, each process would compile all tests anew, which takes it longer than a hundred of them.
test: $(VENV)/.installed-dev ## Run the tests, but for the long ones
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m "not long"

test-long: $(VENV)/.installed-dev ## Run the long tests: upgrades from old versions, races, random input, published catalogs
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m long

test-all: $(VENV)/.installed-dev ## Run the tests, the long ones too, which takes less than both of these
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

test-fast: $(VENV)/.installed-dev ## Run the tests of what was changed, or of one feature, in a minute: make test-fast feature=coverage
	@$(BIN)/python -m tests.fast $(feature)

test-failover: $(VENV)/.installed-dev ## Kill the primary of a PostgreSQL cluster under load, and look that nothing is lost
	@$(BIN)/python -m pytest tests/failover -n0

test-patroni: $(VENV)/.installed-dev $(VENV)-patroni/.installed ## Break a cluster under Patroni in every way, for an hour: make test-patroni only="kill-patroni and hosts"
	@NORMATA_TEST_PATRONI=$(VENV)-patroni/bin $(BIN)/python -m pytest tests/patroni -n0 $(if $(only),-k "$(only)")

test-coverage: $(VENV)/.installed-dev ## Race writers over all published catalogs, and compare coverage with a brute force
	@NORMATA_TEST_COVERAGE=all $(BIN)/python -m pytest -n0 tests/coverage/test_published_at_once.py

test-clients: $(VENV)/.installed-dev $(VENV)-clients/.installed ## Generate a client from OpenAPI, and call every operation with it
	@NORMATA_TEST_CLIENTS=$(VENV)-clients/bin $(BIN)/python -m pytest tests/clients -n0

test-schemathesis: $(VENV)/.installed-dev ## Send every operation whatever OpenAPI allows and forbids, for some minutes
	@NORMATA_TEST_SCHEMATHESIS=all $(BIN)/python -m pytest tests/core/http/test_schemathesis.py -n2

test-console: $(VENV)/.installed-browser ## Walk through the console in the system's Chromium
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest tests/browser -n2 --dist worksteal

test-wheel: $(VENV)/.installed-dev ## Install the wheel into an empty environment, and open the console there
	@$(BIN)/python -m pytest tests/wheel -n0

test-image: $(VENV)/.installed-dev ## Build the image of a release and run it, where there is podman or buildah
	@$(BIN)/python -m pytest tests/wheel/test_image.py -n0 -rs

screenshots: $(VENV)/.installed-browser ## Photograph every page into build/screenshots, and the telling ones into docs/images
	@$(BIN)/python -m tests.browser.screenshots

# The browser tests are typed too, so mypy needs what they import.
check: $(VENV)/.installed-browser ## Check format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.installed-dev ## Measure speed and memory, which takes half an hour, and write docs/performance.md
	@$(BIN)/python -m benchmarks.speed --write

format: $(VENV)/.installed-dev ## Format the code and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-dev ## Write docs/api-surface.txt and docs/permissions.md anew, and docs/openapi.json, which is not committed
	@$(BIN)/python -m normata.cli.new_docs docs

migration: $(VENV)/.installed-dev ## Write a migration for what the tables have changed: make migration name="add exemptions"
	@test -n "$(name)" || { echo 'Say what it does: make migration name="add exemptions"' >&2; exit 2; }
	@$(BIN)/python -m normata.cli.new_migration "$(name)"
	@$(BIN)/ruff format --quiet src/normata/core/schema/migrations/versions
	@$(BIN)/ruff check --quiet --fix src/normata/core/schema/migrations/versions

requirements: $(VENV)/.installed-dev ## Pin the newest dependencies anew
	@mkdir -p build
	@$(BIN)/uv pip compile --quiet --upgrade $(COMPILE) --extra mcp --extra oscal --extra otel --extra pdf --extra s3 pyproject.toml requirements/build.in -o build/requirements.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt pyproject.toml -o requirements/run.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt --extra mcp pyproject.toml -o requirements/mcp.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt --extra oscal pyproject.toml -o requirements/oscal.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt --extra otel pyproject.toml -o requirements/otel.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt --extra pdf pyproject.toml -o requirements/pdf.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt --extra s3 pyproject.toml -o requirements/s3.txt
	@$(BIN)/uv pip compile --quiet $(COMPILE) -c build/requirements.txt requirements/build.in -o requirements/build.txt
	@$(BIN)/uv pip compile --quiet --upgrade $(COMPILE) --extra mcp --extra oscal --extra otel --extra pdf --extra s3 --group dev -c build/requirements.txt pyproject.toml requirements/build.in -o requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --upgrade $(COMPILE) requirements/clients.in -o requirements/clients.txt
	@$(BIN)/uv pip compile --quiet --upgrade $(COMPILE) requirements/patroni.in -o requirements/patroni.txt
	@$(BIN)/uv pip compile --quiet --upgrade $(COMPILE) -c requirements/dev.txt requirements/browser.in -o requirements/browser.txt

# run.txt is what Normata needs; mcp.txt, oscal.txt, otel.txt, pdf.txt and s3.txt are the same with an extra. All pin the same versions.
COMPILE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

release: $(VENV)/.installed ## Make a release in dist: sdist, wheel, bill of materials and checksums
	@$(BIN)/python -m release

clean: ## Remove what was made
	@rm -rf $(VENV) $(VENV)-clients $(VENV)-patroni build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis

# Everything is pinned with its hash, the build tools too, so that two machines install the same bytes.
# The files name all that is needed, so pip looks for nothing else (--no-deps): where a dependency asks for a package with an
# extra, it would take the newest one, and refuse it once there is a newer one than the pinned.
RUN := requirements/run.txt requirements/mcp.txt requirements/oscal.txt requirements/otel.txt requirements/pdf.txt requirements/s3.txt requirements/build.txt
$(VENV)/.installed: $(RUN) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Normata needs Python 3.11 or later; name one with make PYTHON=…")'
	@echo "Installing Normata into $(VENV) (a minute, once)…"
	@$(PYTHON) -m venv $(VENV)
	@for file in $(RUN); do $(PIP_INSTALL) --no-deps --require-hashes -r $$file || exit; done
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements/dev.txt
	@echo "Installing what the tests need…"
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

# What drives the browser; the browser is the system's.
$(VENV)/.installed-browser: $(VENV)/.installed-dev requirements/browser.txt
	@echo "Installing what drives the browser…"
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements/browser.txt
	@touch $@

# Apart, since the generator needs other versions of what Normata needs.
$(VENV)-clients/.installed: requirements/clients.txt
	@echo "Installing the generator of clients…"
	@$(PYTHON) -m venv $(VENV)-clients
	@$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/clients.txt
	@touch $@

# The servers' own user runs Patroni, and may not enter the folder of everybody's Python. So this takes the system's.
PATRONI_PYTHON ?= /usr/bin/python3
$(VENV)-patroni/.installed: requirements/patroni.txt
	@echo "Installing Patroni…"
	@$(PATRONI_PYTHON) -m venv $(VENV)-patroni
	@$(VENV)-patroni/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/patroni.txt
	@touch $@
