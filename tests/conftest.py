# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures shared by all tests: they own processes and folders, and fail a test that leaks one.

Lives here: the harness in its builds and stores, options of the test run, the leak check.
Not here: a target with tgtd and sandboxes (tests/serving.py, tests/e2e/conftest.py).
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# ruff: noqa: E402 -- what follows imports modules whose asserts pytest shall explain
pytest.register_assert_rewrite("tests.expect", "tests.command", "tests.harness", "tests.oracle")

from hypothesis import HealthCheck, settings

import pyosd
from pyosd.commands import Commands
from pyosd.errors import NotFound
from pyosd.types import ObjectRef, PartitionId
from tests import surroundings
from tests.harness import Harness, build_sanitized, program
from tests.machine import unavailable, without_sandboxes
from tests.processes import children_of_this, long_lived, running
from tests.serving import Serving, arguments, missing, sandboxes_missing, shared
from tests.workers import in_order

# The harness with sanitizers and a tgtd over iSCSI, both on Berkeley DB, cover the product.  The
# harness without sanitizers, on Berkeley DB and in memory, is for mutants and for `make units`.
UNITS = {
    "sanitized": pytest.param("sanitized"),
    "iscsi": pytest.param("iscsi", marks=pytest.mark.tgtd),
    "bdb": pytest.param("bdb"),
    "memory": pytest.param("memory"),
}

# No test fails for the time it takes: hypothesis allows 200 ms an example unless told otherwise.
for name, examples in {"iosd": 50, "iosd-long": 1000}.items():
    settings.register_profile(
        name,
        settings.default,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("iosd")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--crash-rounds", type=int, default=4, help="rounds of kill -9")
    parser.addoption("--all-faults", action="store_true", help="every n of the fault loops")
    parser.addoption(
        "--history-seconds", type=float, default=1.0, help="how long histories are made"
    )
    parser.addoption(
        "--rights-matrix", choices=("sample", "full"), default="sample", help="cases of the matrix"
    )
    parser.addoption(
        "--units",
        type=units_named,
        default="sanitized,iscsi",
        help=f"logical units of tests/command: {','.join(UNITS)}",
    )
    parser.addoption(
        "--many-objects", type=int, default=400, help="objects of the run over many targets"
    )
    parser.addoption("--screenshots", help="folder for pictures of the console")
    parser.addoption("--seed", type=int, default=None, help="repeat a run's random choices")


def units_named(text: str) -> list[str]:
    """The logical units of `--units`.  Raises: ValueError: there is no such unit."""
    names = text.split(",")
    if unknown := set(names) - set(UNITS):
        raise ValueError(f"no such logical units: {sorted(unknown)}")
    return names


@pytest.hookimpl(tryfirst=True)  # before pytest chooses a folder for tmp_path
def pytest_configure(config: pytest.Config) -> None:
    set_temporary(config)
    given = getattr(config, "workerinput", {}).get("iosd_seed", config.getoption("--seed"))
    config.stash[SEED] = choose_seed(given)
    os.environ["IOSD_SEED"] = str(config.stash[SEED])  # of C unit tests, of fuzzing
    config.add_cleanup(surroundings.settle())
    if not hasattr(config, "workerinput"):
        surroundings.compile_product()
        surroundings.unmount_dead()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Items and modules stay for the whole run: the garbage collector is not to walk half a million
    objects again and again, neither now nor in each test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def set_temporary(config: pytest.Config) -> None:
    """Choose where the temporary files of the run are; its workers have their own inside it."""
    if hasattr(config, "workerinput"):
        tempfile.tempdir = config.workerinput["iosd_temporary"]
    elif folder := surroundings.in_memory():
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        config.option.basetemp = config.option.basetemp or str(folder / "run")
        tempfile.tempdir = str(folder)


def choose_seed(given: int | None) -> int:
    """Source of this run's random choices.  A gate makes the same ones each time, as hypothesis
    does there: it judges a change, and what was broken before is for other runs to find.
    """
    if given is not None:
        return given
    if "IOSD_SEED" in os.environ:
        return int(os.environ["IOSD_SEED"])
    return 1 if "CI" in os.environ else random.SystemRandom().getrandbits(32)


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.stash[SEED]
    lines = [f"seed: {seed} (--seed={seed} repeats its choices)"]
    if why := without_sandboxes():
        lines.insert(0, f"tests that need sandboxes are skipped: {why}")
    return lines


SEED = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Source of every random choice of this run."""
    return request.config.stash[SEED]


@pytest.hookimpl(trylast=True)  # after -k and -m: what they leave counts
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what a stock tgtd does itself, or dies of, are not run through it."""

    def through_tgtd(item: pytest.Item) -> bool:
        called = getattr(item, "callspec", None)
        return called is not None and called.params.get("logical_unit") == "iscsi"

    out = [item for item in items if item.get_closest_marker("core") and through_tgtd(item)]
    if out:
        config.hook.pytest_deselected(items=out)
    left = set(items).difference(out)
    items[:] = in_order([item for item in items if item in left])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Common state of all workers of a run (pytest-xdist)."""
    node.workerinput["iosd_seed"] = node.config.stash[SEED]
    node.workerinput["iosd_temporary"] = tempfile.gettempdir()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "crash_round" in metafunc.fixturenames:
        metafunc.parametrize("crash_round", range(metafunc.config.getoption("--crash-rounds")))
    if "logical_unit" in metafunc.fixturenames:
        units = [UNITS[name] for name in metafunc.config.getoption("--units")]
        metafunc.parametrize("logical_unit", units, indirect=True, scope="session")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `sandbox` are skipped where there are none, all for the same reason."""
    if item.get_closest_marker("sandbox") and (why := sandboxes_missing()):
        unavailable("sandbox", why)


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """A test leaves no process and no thread behind, but those of longer-lived fixtures."""
    threads, before = set(threading.enumerate()), children_of_this()
    yield
    left = {pid for pid in children_of_this() - before - long_lived if running(pid)}
    assert not left, f"processes left behind: {sorted(left)}"
    late = [each for each in threading.enumerate() if each not in threads and not each.daemon]
    assert not late, f"threads left behind: {late}"


# ---- the harness ----


@pytest.fixture(scope="session")
def sanitized_program() -> Path:
    """osd_harness built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    return build_sanitized()


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on a disk, for what depends on one; other temporary files may be in memory."""
    top = os.environ.get("TMPDIR", "/tmp")
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir=top) as folder:
        yield Path(folder)


