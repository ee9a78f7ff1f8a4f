# Needs Python 3.11 or newer, make and git; everything else goes into .venv at the pinned versions.

PYTHON ?= python3
# twice the two cores that the times of the tests are for: most of what they take is waiting for processes
WORKERS ?= 4

VENV := .venv
BIN := $(VENV)/bin
# not compiled: what is never imported would take half of the time of an installation
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

# What one process of the tests has compiled serves the others, whatever the user's wish: it is a third of their start.
unexport PYTHONDONTWRITEBYTECODE

# New examples of the properties, more of them: `make test` takes the same ones each time.
PROPERTIES := tests/govern tests/forecast tests/redaction tests/platform tests/ledger tests/items tests/schedule \
  tests/bundle tests/check tests/execute tests/jobs tests/manifest tests/report tests/sandbox/git tests/store

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-browser endpoints check formatted linted typed layered declared used collected
.PHONY: docs man bench compiled compiled-test soak coverage mutation format reference constraints clean

help:
	@echo 'make demo         a sandbox, four manifests against it, their reports (under a minute)'
	@echo 'make test         check, then the quick tests and the short forms of the main promises'
	@echo 'make test-slow    the tests that take seconds, and those in a real browser; no test is in both'
	@echo 'make test-browser  the tests in a real browser alone; `make test-slow` runs them too'
	@echo 'make endpoints    the 45 endpoints, and how many tests each has; fails where one has none'
	@echo 'make check        format, lint, types, import contracts, dependencies, unused code'
	@echo 'make coverage     how much of the code the tests reach; the pure core must be reached in full'
	@echo 'make mutation     breaks the pure core in every small way; at least 90% of it must be noticed'
	@echo 'make soak         the tests that take hours'
	@echo 'make bench        the benchmarks'
	@echo 'make compiled     what a compiled wheel installs, in build/compiled; needs a C compiler'
	@echo 'make compiled-test  the tests again, with what is compiled'
	@echo 'make format       put every file in the common format'
	@echo 'make docs         the pages of docs/ as a site, in build/docs; every link is checked'
	@echo 'make man          manual pages of the commands, in build/man'
	@echo 'make reference    write docs/operations-reference.md and docs/schemas/ from the code'
	@echo 'make constraints  pin what a fresh environment installs today'
	@echo 'make clean        remove the environment, caches and demo runs'

demo: $(VENV)/.runtime
	$(BIN)/bulk demo

# Types take one core as long as all else takes the other.
test: $(VENV)/.development
	$(MAKE) --jobs 2 check collected
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --endpoints --durations 20 \
	    -m 'not slow and not soak and not browser'

# What takes seconds (tests/slow/marks.py), which continuous integration runs after `make test`. The browser's tests wait
# for half of their time: the others go beside them, and are nice, because pages have to be quick. What the browser's
# found is said at the end.
test-slow: $(VENV)/.development $(VENV)/.browser
	@mkdir -p build
	@$(BIN)/python -m tests.browser > build/browser.txt 2>&1 & browser=$$!; \
	nice $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --durations 20 -m 'slow and not soak'; \
	all=$$?; wait $$browser; browser=$$?; cat build/browser.txt; test $$all -eq 0 && exit $$browser; exit $$all

# Finds a browser, or says how many tests did not run for want of one.
test-browser: $(VENV)/.browser
	@$(BIN)/python -m tests.browser

endpoints: $(VENV)/.development
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --endpoints -q tests/sandbox tests/clients tests/jobs

check: formatted linted typed layered declared used

formatted: $(VENV)/.development
	$(BIN)/ruff format --check

linted: $(VENV)/.development
	$(BIN)/ruff check

typed: $(VENV)/.development
	$(BIN)/mypy

layered: $(VENV)/.development
	$(BIN)/lint-imports

declared: $(VENV)/.development
	$(BIN)/deptry .

used: $(VENV)/.development
	$(BIN)/vulture

