# `make smoke`, `make demo` and `make test` are all a fresh machine needs: they do the set-up. `make help` lists the rest.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The list stands in pyproject.toml, once.
ROOMS := $(shell sed -n '/^dev-mode-dirs = \[/,/^]/s/^ *"\(.*\)",$$/\1/p' pyproject.toml)
# Bytecode is compiled when a module is first imported: most of what is installed never is.
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt
CAPTURE ?= spark_replay/captures/failover_lost.pcap
# Where a demo writes report.html and the rest: out/demo, out/demo-replay, unless OUT says so.
OUT ?=
# Which implementations `make conformance` plays against; none named: all that can be had.
TARGETS ?=
# How many of its runs go on at a time; none said: two for each core.
AT_ONCE ?=
# All tests at once: a worker more than there are cores, as some of them wait for a Spark or a peer, at most four; who is
# done early helps out.
WORKERS := $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ "$$n" -lt 4 ] && echo $$((n + 1)) || echo 4)
IN_PARALLEL := -n $(WORKERS) --dist worksteal
# Megabytes of the generated capture that is measured.
SIZE ?= 100
# Which scenarios of `make interop`; none named: all.
SCENARIOS ?=

# Where an environment forbids it each process of a test compiles all modules that it imports: half of the time of `make test`.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)$$/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

.PHONY: rooms
rooms: ## print the rooms: the folders that hold parts of the package
	@echo $(ROOMS)

.PHONY: prerequisites
prerequisites:
	@.ci/prerequisites >/dev/null

# Only what starts Spark or Apache RocketMQ asks for a JDK.
.PHONY: jdk
jdk:
	@.ci/prerequisites jdk >/dev/null

.PHONY: setup
setup: $(READY) ## make the environment .venv (done by every target that needs it)

# Two steps, so that the build tools come from constraints.txt too and no second environment is made.
$(READY): pyproject.toml constraints.txt | prerequisites
	@echo "replispec: making the environment $(VENV) (about a minute)"
	@"$$(.ci/prerequisites)" -m venv $(VENV)
	@$(PIP) setuptools hatchling editables
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

.PHONY: demo
demo: jdk $(READY) ## a cluster of ours loses its master and gets it back; Spark judges its traffic (OUT=...)
	@$(BIN)/python -m lab.demo --family rocketmq --out "$(or $(OUT),out/demo)"

.PHONY: demo-queues
demo-queues: $(READY) ## logical queues under load move among brokers that come and go; clients see four; no JDK (OUT=...)
	@$(BIN)/python -m lab.demo --family rocketmq --play queues --engine local --out "$(or $(OUT),out/demo-queues)"

.PHONY: demo-kafka
demo-kafka: $(READY) ## partitions under load lose a leader and the controller at once; clients of others read all; no JDK (OUT=...)
	@$(BIN)/python -m lab.demo --family kafka --out "$(or $(OUT),out/demo-kafka)"

.PHONY: demo-replay
demo-replay: jdk $(READY) ## replay a real fail-over that lost messages on Spark (CAPTURE=..., OUT=...)
	@$(BIN)/replispec replay "$(CAPTURE)" --engine spark --out "$(or $(OUT),out/demo-replay)" || test $$? -eq 1

.PHONY: smoke
smoke: $(READY) ## a minute that proves a checkout: quick tests, fresh code, one replay, one controller; no JDK
	@$(BIN)/python -m lab.smoke

.PHONY: test
test: jdk lint types spec-check check ## everything that must pass: lint, types, tests (20 to 30 minutes on two cores)

.PHONY: lint
lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## mypy, strict, every room
	@$(BIN)/mypy $(ROOMS) benchmarks lab tests

.PHONY: check
check: $(if $(ARGS),,jdk) $(READY) ## pytest alone, on as many cores as there are (ARGS="tests/cli -k help")
	@$(BIN)/python -m pytest $(or $(ARGS),$(IN_PARALLEL))

.PHONY: spec-check
spec-check: $(READY) ## since the last tag: no break of the wire that CHANGELOG.md does not name
	@$(BIN)/replispec spec check

