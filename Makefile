# Everything runs in .venv, which is made from the lock file when a target first needs it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON := .venv/bin/python
READY := .venv/.ready
# nbval takes three seconds to load, in each process; only the notebooks need it
PYTEST := $(PYTHON) -m pytest -p no:nbval

# Where Python may not keep what it compiled, each of the hundred processes of the tests compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

# The first of these that really starts (a pyenv shim may not) and is a version that numba knows.
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3 python
IS_SUPPORTED := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

# uv takes a third of pip's time, but knows nothing of pip's settings: where it cannot reach the packages, pip does it.
INSTALL_WITH_UV := awk '/^[a-z]/ {keep = /^uv==/} keep' requirements.lock > .venv/uv.lock \
  && $(PYTHON) -m pip install --quiet --require-hashes --requirement .venv/uv.lock \
  && UV_HTTP_TIMEOUT=120 .venv/bin/uv pip install --quiet --compile-bytecode --python $(PYTHON) --require-hashes --requirement requirements.lock

# Plotly's figure as data for the notebook, and as a picture for pages that cannot run scripts.
PLOTLY_SAVED := plotly_mimetype+png

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(READY) ## make .venv from requirements.lock (the other targets do so by themselves)

$(READY): requirements.lock pyproject.toml
	@set -e; \
	if ! .venv/bin/python -c '$(IS_SUPPORTED)' 2>/dev/null; then \
	  for candidate in $(CANDIDATES); do \
	    if $$candidate -c '$(IS_SUPPORTED)' 2>/dev/null; then chosen=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$chosen" ]; then \
	    echo "no usable Python found (tried: $(CANDIDATES)); need 3.11 to 3.14 with venv" >&2; exit 1; \
	  fi; \
	  echo "making .venv with $$($$chosen --version)"; \
	  rm -rf .venv; $$chosen -m venv .venv; \
	fi
	@echo "installing requirements.lock into .venv (1 to 3 minutes the first time)"
	@$(INSTALL_WITH_UV) || $(PYTHON) -m pip install --quiet --require-hashes --requirement requirements.lock
	@$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: demo
demo: $(READY) ## sessions of a month of flights on Spark, and a report: out/report.html
	@$(PYTHON) -m sessionkit demo --spark --overwrite

# What the tests need beside Python packages: Kafka's jars, the program that asks Kafka Streams, the compiled loops.
.PHONY: tools
tools: $(READY) ## get and build what the tests need (they do so by themselves)
	@$(PYTHON) -m tests.tools

# Each test that starts a Spark runs it for seconds: what a long job gains by costs them more than it spares. Where the
# archive of its classes is missing or does not fit, Java does without and says nothing.
SHORT_SPARK := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:SharedArchiveFile="$(CURDIR)/out/spark.jsa" \
  -Xlog:disable -Xlog:all=error:stderr

# Tests of Spark wait, now and then: four processes keep two cores busy. Pages come after them, two at a time: a browser
# that waits for its turn is taken for one that hangs.

.PHONY: test
test: export SPARK_SUBMIT_OPTS = $(SHORT_SPARK)
test: $(READY) tools ## what a change needs: all but what is slow or thorough, some Spark, a browser, a notebook
	$(PYTEST) -n 3 --dist loadgroup -m "not fault and not browser and (essential or not (slow or thorough or spark))"
	$(PYTEST) -n 2 --dist loadscope -m "browser and essential"
	$(PYTHON) -m pytest --nbval notebooks/02_first_look.ipynb

.PHONY: test-all
test-all: export SPARK_SUBMIT_OPTS = $(SHORT_SPARK)
test-all: $(READY) tools ## all tests, with Spark and a browser, and all notebooks
	$(PYTEST) -n 4 --dist loadgroup -m "not browser and not fault"
	$(MAKE) --no-print-directory test-pages

