# SPDX-License-Identifier: GPL-2.0-or-later
# Makefile -- the words people type; `make help` lists them.  How things are built is in setup.py, in
# packaging/pip and the CMakeLists.txt of each tree.

PYTHON  ?= /usr/bin/python3
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= 2
WORKERS ?= $(shell expr $(JOBS) + 2)
N       ?= 100
HOURS   ?= 2
SOAK_ARGS ?=
SECONDS ?= 60
MUTANTS ?=
THRASH_ARGS ?=
PYTEST_ARGS ?=
DEMO_ARGS ?=
URL     ?=
PARTS   ?=
CONFORMANCE_ARGS ?=
BENCH_ARGS ?=
COMPARE_ARGS ?=
OLD     ?=
NEW     ?= bench/results/latest.json

venv   := .venv
bin    := $(venv)/bin
stamp  := $(venv)/.installed
tools  := $(venv)/.dev-installed
peers  := $(venv)/.bench-installed
trees  := $(patsubst %/CMakeLists.txt,%,$(wildcard target/CMakeLists.txt sandbox/CMakeLists.txt \
	pyosd/_core/CMakeLists.txt))
python_sources := pyosd iosd_host iosd_secmgr examples tests bench tools packaging setup.py
projects := packaging/pip/iosd-host packaging/pip/iosd-secmgr

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := build
.PHONY: help host packages build-packages install-packages test-packages venv build dev demo tgtd tgtd-asan test-builds test conformance lint fuzz wirefuzz shmfuzz crash faults units coverage pandas secmgr-postgres syscalls mutants thrash soak bench bench-compare bench-tiers install uninstall wheels wheels-test deb deb-test vm-test clean

help:           ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

packages:       ## install the missing Debian packages of packages.txt (as root); PARTS="build run"
	@tools/install-packages.sh $(PARTS)

build-packages:
	@tools/install-packages.sh build run

install-packages:
	@tools/install-packages.sh install

test-packages:
	@tools/install-packages.sh build run install test

$(stamp): setup.py pyproject.toml VERSION packages.txt packaging/pip/cmake_trees.py \
		$(projects:%=%/setup.py) $(projects:%=%/pyproject.toml) | build-packages
	test -x $(bin)/python || $(PYTHON) -m venv $(venv)
	$(bin)/pip install -q "setuptools>=68" wheel
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[certificates]" \
		-e "packaging/pip/iosd-host[wasm]" -e packaging/pip/iosd-secmgr
	touch $@

$(tools): $(stamp)
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[dev]"
	touch $@

venv: $(tools)  ## make the virtual environment .venv with everything from PyPI

build: build-packages $(stamp) ## build the C trees (build/) and the Python packages (.venv)
	@$(bin)/python setup.py -q build_ext --inplace

dev: test-packages build $(tools) ## build, and install what tests and lint need

demo: build     ## run scripts and a view beside the data and at the client, compare outputs and bytes
	@$(bin)/python -m examples.demo $(DEMO_ARGS)

tgtd: build-packages ## build the distribution's tgtd with our patches, which `osd target serve` prefers: build/tgtd
	@tools/build-tgtd.sh

tgtd-asan: build-packages ## build the same under AddressSanitizer, for the fuzzers: build/tgtd-asan
	@tools/build-tgtd.sh asan

host:
	@$(PYTHON) -m tests.machine

test-builds: dev
	@$(bin)/python -m tests.sanitize.builds
	@$(bin)/python tests/fuzz/run.py --quick --only-build

test: host dev test-builds ## run every test of the gate, on WORKERS=4: tests wait for half of their time
	@tools/build-tgtd.sh || [ $$? = 3 ]
	@tools/build-tgtd.sh asan || [ $$? = 3 ]
	$(bin)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

conformance: dev ## print the OSD-2 matrix of our target, or of the one at URL=
	@$(bin)/python -m tests.conformance $(CONFORMANCE_ARGS) $(URL)