.PHONY: test-full
test-full: jdk $(READY) ## the long proofs: 10,000 turned bits, more mixtures, every case against every fault, the whole site
	@REPLISPEC_FLIPS=10000 REPLISPEC_ROT=300 REPLISPEC_MIXTURES=500 REPLISPEC_MESS=20 REPLISPEC_FAULTS=all REPLISPEC_EDITS=all REPLISPEC_SITE=whole REPLISPEC_SPREAD=all REPLISPEC_HDFS=all REPLISPEC_REFUSALS=all REPLISPEC_CRASHES=all REPLISPEC_GROUPS=100 REPLISPEC_QUEUE_SEEDS=104 REPLISPEC_PARTITION_SEEDS=200 REPLISPEC_PARTIAL_CAPTURES=12 $(BIN)/python -m pytest \
		tests/replay/test_damage.py tests/replay/test_mixtures.py tests/replay/test_mess.py tests/replay/test_order.py \
		tests/replay/test_faults_on_spark.py tests/replay/test_spread_on_spark.py tests/replay/test_spread.py \
		tests/replay/test_spread_on_cluster.py tests/replay/test_executors_die.py tests/replay/test_merged_on_spark.py tests/replay/test_watch_on_spark.py tests/replay/test_captured_hosts.py \
		tests/conformance/test_faults_controller.py tests/conformance/test_faults_ha_master.py \
		tests/conformance/test_alternatives.py tests/conformance/test_causes.py tests/conformance/test_metastore_cases.py \
		tests/compiler/test_evolution_of_mutants.py tests/handbook/test_site.py tests/explorer/test_mended.py tests/explorer/test_at_length.py tests/explorer/test_search.py tests/explorer/test_stories_as_cases.py tests/replay/test_hdfs.py \
		tests/sim/test_damage.py tests/sim/test_queue_worlds.py tests/sim/test_crash_tables.py tests/sim/test_controllers.py tests/sim/test_group_simulations.py tests/sim_kafka tests/cli/test_three_controllers.py tests/cli/test_change_controllers.py tests/operate tests/broker/test_refusing_controllers.py tests/replay/test_missing_connections.py tests/replay/test_partial_captures.py
	@$(BIN)/python -m benchmarks.bench_watch

.PHONY: generate
generate: $(READY) ## compile spec/ into generated/
	@$(BIN)/python -m replispec.compiler.generate

