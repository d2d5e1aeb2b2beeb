# One command each; every one of them installs what it needs on its first run. `make help` lists them.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
# The same environment with no more in it than what runs: a small part to fetch, and what the demo waits for.
RUNS := $(VENV)/.runs
TOOLS := .venv-tools
TOOLS_READY := $(TOOLS)/.installed

# KEEP=1 keeps the servers' data and logs when a demo or test has ended.
export KEEP

# Checks start many processes of this project. Without bytecode on disk, each of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help demo demo-history demo-fleet soak test mapped nightly flaky slow-motion release-check versions lint docs prose unit fuzz mutants spark real e2e chart try crds cli runbook sql bench bench-designs bench-requests bench-operator bench-first-move bench-polling bench-stops bench-pipeline \
	bench-fleet bench-plan build images release lock sbom audit clean

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

KRAFT ?=

demo: $(RUNS) ## Show it all on this machine: six brokers, a Kubernetes API server, failures (KEEP=1 keeps the data; KRAFT=1: Kafka 4, no ZooKeeper)
	$(BIN)/python -m devcluster.demo $(if $(KRAFT),--kraft)

demo-history: $(READY) ## Give a small cluster a bad day, and open the report of it (OUTPUT=bad-day, a folder)
	$(BIN)/python -m devcluster.bad_day --output $(OUTPUT)

demo-fleet: $(READY) ## Give 20 small real clusters, five at a time, a bad minute each, and write one page of them (FLEET=fleet, a folder)
	$(BIN)/python -m devcluster.fleet --output $(FLEET)

OUTPUT ?= bad-day
FLEET ?= fleet
MINUTES ?= 30
SEED ?=

KAFKA ?=

soak: $(READY) ## Let things happen to a real cluster, as a seed decides, and check it all (MINUTES=30 SEED=n KAFKA=2.8.2; none: random)
	$(BIN)/python -m devcluster.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(KAFKA),--kafka $(KAFKA))

test: $(READY) ## Level 1: the same checks at every commit: style, types, unit tests, and chosen cases on real servers and Spark
	$(BIN)/python -m scripts.checks test

BASE ?=

mapped: $(READY) ## Run the test files that cover the change since the last commit that passed .ci/run (BASE=commit FLAGS=--list)
	$(BIN)/python -m scripts.checks mapped --base "$(BASE)" $(FLAGS)

SHARD ?= 1/1

nightly: $(READY) ## Level 3: run everything, longest not run first, and keep docs/ledger.json (MINUTES=60 SHARD=n/7 SEED=n)
	$(BIN)/python -m scripts.checks nightly --minutes $(MINUTES) --shard $(SHARD) $(if $(SEED),--seed $(SEED))

N ?= 20
HOGS ?= 2
FILES ?=

flaky: $(READY) ## Run tests N times alone, beside busy loops and in slow motion; print failures (N=20 HOGS=2 FILES="tests/real/..."; without FILES: level 1, continued MINUTES=30 by MINUTES)
	$(BIN)/python -m scripts.checks flaky --runs $(N) --hogs $(HOGS) $(if $(FILES),$(FILES),--minutes $(MINUTES))

slow-motion: $(READY) ## Run test files with every write of controllers and operators delayed by 0 to 3 s (SEED=1 FILES="tests/real/..." FLAGS="-k name")
	@test -n "$(FILES)" || { echo 'Name files of tests, such as FILES=tests/real/conformance/procedures/test_topics.py'; exit 1; }
	KONTROLLER_SLOW_MOTION=$(or $(SEED),1) $(BIN)/pytest -v -m real --timeout 900 $(FLAGS) $(FILES)

release-check: $(READY) ## Check that everything has passed within seven days, as docs/ledger.json says
	$(BIN)/python -m scripts.checks release