lint: dev       ## check format, style and types, with warnings as errors
	$(bin)/ruff check $(wildcard $(python_sources))
	$(bin)/ruff format --check $(wildcard $(python_sources))
	$(bin)/mypy
	@mkdir -p build/typing && ln -sfn ../../pyosd/_alias build/typing/osd
	MYPYPATH=.:build/typing $(bin)/mypy examples $(filter-out %/__init__.py,$(wildcard pyosd/functions/stock/*.py))
	@for tree in $(trees); do \
		echo "clang-tidy $$tree"; \
		find $$tree -name '*.c' ! -name 'test_*' -print0 | \
		xargs -0 -P $(JOBS) -n 4 clang-tidy-14 -p build/$$tree --quiet 2>/dev/null || exit 1; \
	done

wirefuzz: dev   ## send SECONDS=60 of random PDUs to the hardened tgtd under AddressSanitizer
	@$(bin)/python -m tests.wire_fuzz --seconds $(SECONDS)

shmfuzz: dev    ## run SECONDS=60 of hostile sandboxes against a target under AddressSanitizer
	@$(bin)/python -m tests.shm_fuzz --seconds $(SECONDS)

fuzz: dev       ## give SECONDS=60 of fresh input to every fuzz target; the gate has 10 s
	IOSD_FUZZ_SECONDS=$(SECONDS) $(bin)/python -m pytest tests/fuzz/test_fuzz.py

crash: dev      ## run N=100 rounds of each crash test
	$(bin)/python -m pytest -m crash --crash-rounds $(N) tests/fault

faults: dev     ## let every n-th store call, system call and allocation fail, or be the last
	$(bin)/python -m pytest --all-faults $(foreach kind,call function name step store,tests/fault/test_$(kind)_faults.py)
	IOSD_EVERY_CALL=1 $(bin)/python -m pytest tests/sanitize/test_units.py -k "test_faults or test_sums or test_heads_crash"

units: dev      ## run every command on all four logical units; the gate has two of them
	$(bin)/python -m pytest --units sanitized,iscsi,bdb,memory tests/command

coverage: dev   ## print the share of C and Python lines that the gate executes; build/coverage
	@$(bin)/python -m tests.covered --jobs $(WORKERS) $(PYTEST_ARGS)

pandas: dev     ## run scripts with pandas, in a pool whose package set is made for it
	$(bin)/python -m pytest tests/exec/pandas_campaign.py

secmgr-postgres: dev ## test the security manager on a PostgreSQL server, which must be installed
	$(bin)/pip install -q "psycopg[binary]>=3.1"
	$(bin)/python -m pytest tests/secmgr/postgres_campaign.py

syscalls: dev   ## compare the system calls of sandboxes with the allow-list, under strace
	@$(bin)/python -m tests.sandbox.traced

$(peers): $(stamp)
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[bench]"
	touch $@

mutants: dev    ## plant faults in a copy of the source; the gate's tests must find each
	@$(bin)/python -m tests.mutants $(MUTANTS)

thrash: dev     ## run SECONDS=60 of every fault, under clients whose answers are checked
	@$(bin)/python -m tests.soak.thrash --seconds $(SECONDS) $(THRASH_ARGS)

soak: dev       ## run HOURS=2 of mixed load and kills, and report growth: build/soak.json, build/soak.png
	@$(bin)/python -m tests.soak --hours $(HOURS) $(SOAK_ARGS)

bench: dev $(peers) ## measure the benchmarks, into bench/results/latest.json and report.html
	@tools/bench-peers.sh build/peers || true # rows that need them say so
	@$(bin)/python -m bench $(BENCH_ARGS)

bench-compare:  ## compare OLD=FILE with NEW=FILE, reports of make bench, and print changes beyond noise; COMPARE_ARGS=--fail
	@$(bin)/python -m bench.compare $(COMPARE_ARGS) $(OLD) $(NEW)

bench-tiers: dev $(peers) ## measure heads on an SSD against all on it and all on a hard disk, on simulated disks; docs/tiers-results.md
	@$(bin)/python -m bench.tiers $(BENCH_ARGS)

install: build install-packages ## install into $(DESTDIR)$(PREFIX)
	@tools/install.sh install "$(DESTDIR)" "$(PREFIX)" "$(PYTHON)"

uninstall:      ## remove what install put there
	@tools/install.sh uninstall "$(DESTDIR)" "$(PREFIX)"

wheels: build   ## build source distributions and wheels of iosd, iosd-host and iosd-secmgr, into dist/
	@tools/make-wheels.sh dist

wheels-test: dev ## build the wheels of a host and of the security manager, and check their files
	$(bin)/python -m pytest tests/packaging/wheels_campaign.py

deb:            ## build the Debian packages, into dist/
	@tools/make-deb.sh dist

deb-test: deb   ## let systemd run them in a clean Debian, and check that nothing is left (as root)
	@$(PYTHON) -m tests.packaging dist

vm-test: deb    ## test the packages in a Debian 12 with cgroup v2, in a virtual machine (as root)
	@$(PYTHON) -m tests.packaging.vm dist

clean:          ## remove the build
	rm -rf build dist .venv .run *.egg-info packaging/pip/*/*.egg-info packaging/pip/*/build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f pyosd/*.so
	find pyosd iosd_host iosd_secmgr examples tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