MakeHarness = Callable[..., Harness]


@pytest.fixture
def make_harness(tmp_path: Path) -> Iterator[MakeHarness]:
    """Start harnesses: keyword arguments are options; dir defaults to one folder of the test."""
    started: list[Harness] = []

    def make(build: Path | None = None, **options: object) -> Harness:
        if not options.get("memory"):
            options.setdefault("dir", tmp_path / "store")
        harness = Harness(build or program(), options, tmp_path / f"harness{len(started)}.log")
        started.append(harness)
        return harness

    yield make
    failures = []
    for each in started:
        try:
            each.finish()
        except AssertionError as error:
            failures.append(error)
    if failures:
        raise failures[0]


@pytest.fixture(scope="session")
def logical_unit(request: pytest.FixtureRequest) -> Commands:
    """A logical unit for many tests, each of which works in partitions of its own.  `--units` names
    the ones there are (UNITS)."""
    unit: Commands = request.getfixturevalue(f"{request.param}_unit")
    return unit


@pytest.fixture(scope="session")
def iscsi_unit(serving: Serving) -> Iterator[Commands]:
    with serving.connect() as session:
        yield session


@pytest.fixture(scope="session")
def sanitized_unit(
    tmp_path_factory: pytest.TempPathFactory, sanitized_program: Path
) -> Iterator[Commands]:
    yield from harness_unit(tmp_path_factory.mktemp("sanitized"), sanitized_program)


@pytest.fixture(scope="session")
def bdb_unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    yield from harness_unit(tmp_path_factory.mktemp("bdb"), program())


@pytest.fixture(scope="session")
def memory_unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    yield from harness_unit(tmp_path_factory.mktemp("memory"), program(), memory=1)


def harness_unit(folder: Path, build: Path, **options: object) -> Iterator[Commands]:
    """A harness that many tests use; on Berkeley DB unless the options say otherwise."""
    harness = Harness(build, options or {"dir": folder / "store"}, folder / "log")
    long_lived.add(harness.pid)
    yield harness.osd
    harness.finish()
    long_lived.discard(harness.pid)


@pytest.fixture
def osd(logical_unit: Commands) -> Commands:
    """Commands to a logical unit that other tests use too."""
    return logical_unit


@pytest.fixture
def pid(osd: Commands) -> Iterator[int]:
    """A partition of the test's own."""
    partition_id = osd.create_partition()
    yield partition_id
    with contextlib.suppress(NotFound):  # the test has removed it
        osd.remove_partition(partition_id, contents=True)


@pytest.fixture
def obj(osd: Commands, pid: PartitionId) -> ObjectRef:
    """An empty user object in the test's partition."""
    return osd.create(pid)


@pytest.fixture
def collection(osd: Commands, pid: PartitionId) -> ObjectRef:
    """An empty linked collection in the test's partition."""
    return osd.create_collection(pid)


# ---- a whole target ----


@pytest.fixture(scope="session")
def serving() -> Iterator[Serving]:
    """One target with tgtd for many tests."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    with shared(*arguments()) as served:
        yield served


@pytest.fixture
def target(serving: Serving) -> Iterator[pyosd.Target]:
    """A session with the shared target."""
    with serving.connect() as session:
        yield session