EXPLORED := out/explored
.PHONY: explore
explore: $(READY) ## explore every system of the specification with more faults than the tests do (some minutes), and name the edges that none takes
	@mkdir -p $(EXPLORED)
	@$(BIN)/replispec spec explore sync_state_set --set silences=1 --json $(EXPLORED)/1.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set late=1 --set lags=1 --json $(EXPLORED)/2.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set silences=1 --set removals=1 --json $(EXPLORED)/3.json $(ARGS)
	@$(BIN)/replispec spec explore replication --set elections=3 --set repetitions=2 --json $(EXPLORED)/4.json $(ARGS)
	@$(BIN)/replispec spec explore replication --set crashes=1 --set silences=1 --set messages=3 --set strangers=0 --json $(EXPLORED)/5.json $(ARGS)
	@$(BIN)/replispec spec explore fail_over --set breaks=1 --set crashes=0 --set lags=0 --set messages=2 --seconds 600 --json $(EXPLORED)/6.json $(ARGS)
	@$(BIN)/replispec spec explore fail_over --set crashes=2 --set lags=0 --seconds 600 --json $(EXPLORED)/7.json $(ARGS)
	@$(BIN)/replispec spec explore registration --set late=1 --set refusals=1 --messages 4 --json $(EXPLORED)/8.json $(ARGS)
	@$(BIN)/replispec spec explore registration --set removals=1 --json $(EXPLORED)/9.json $(ARGS)
	@$(BIN)/replispec spec explore registration --count broker=3 --messages 4 --seconds 300 --json $(EXPLORED)/10.json $(ARGS)
	@$(BIN)/replispec spec explore cleaning --count broker=2 --set strays=2 --set removals=0 --json $(EXPLORED)/11.json $(ARGS)
	@$(BIN)/replispec spec explore partition_in_transition --json $(EXPLORED)/12.json $(ARGS)
	@$(BIN)/replispec spec explore fail_over --set messages=2 --set lags=0 --set early=1 --set elections=1 --json $(EXPLORED)/13.json $(ARGS)
	@$(BIN)/replispec spec explore replication --set learners=0 --set strangers=0 --set repetitions=0 --set silences=1 --messages 4 --json $(EXPLORED)/14.json $(ARGS)
	@$(BIN)/replispec spec explore registration --set refusals=1 --json $(EXPLORED)/15.json $(ARGS)
	@$(BIN)/replispec spec explore registration --set blindness=1 --set strays=1 --set crashes=0 --set removals=1 --json $(EXPLORED)/16.json $(ARGS)
	@$(BIN)/replispec spec explore topic --set silences=2 --set unclean=1 --set lags=1 --json $(EXPLORED)/17.json $(ARGS)
	@$(BIN)/replispec spec explore topic --set silences=2 --set creations=1 --set lags=1 --set sends=0 --json $(EXPLORED)/18.json $(ARGS)
	@$(BIN)/replispec spec explore topic --set lags=1 --set strays=1 --json $(EXPLORED)/19.json $(ARGS)
	@$(BIN)/replispec spec explore fail_over --set messages=2 --set lags=0 --seconds 600 --json $(EXPLORED)/20.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set offices=1 --set blindness=1 --json $(EXPLORED)/21.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set crashes=1 --set lags=1 --json $(EXPLORED)/22.json $(ARGS)
	@$(BIN)/replispec spec explore registration --set moves=1 --json $(EXPLORED)/23.json $(ARGS)
	@$(BIN)/replispec spec explore replication --set strays=1 --set delays=1 --set strangers=0 --set learners=0 --json $(EXPLORED)/24.json $(ARGS)
	@$(BIN)/replispec spec explore learning --set late=1 --set starts=3 --set entries=3 --set elections=2 --json $(EXPLORED)/25.json $(ARGS)
	@$(BIN)/replispec spec explore learning --set breaks=1 --set repetitions=1 --json $(EXPLORED)/26.json $(ARGS)
	@$(BIN)/replispec spec explore learning --set strays=1 --json $(EXPLORED)/27.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set losses=1 --json $(EXPLORED)/28.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set crashes=1 --set strays=1 --messages 3 --json $(EXPLORED)/29.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set losses=1 --set removals=1 --seconds 120 --json $(EXPLORED)/30.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set losses=1 --set silences=1 --seconds 120 --json $(EXPLORED)/31.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set delays=1 --json $(EXPLORED)/32.json $(ARGS)
	@$(BIN)/replispec spec explore group --json $(EXPLORED)/33.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set strangers=2 --set lags=1 --json $(EXPLORED)/34.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set crashes=1 --set strangers=2 --messages 3 --json $(EXPLORED)/35.json $(ARGS)
	@$(BIN)/replispec spec explore sync_state_set --set lost=0 --set strangers=1 --set silences=1 --json $(EXPLORED)/36.json $(ARGS)
	@$(BIN)/replispec spec explore hearing --set messages=2 --json $(EXPLORED)/37.json $(ARGS)
	@$(BIN)/replispec spec explore group --set lost=0 --set crashes=0 --set reads=1 --json $(EXPLORED)/38.json $(ARGS)
	@$(BIN)/replispec spec explore group --set silences=2 --set lost=0 --set crashes=0 --set reads=1 --seconds 300 --states 9000000 --json $(EXPLORED)/39.json $(ARGS)
	@$(BIN)/replispec spec explore group --set changes=1 --set lost=0 --set crashes=0 --json $(EXPLORED)/40.json $(ARGS)
	@$(BIN)/replispec spec explore group --set snapshots=1 --set lost=0 --set crashes=0 --json $(EXPLORED)/41.json $(ARGS)
	@$(BIN)/replispec spec explore migration --set lost=0 --set deaths=1 --json $(EXPLORED)/42.json $(ARGS)
	@$(BIN)/replispec spec explore migration --set lost=0 --set sends=2 --set deletions=1 --json $(EXPLORED)/43.json $(ARGS)
	@$(BIN)/replispec spec explore migration --set lost=0 --set migrations=1 --set disasters=1 --json $(EXPLORED)/44.json $(ARGS)
	@$(BIN)/replispec spec explore remapping --set lost=0 --set deaths=1 --set sends=1 --json $(EXPLORED)/45.json $(ARGS)
	@$(BIN)/replispec spec explore remapping --set lost=0 --set sends=2 --set stragglers=1 --json $(EXPLORED)/46.json $(ARGS)
	@$(BIN)/replispec spec explore remapping --json $(EXPLORED)/47.json $(ARGS)
	@$(BIN)/replispec spec explore moving --set crashes=2 --json $(EXPLORED)/48.json $(ARGS)
	@$(BIN)/replispec spec explore following --set failures=1 --json $(EXPLORED)/49.json $(ARGS)
	@$(BIN)/replispec spec never-taken $(EXPLORED)/*.json

.PHONY: site
site: $(READY) ## the specification as pages for people, with search, no network needed (OUT=...)
	@$(BIN)/python -m replispec.handbook --out "$(or $(OUT),out/site)"

.PHONY: bench-replay
bench-replay: $(READY) ## verdicts and rates of both engines, rates of tshark, on a generated capture (SIZE=400, ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_replay --megabytes $(SIZE) $(ARGS)

.PHONY: bench-cluster
bench-cluster: jdk $(READY) ## whole replays of three shapes: two workers of a real cluster against one, Spark against the local engine (SIZE=400, ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_cluster --megabytes $(SIZE) $(ARGS)

.PHONY: bench-watch
bench-watch: $(READY) ## a folder fed for ten minutes, its watcher killed twice: verdicts, alerts, memory (ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_watch $(ARGS)

.PHONY: mutants
mutants: jdk $(READY) ## change the specification in one place at a time, and see that something notices (ARGS=--help)
	@$(BIN)/python -m lab.mutants $(ARGS)

.PHONY: edges
edges: $(READY) ## which edges of the machines no case of the suite takes (a minute or two)
	@$(BIN)/python -m lab.rocketmq.edges

.PHONY: bench-roles
bench-roles: jdk $(READY) ## our controller and brokers against Apache RocketMQ's, in turns (ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_roles $(ARGS)

.PHONY: bench-group
bench-group: jdk $(READY) ## our group of three controllers beside Apache RocketMQ's: requests, ends of leaders, many sets (ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_group $(ARGS)

.PHONY: bench-queues
bench-queues: jdk $(READY) ## queues that are mapped beside plain ones: sent, read, moved, told to name servers (ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_queues $(ARGS)

.PHONY: bench-kafka
bench-kafka: jdk $(READY) ## our controller, metastore and brokers beside Kafka's and ZooKeeper's: fail-overs, records, a backlog (ARGS=--quick)
	@$(BIN)/python -m benchmarks.kafka $(ARGS)

.PHONY: bench-hostile
bench-hostile: $(READY) ## our roles under attack by hostile peers: longest waits, fail-overs, memory (ARGS=--help)
	@$(BIN)/python -m benchmarks.bench_hostile $(ARGS)

.PHONY: bench-codec
bench-codec: $(READY) ## what decoding one message costs
	@$(BIN)/python -m benchmarks.bench_codec

.PHONY: conformance
conformance: $(READY) ## play the suite against the real implementations (TARGETS="apache-5.4.0": only these; AT_ONCE=1: one run at a time)
	@$(BIN)/python -m lab.conformance --table docs/compliance.md $(if $(AT_ONCE),--at-once $(AT_ONCE)) $(TARGETS)

.PHONY: attempts
attempts: jdk $(READY) ## forty requests of who may not, against our roles and Apache RocketMQ's (ARGS=--ours)
	@$(BIN)/python -m lab.rocketmq.attempts $(ARGS)

.PHONY: interop
interop: jdk $(READY) ## our roles among Apache RocketMQ's own programs (SCENARIOS="a c": only these; ROUNDS=20 SEED=2 RELEASE=5.5.0 of `group`)
	@$(BIN)/python -m lab.interop --family rocketmq $(SCENARIOS) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(RELEASE),--release $(RELEASE))

.PHONY: interop-kafka
interop-kafka: jdk $(READY) ## our roles among Apache Kafka's own programs and other people's clients (SCENARIOS="mixed tails": only these)
	@$(BIN)/python -m lab.interop --family kafka --out out/interop-kafka $(SCENARIOS)

.PHONY: hosts
hosts: jdk $(READY) ## four hosts in network namespaces, clocks apart, one behind a translation: their captures merged, on both engines (needs root; ARGS=--help)
	@$(BIN)/python -m lab.rocketmq.hosts $(ARGS)

.PHONY: seen
seen: $(READY) ## a real Prometheus scrapes a cluster of ours through ten minutes of faults: names, alerts, dashboard, live page (needs prometheus; ARGS="--seconds 60")
	@$(BIN)/python -m lab.rocketmq.seen $(ARGS)

.PHONY: kills
kills: $(READY) ## kill, stop and take the power from processes of ours at random moments under load, 50 times (KILLS=10 SEED=2)
	@$(BIN)/python -m lab.kills --kills $(or $(KILLS),50) --seed $(or $(SEED),1) $(ARGS)

.PHONY: kills-queues
kills-queues: $(READY) ## kill -9 at each step of a command that moves a logical queue, then type it again (ARGS="--resume --side-by-side 2")
	@$(BIN)/python -m lab.rocketmq.kills_queues $(ARGS)

.PHONY: format
format: $(READY) ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: clean
clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist out spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