.PHONY: test-pages
test-pages: export SPARK_SUBMIT_OPTS = $(SHORT_SPARK)
test-pages: $(READY) ## the pages and widgets in a browser, and all notebooks
	$(PYTEST) -n 2 --dist loadscope --no-loadscope-reorder -m browser
	$(PYTHON) -m pytest -n 2 --dist loadfile --nbval notebooks

# Compiled loops run as Python here, where coverage can see them, on few random cases. The floor only rises.
COVERED := windows engine trace aggregations suppression stores
COVERING := $(COVERED:%=tests/unit/%) tests/unit/audits tests/contract tests/property

.PHONY: coverage
coverage: $(READY) ## the floor of branch coverage of what decides, keeps and folds
	SESSIONKIT_INTERPRETED=1 COVERAGE_FILE=out/coverage $(PYTEST) -q -n 2 -m "not slow and not spark and not compiled" $(COVERED:%=--cov=sessionkit/%) \
	  --cov-report=term:skip-covered --cov-fail-under=98 $(COVERING)

# A compiled loop that leaves its array writes into what is beside it; these stop where it does.
.PHONY: bounds
bounds: $(READY) ## the tests of compiled loops, which stop where an index leaves its array
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$(CURDIR)/out/bounds" $(PYTEST) -q -n 2 -m "not slow and not spark and not browser" \
	  $(COVERED:%=tests/unit/%) tests/unit/records tests/unit/views tests/contract tests/property

.PHONY: mutants
mutants: $(READY) ## does a test notice when the code says something else? in pieces that resume: SAMPLE=400
	$(PYTHON) -m tests.mutants --sample $(SAMPLE)

# What is drawn, said and advised has its tests in `make test`.
CHECKED := base windows aggregations suppression trace engine steps records stores deployed exports spark test_*.py

.PHONY: check
check: $(READY) ## format, lint, types, layers, unit tests of what decides and keeps: under a minute
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTEST) -q -n 2 --dist worksteal -m "checked or not (spark or browser or slow or thorough or lengthy)" \
	  tests/types tests/test_layers.py tests/test_public.py $(CHECKED:%=tests/unit/%)

.PHONY: format
format: $(READY) ## format the code and sort the imports
	$(PYTHON) -m ruff check --fix --select I .
	$(PYTHON) -m ruff format .

# How many random cases; with SEED, KINDS or KAFKA only those, else pieces that resume (out/reliability/differential.jsonl).
CASES := 20000

.PHONY: differential
differential: $(READY) ## random cases beside Kafka Streams itself (needs a JDK and Maven): CASES=20000 SEED=1 KINDS=session KAFKA=3.9.2
	$(PYTHON) -m $(if $(SEED)$(KINDS)$(KAFKA),tests.differential $(if $(SEED),--seed $(SEED)) $(if $(KINDS),--kinds $(KINDS)) $(if $(KAFKA),--kafka $(KAFKA)),tests.reliability differential) --cases $(CASES)

.PHONY: reliability
reliability: $(READY) ## long checks in pieces that resume, each until its goal: CHECK=frames CASES=50000 (CHECK=--tell: what was done)
	$(PYTHON) -m tests.reliability $(CHECK) $(if $(filter command line,$(origin CASES)),--cases $(CASES))

.PHONY: versions
versions: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
versions: $(READY) ## what differs, with other versions of Python, pandas, PySpark and Kafka Streams: ONLY=3.12
	$(PYTHON) -m tests.versions $(if $(ONLY),--only $(ONLY))

.PHONY: random
random: $(READY) ## all random cases of the tests, of which `make test-all` draws an eighth
	SESSIONKIT_CASES=all $(PYTEST) -n 2 -m "not spark and not browser" tests/unit tests/contract tests/property tests/conformance tests/differential tests/reliability tests/hostile/test_input.py tests/fault/test_rocksdb_faults.py tests/fault/test_write_faults.py
	SESSIONKIT_CASES=all $(PYTEST) -n 2 tests/page/test_engine.py

