# SPDX-License-Identifier: GPL-2.0-or-later
# Makefile -- the words people type; `make help` lists them.  How things are built is in setup.py and
# the CMakeLists.txt of each tree.

PYTHON  ?= /usr/bin/python3
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= 2
N       ?= 100
HOURS   ?= 2
SOAK_ARGS ?=
SECONDS ?= 60
MUTANTS ?=
THRASH_ARGS ?=
PYTEST_ARGS ?=
DEMO_ARGS ?=
URL     ?=
CONFORMANCE_ARGS ?=
BENCH_ARGS ?=
COMPARE_ARGS ?=
OLD     ?=
NEW     ?= bench/results/latest.json

venv   := .venv
bin    := $(venv)/bin
stamp  := $(venv)/.installed
peers  := $(venv)/.bench-installed
plots  := $(venv)/.soak-installed
trees  := $(patsubst %/CMakeLists.txt,%,$(wildcard target/CMakeLists.txt sandbox/CMakeLists.txt \
	pyosd/_core/CMakeLists.txt))
python_sources := pyosd scheduler examples tests bench tools setup.py

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := build
.PHONY: help packages venv build demo tgtd tgtd-asan test conformance lint wirefuzz shmfuzz crash faults units pandas secmgr-postgres syscalls mutants thrash soak bench bench-compare bench-tiers install uninstall deb deb-test vm-test clean

help:           ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

packages:       ## install the missing Debian packages of packages.txt (as root)
	@tools/install-packages.sh

$(stamp): setup.py VERSION packages.txt | packages
	test -x $(bin)/python || $(PYTHON) -m venv $(venv)
	$(bin)/pip install -q "setuptools>=68" wheel
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[dev]"
	touch $@

venv: $(stamp)  ## the virtual environment .venv with everything from PyPI

build: packages $(stamp)  ## build the C trees (build/) and the Python packages (.venv)
	@$(bin)/python setup.py -q build_ext --inplace

demo: build     ## a Python script travels to the data, and a SHA-256 says nothing was lost
	@$(bin)/python -m examples.demo $(DEMO_ARGS)

tgtd:           ## the distribution's tgtd with our patches, which `osd target serve` prefers: build/tgtd
	@tools/build-tgtd.sh

tgtd-asan:      ## the same under AddressSanitizer, for the fuzzers: build/tgtd-asan
	@tools/build-tgtd.sh asan

test: build     ## every test of the gate
	@tools/build-tgtd.sh || [ $$? = 3 ]
	@tools/build-tgtd.sh asan || [ $$? = 3 ]
	$(bin)/python -m pytest $(PYTEST_ARGS)

conformance: build ## the OSD-2 matrix of our target, or of the one at URL=
	@$(bin)/python -m tests.conformance $(CONFORMANCE_ARGS) $(URL)

lint: build     ## format, lint, types, warnings as errors
	$(bin)/ruff check $(wildcard $(python_sources))
	$(bin)/ruff format --check $(wildcard $(python_sources))
	$(bin)/mypy
	@mkdir -p build/typing && ln -sfn ../../pyosd/_alias build/typing/osd
	MYPYPATH=.:build/typing $(bin)/mypy examples
	@for tree in $(trees); do \
		echo "clang-tidy $$tree"; \
		find $$tree -name '*.c' ! -name 'test_*' -print0 | \
		xargs -0 -P $(JOBS) -n 4 clang-tidy-14 -p build/$$tree --quiet 2>/dev/null || exit 1; \
	done

wirefuzz: build ## SECONDS=60 of PDUs at random against the hardened tgtd under AddressSanitizer
	@$(bin)/python -m tests.wire_fuzz --seconds $(SECONDS)

shmfuzz: build  ## SECONDS=60 of hostile sandboxes against a target under AddressSanitizer
	@$(bin)/python -m tests.shm_fuzz --seconds $(SECONDS)

crash: build    ## N=100 crash rounds
	$(bin)/python -m pytest -m crash --crash-rounds $(N) tests/fault

faults: build   ## every n-th store call, system call and allocation fails, or is the last
	$(bin)/python -m pytest --all-faults $(foreach kind,call step store,tests/fault/test_$(kind)_faults.py)

units: build    ## every command on all four logical units: the gate has two of them
	$(bin)/python -m pytest --units sanitized,iscsi,bdb,memory tests/command

pandas: build   ## scripts with pandas, in a pool whose package set is made for it
	$(bin)/python -m pytest tests/exec/pandas_campaign.py

secmgr-postgres: build ## the security manager on a PostgreSQL server, which must be installed
	$(bin)/pip install -q "psycopg[binary]>=3.1"
	$(bin)/python -m pytest tests/secmgr/postgres_campaign.py

syscalls: build ## are the system calls of sandboxes those they are allowed, under strace
	@$(bin)/python -m tests.sandbox.traced

$(peers): $(stamp)
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[bench]"
	touch $@

$(plots): $(stamp)
	$(bin)/pip install -q --no-build-isolation --use-pep517 -e ".[soak]"
	touch $@

mutants: build  ## plants faults in a copy of the source; the gate's tests must find each
	@$(bin)/python -m tests.mutants $(MUTANTS)

thrash: build   ## SECONDS=60 of every fault there is, under clients whose answers are checked
	@$(bin)/python -m tests.soak.thrash --seconds $(SECONDS) $(THRASH_ARGS)

soak: build $(plots) ## HOURS=2 of mixed load and kills: what of the target grows; build/soak.json, build/soak.png
	@$(bin)/python -m tests.soak --hours $(HOURS) $(SOAK_ARGS)

bench: build $(peers) ## the table of benchmarks, into bench/results/latest.json, and report.html
	@tools/bench-peers.sh build/peers || true # rows that need them say so
	@$(bin)/python -m bench $(BENCH_ARGS)

bench-compare:  ## OLD=FILE NEW=FILE, reports of make bench: what changed beyond noise; COMPARE_ARGS=--fail
	@$(bin)/python -m bench.compare $(COMPARE_ARGS) $(OLD) $(NEW)

bench-tiers: build $(peers) ## heads on an SSD against all on it, all on a hard disk, on simulated disks; docs/tiers.md
	@$(bin)/python -m bench.tiers $(BENCH_ARGS)

install: build  ## into $(DESTDIR)$(PREFIX)
	@tools/install.sh install "$(DESTDIR)" "$(PREFIX)" "$(PYTHON)"

uninstall:      ## remove what install put there
	@tools/install.sh uninstall "$(DESTDIR)" "$(PREFIX)"

deb:            ## Debian packages, into dist/
	@tools/make-deb.sh dist

deb-test: deb   ## have systemd run them in a clean Debian, and see that nothing is left (as root)
	@$(PYTHON) -m tests.packaging dist

vm-test: deb    ## the packages in a Debian 12 as it is installed, with cgroup v2, in a virtual machine (as root)
	@$(PYTHON) -m tests.packaging.vm dist

clean:          ## remove what building made
	rm -rf build dist .venv .run *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f pyosd/*.so
	find pyosd scheduler examples tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