# Compiles the tests once, not once for each worker. What is wrong with them is said where they are run.
collected: $(VENV)/.development
	@$(BIN)/python -m pytest --collect-only --quiet > /dev/null 2>&1 || true

# Where nothing can be compiled, what is interpreted is measured, and the table says so.
bench: $(VENV)/.development
	@$(MAKE) compiled || echo 'There is no C compiler that works: what is measured is not compiled.'
	$(BIN)/python -m benchmarks

compiled: build/compiled/.ready

build/compiled/.ready: $(VENV)/.development hatch_build.py $(shell find bulk jobs -name '*.py')
	rm -rf build/compiled
	BULK_COMPILE=1 $(PIP) --no-deps --no-build-isolation --target build/compiled .
	@touch $@

# A copy of the working copy with what is compiled beside the sources.
compiled-test: build/compiled/.ready
	rm -rf build/tested && mkdir build/tested
	tar -cf - --exclude './.*' --exclude ./build --exclude ./runs --exclude __pycache__ . .ci .github .gitignore .dockerignore | tar -xf - -C build/tested
	cd build/compiled && find . -name '*.so' | tar -cf - -T - | tar -xf - -C ../tested
	cd build/tested && ../../$(BIN)/python -c 'from bulk.govern import governor; assert governor.__file__.endswith(".so")'
	cd build/tested && ../../$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m 'not soak and not browser and not interpreted'

# All of it at least 95%, branches counted; the pure core 100%.
coverage: $(VENV)/.development
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadscope --timeout 300
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under 95
	$(BIN)/coverage report --fail-under 100 --include "$$($(BIN)/python -m tests.mutation.core)"

mutation: $(VENV)/.development
	$(BIN)/python -m tests.mutation --jobs $(WORKERS)

soak: $(VENV)/.development
	$(BIN)/python -m pytest -m soak --timeout 7200
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile explore --timeout 7200 $(PROPERTIES)

format: $(VENV)/.development
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Installed anew, so that an operation that pyproject.toml just got is known.
reference: $(VENV)/.development
	$(PIP) --no-deps --editable .
	$(BIN)/bulk operations --markdown > docs/operations-reference.md.new
	mv docs/operations-reference.md.new docs/operations-reference.md
	$(BIN)/python -m bulk.cli.catalog.json_schemas docs/schemas

docs: $(VENV)/.documentation
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

man: $(VENV)/.documentation
	@mkdir -p build/man
	@$(BIN)/python -c 'import bulk, click_man.core as man; from bulk.cli.app import commands; \
	  man.write_man_pages("bulk", commands, version=bulk.__version__, target_dir="build/man")'
	@$(BIN)/python -m bulk.cli.catalog.exit_status >> build/man/bulk.1

constraints:
	rm -rf $(VENV)-pins && $(PYTHON) -m venv $(VENV)-pins
	$(VENV)-pins/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[speed,app,cluster,audit,notify,dev,browser,docs]'
	{ echo '# Every version that is installed, direct or not. Written by `make constraints`.'; \
	  $(VENV)-pins/bin/python -m pip list --format=freeze --exclude-editable --exclude pip; } > constraints.txt
	rm -rf $(VENV)-pins

clean:
	rm -rf $(VENV) $(VENV)-pins .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find bulk jobs tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# pip before 23.3 compares every file of an index with every tag of the platform: half of the time of an installation.
$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Bulk needs Python 3.11 or newer: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=23.3'

# Where an accelerator can't be installed, all the same works without it, only slower.
$(VENV)/.runtime: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) --editable '.[speed]' || $(PIP) --editable .
	@touch $@

# Where they can't be installed, the browser tests say that they did not run.
$(VENV)/.browser: $(VENV)/.development
	-$(PIP) --editable '.[browser]'
	@touch $@

$(VENV)/.development: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) --editable '.[speed,app,cluster,audit,notify,dev]' || $(PIP) --editable '.[app,cluster,audit,notify,dev]'
	@touch $(VENV)/.runtime $@

$(VENV)/.documentation: $(VENV)/.development
	$(PIP) --editable '.[docs]'
	@touch $@