KILLS := 30
RESTARTS := 20
SAMPLE := 400

.PHONY: fault
fault: export SPARK_SUBMIT_OPTS = $(SHORT_SPARK)
fault: $(READY) ## a stream on Spark that is killed, and whose disk is full, again and again: KILLS=30; and a cluster
	SESSIONKIT_KILLS=$(KILLS) $(PYTEST) -s tests/fault/test_stream_faults.py tests/cluster

.PHONY: cluster
cluster: $(READY) ## Spark's own cluster on this machine, with sessionkit in an archive, until Ctrl-C; KILLS=30: what is killed on it is lost or doubled?
	@$(PYTHON) -m tests.cluster.kills $(if $(filter command line,$(origin KILLS)),--kills $(KILLS))

.PHONY: kafka
kafka: $(READY) ## a Kafka broker on this machine until Ctrl-C (needs a JDK and Maven)
	@$(PYTHON) -m examples.kafka.broker

.PHONY: restarts
restarts: $(READY) ## Kafka Streams on a broker: 20 times each it is stopped, killed, and its folder is removed: RESTARTS=20
	SESSIONKIT_RESTARTS=$(RESTARTS) $(PYTEST) tests/kafka/test_restarts.py

.PHONY: kafka-demo
kafka-demo: $(READY) ## flights through a topic, Spark and back: live sessions (needs a JDK and Maven)
	@$(PYTHON) -m examples.kafka.demo

.PHONY: streaming
streaming: $(READY) ## on Spark: every window kind, emit strategy, number of partitions and size of micro-batches, view and advice
	SESSIONKIT_PRODUCT=1 $(PYTEST) tests/spark/test_stream_product.py tests/spark/test_spark_times.py tests/spark/test_spark_all_views.py tests/spark/test_spark_advice.py

.PHONY: bench
bench: $(READY) ## speed and memory beside Polars, DuckDB, pandas and Spark, in pieces that resume: benchmarks/RESULTS.md
	$(PYTHON) -m benchmarks --publish

.PHONY: bench-short
bench-short: $(READY) ## the same with a tenth of the records and two rounds: benchmarks/results/RESULTS.md
	$(PYTHON) -m benchmarks --short

.PHONY: lab
lab: $(READY) ## open the tutorials in JupyterLab
	$(PYTHON) -m jupyterlab notebooks

.PHONY: notebooks
notebooks: $(READY) ## run the tutorials anew and save their outputs
	TQDM_DISABLE=1 PLOTLY_RENDERER=$(PLOTLY_SAVED) $(PYTHON) -m jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.store_widget_state=False --ExecutePreprocessor.record_timing=False notebooks/*.ipynb

.PHONY: public-api
public-api: $(READY) ## write tests/public_api.txt anew: the signatures of all public names
	$(PYTHON) -m tests.public_api

.PHONY: pictures
pictures: $(READY) ## every chart on data of eight shapes in a browser: what is wrong with it; the pictures lie in out/pictures
	$(PYTHON) -m tests.pictures.look $(CHARTS)

.PHONY: docs
docs: $(READY) ## write docs/functions.md, and what the code in README and docs prints, anew
	$(PYTHON) -m tests.docs.write

.PHONY: gallery
gallery: $(READY) ## draw the pictures of docs/gallery.md anew, with the code of that page
	$(PYTHON) -m tests.docs.gallery

# The lock has one set of them; `make versions` runs the tests with others.
LOCKED := 'pandas==2.3.*' 'pyspark==4.2.*'

.PHONY: lock
lock: ## make requirements.lock anew from pyproject.toml (needs a .venv)
	$(PYTHON) -m uv pip compile pyproject.toml --all-extras --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --quiet --upgrade --constraint <(printf '%s\n' $(LOCKED)) \
	  --custom-compile-command "make lock" --output-file requirements.lock

.PHONY: clean
clean: ## remove .venv, out/ and every cache
	rm -rf .venv out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
