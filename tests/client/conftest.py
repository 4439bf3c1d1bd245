# SPDX-License-Identifier: GPL-2.0-or-later
"""A real target for the client's tests: stock tgtd with our module, and iosd-sandboxd beside it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyosd import Target, aio, connect
from pyosd.types import ObjectRef, ref
from tests.client.faces import Face, awaited
from tests.client.stock_tgtd import StockTgtd

if TYPE_CHECKING:
    from tests.serving import Serving

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "build/target/bs_iosd.so"
SANDBOXD = ROOT / "build/sandbox/iosd-sandboxd"
UNIT = 1
FOUR = ("a", "b", "c", "d")


def _require(layer: str, present: bool, what: str) -> None:
    if present:
        return
    if layer in os.environ.get("OSD_TESTS_MUST_RUN", "").split(","):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="module")
def osd_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a target that runs jobs, for a module's tests."""
    from tests.machine import SHARE_OF_TESTS

    _require("tgtd", MODULE.exists(), "bs_iosd.so")
    _require("sandbox", SANDBOXD.exists(), "iosd-sandboxd")
    folder = tmp_path_factory.mktemp("target")
    socket_path = folder / "sandboxd"
    with (folder / "sandboxd.log").open("wb") as log:
        command = [str(SANDBOXD), "--socket", str(socket_path), "--isolation", "best"]
        command += ["--cpu-share", str(SHARE_OF_TESTS)]
        daemon = subprocess.Popen([*command, "--python-dir", str(ROOT / "pyosd")], stderr=log)
    target = None
    try:
        deadline = time.monotonic() + 60
        while not socket_path.exists():
            assert daemon.poll() is None and time.monotonic() < deadline, "iosd-sandboxd"
            time.sleep(0.02)
        target = StockTgtd(folder, MODULE)
        target.large_transfers()
        store = folder / "store"
        store.mkdir()
        options = f"dir={store};sandboxd={socket_path};isolation=minimal"
        unit = ("--device-type", "osd", "--bstype", "iosd", "--bsopts", options)
        target.add_unit(UNIT, store, *unit)
        target.bind()
        yield target.url(UNIT)
    finally:
        if target:
            target.stop()
        daemon.terminate()
        try:
            daemon.wait(60)
        finally:
            daemon.kill()
            daemon.wait()  # else its Popen warns in a later test, which fails by that


@pytest.fixture
def target(osd_url: str) -> Iterator[Target]:
    with connect(osd_url) as session:
        yield session


@pytest.fixture
def zone(target: Target) -> ObjectRef:
    """A partition of the test's own."""
    return ref(target.create_partition())


@pytest.fixture(params=["threads", "coroutines"])
def face(request: pytest.FixtureRequest, osd_url: str, target: Target) -> Iterator[Face]:
    with asyncio.Runner() as run:
        if request.param == "threads":
            yield Face(target, run)
            return
        session = run.run(awaited(aio.connect(osd_url)))
        yield Face(session, run)
        run.run(session.close())


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, Serving]]:
    """The targets of `four`, for a module's tests."""
    # Not at the top: the sanitized run has a copy of this folder alone.
    from tests.processes import long_lived

    found: dict[str, Serving] = {}
    yield found
    for each in found.values():
        each.stop(False)
        long_lived.discard(each.process.pid)


@pytest.fixture
def four(kept: dict[str, Serving]) -> dict[str, Serving]:
    """Four targets without security and with nothing in them, by name.  A test may kill some."""
    from tests.machine import unavailable
    from tests.processes import long_lived
    from tests.serving import Serving, arguments, missing

    if why := missing():
        unavailable("tgtd", why)
    for name in FOUR:
        served = kept.get(name)
        if served and served.process.poll() is None:
            with served.connect() as target:
                target.format_osd()
            continue
        if served:
            served.stop(False)
        kept[name] = Serving(*arguments())
        long_lived.add(kept[name].process.pid)
    return kept


@pytest.fixture
def top(zone: ObjectRef) -> str:
    """The path of the test's partition."""
    return f"/{zone}"