OLDER ?= $(notdir $(wildcard devcluster/kafkas/*))
KRAFTS ?= $(notdir $(wildcard devcluster/krafts/*))
SOAKED ?= 2.8.2 3.6.2

versions: $(READY) ## Run the suite, the clients, the operator, the journal and the recorder with each older release of Kafka, upgrades, a soak of some, and other releases without ZooKeeper (OLDER="3.0.2" KRAFTS="4.0.2" SOAKED="3.0.2 3.3.2" MINUTES=10)
	$(BIN)/python -m devcluster build
	$(BIN)/pytest -v -m real tests/real/versions
	for version in $(OLDER); do $(BIN)/pytest -v -m real -k $$version $(AT_ONCE) tests/real/conformance tests/real/clients tests/real/operator/kinds tests/real/controller/test_journal.py tests/real/test_recorder.py || exit 1; done
	for version in $(KRAFTS); do $(BIN)/pytest -v -m real -k $$version $(AT_ONCE) tests/real/kraft tests/real/operator/kinds || exit 1; done
	for version in $(SOAKED); do $(MAKE) soak KAFKA=$$version || exit 1; done

lint: $(READY) ## Check style, types, the direction of imports, and habits of prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m scripts.checks types
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.checks prose
	$(MAKE) --no-print-directory docs

SERVE ?=

# Material for MkDocs announces its successor at each start otherwise.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(READY) ## Build the documentation as a site into site/, and fail for a link that leads nowhere (SERVE=1: show it on a loopback port)
	$(BIN)/mkdocs $(if $(SERVE),serve,build --quiet)

prose: $(READY) ## List docstrings, sentences and names that are hard to read, and lower their highest counts
	$(BIN)/python -m scripts.checks prose --list

# On all cores; those of the pipeline file by file, as the tests of a file share tables, and each worker with a Spark of its own.
WORKERS ?= logical

unit: $(READY) ## Run the tests of level 1 that need no servers (WORKERS=0: one after the other, in one process)
	$(BIN)/pytest -m "not real and not spark and not nightly" --numprocesses $(WORKERS) --dist worksteal --durations 20

SECONDS_EACH ?= 60
TARGETS ?=

fuzz: $(READY) ## Look for bytes that are read wrongly, a minute for each kind (SECONDS_EACH=3600 TARGETS="znodes" FLAGS=--keep)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS_EACH) $(TARGETS:%=--only %) $(FLAGS)
	$(if $(TARGETS),,$(BIN)/python -m tests.fuzz.principals --seconds $(SECONDS_EACH))

MODULES ?=
SAMPLE ?= 0

mutants: $(READY) ## Try small changes of the code that tests should notice (MODULES="zk.fenced model", SAMPLE=100 SEED=n; all: hours)
	$(BIN)/python -m scripts.mutants $(MODULES:%=--module %) --sample $(SAMPLE) $(if $(SEED),--seed $(SEED))

spark: $(READY) ## Run all tests of the history's pipeline, on a Spark of their own: two hours
	$(BIN)/pytest -m "spark and not real" --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 20 tests/spark

# In two parts: the clusters of the one have ended before those of the other start. Two files at a time, or two of the parts that
# tests/grouping.py makes of one: mostly they wait, for sessions that end and servers that start. Each has servers of its own.
AT_ONCE := --numprocesses 2 --dist loadgroup --no-loadscope-reorder --durations 20

real: $(READY) ## Run all tests against real ZooKeeper, Kafka and Kubernetes: hours
	$(BIN)/python -m devcluster build
	$(BIN)/pytest -v -m real $(AT_ONCE) tests/real/conformance tests/real/clients
	$(BIN)/pytest -v -m real $(AT_ONCE) --ignore tests/real/conformance --ignore tests/real/clients --ignore tests/e2e

e2e: $(READY) ## Install the chart on a node whose pods really run, and disturb it (KUBECONFIG: on that cluster)
	$(BIN)/pytest -v --durations 20 tests/e2e

chart: $(READY) ## Install, upgrade and uninstall the chart on a node whose pods really run: the cases of tests/chart.txt
	$(BIN)/pytest -v --cases tests/chart.txt --without-quarantined --durations 10 tests/e2e/test_[125]_*.py

try: $(RUNS) ## Run a small Kubernetes cluster with our images until Ctrl-C, to try the chart on: kind, or a node without an engine (as root) (KRAFT=1: Kafka 4)
	$(BIN)/python -m devcluster try $(if $(KRAFT),--kraft)

crds: $(READY) ## Write the definitions of the resources from their models, into crds/ and the chart, and docs/resources.md
	$(BIN)/python -m scripts.crds

cli: $(READY) ## Write docs/cli.md from the commands
	$(BIN)/python -m scripts.cli_page

runbook: $(READY) ## Write the runbook that the chart's alerts carry, from docs/operations.md
	$(BIN)/python -m scripts.runbook

sql: $(READY) ## Compile the definitions of the history's tables to SQL for DuckDB, into kontroller/history/folding/duckdb.sql
	$(BIN)/python -m scripts.duckdb_sql

QUICK ?=
DOCS ?=
PARTITIONS ?=
FLAGS ?=

# QUICK=1: 10,000 partitions, once. DOCS=1: docs/performance.md shows this run. FLAGS: see `python -m bench --help`.
bench: $(READY) ## Measure our controller and Kafka's own on the same data (QUICK=1: in minutes; FLAGS="--scaling --million")
	$(BIN)/python -m bench $(if $(QUICK),--partitions 10000 --runs 1 --no-writes) $(if $(DOCS),--docs) $(FLAGS)

# DOCS=1: docs/performance.md shows this run; FLAGS=--alone where nothing else runs, which shows times as well.
bench-designs: $(READY) ## Count what seed 003's design costs beside seed 004's, with Python brokers, in an hour (PARTITIONS="1000": in minutes)
	$(BIN)/python -m bench.designs $(PARTITIONS:%=--partitions %) $(if $(DOCS),--docs) $(FLAGS)

bench-requests: $(READY) ## Measure what the largest requests do to our controller, in a minute (FLAGS="--only CreateTopics")
	$(BIN)/python -m bench.requests $(FLAGS)

TOPICS ?= 1000

bench-operator: $(READY) ## Measure what the operator makes of many topics on real servers, in some minutes (TOPICS=1000 FLAGS="--partitions 12")
	$(BIN)/python -m bench.operator_scale --topics $(TOPICS) $(FLAGS)

bench-first-move: $(READY) ## Measure how soon an automatic RebalancePlan moves the first replica, on real servers, in ten minutes (FLAGS="--rounds 5")
	$(BIN)/python -m bench.first_move $(FLAGS)

bench-polling: $(READY) ## Measure what looking at many topics without ZooKeeper costs, and how soon changes are seen, in five minutes (TOPICS=1000)
	$(BIN)/python -m bench.polling --topics $(TOPICS) $(FLAGS)

ROUNDS ?= 3

bench-stops: $(READY) ## Measure how long producers wait when brokers and controllers of the chart stop, in 40 minutes, as root or with an engine (ROUNDS=3 DOCS=1)
	$(BIN)/python -m bench.broker_stops --rounds $(ROUNDS) $(if $(DOCS),--docs) $(FLAGS)

EVENTS ?= 10000000
CORES ?= 1 2
LINES ?= 3000000
SKEWED_LINES ?= $(LINES)

bench-pipeline: $(READY) ## Measure how fast Spark takes in and folds a history, one with a large topic, too (EVENTS=10000000 LINES=3000000 SKEWED_LINES=3000000 CORES="1 2")
	$(BIN)/python -m bench.pipeline $(EVENTS:%=--events %) $(LINES:%=--lines %) $(SKEWED_LINES:%=--skewed-lines %) $(CORES:%=--cores %)

CLUSTERS ?= 500

bench-fleet: $(READY) ## Measure what the history of a fleet costs: journals on paper, one history, one page (CLUSTERS=500)
	$(BIN)/python -m bench.fleet_history --clusters $(CLUSTERS)

# DOCS=1: docs/performance.md shows this run. FLAGS=--skip-small: without the optimum of small clusters.
bench-plan: $(READY) ## Plan for generated clusters, and hold time, balance, bytes and constraints to bars, in twenty minutes (DOCS=1 FLAGS="--only drain --runs 1")
	$(BIN)/python -m bench.plan $(if $(DOCS),--docs) $(FLAGS)

build: $(READY) ## Fetch and build all real servers into the cache, or some (PARTS="kafka etcd kubernetes helm health")
	$(BIN)/python -m devcluster build $(PARTS)

IMAGES ?=

images: $(RUNS) ## Build the container images, or some, without a registry or an engine (as root) and say how to load them (IMAGES=kontroller)
	$(BIN)/python -m devcluster.images $(IMAGES)

TAG ?=

release: $(READY) ## Build the files of a release into dist/ and publish nothing: wheels, chart, plugin, lists of parts, checksums (TAG=v0.1.0)
	$(BIN)/python -m scripts.release $(TAG)

# UPGRADE=1: the newest versions that pyproject.toml allows; else only what it asks for anew.
lock: $(TOOLS_READY) ## Pin all distributions, with hashes, as pyproject.toml asks for them (UPGRADE=1: newest), and list what ships
	scripts/lock $(TOOLS)/bin/uv $(if $(UPGRADE),--upgrade)
	$(MAKE) sbom

sbom: $(TOOLS_READY) ## Write what each image is made of, as CycloneDX, into images/*/sbom.cdx.json
	$(TOOLS)/bin/python scripts/sbom.py

audit: $(READY) ## Look up all that is pinned, jars and Debian's packages in OSV's databases, which stay in the cache for use offline (PARTS="dist/*.cdx.json": of built images)
	$(BIN)/python -m scripts.audit $(PARTS)

clean: ## Remove the virtual environments and what tools left here; the cache outside the repository stays
	rm -rf $(VENV) $(TOOLS) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist site *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml scripts/make-venv locks/build.txt locks/dev.txt
	scripts/make-venv $(VENV) locks/dev.txt project
	touch $@ $(RUNS)

$(RUNS): pyproject.toml scripts/make-venv locks/build.txt locks/demo.txt
	scripts/make-venv $(VENV) locks/demo.txt project
	touch $@

$(TOOLS_READY): scripts/make-venv locks/tools.txt
	scripts/make-venv $(TOOLS) locks/tools.txt
	touch $@
