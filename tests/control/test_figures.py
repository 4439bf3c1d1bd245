# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of SNAPSHOT are what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyosd import errors, job_array
from pyosd.errors import OSDError
from pyosd.transport import Command
from pyosd.types import ref
from scheduler.messages import Type
from tests.control.peer import Peer, wait_for
from tests.harness import SOURCE, Harness
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.jobs.test_exec import DEADLINE_S, SLEEP, is_running, run, until

BOUNDS = [*[base * 10.0**power for power in range(-5, 2) for base in (1, 2, 5)][2:-1], 60.0]


MAPS = {"command_seconds", "proxy_call_seconds", "jobs.refused", "transactions.aborted"}
MAPS |= {
    f"pools[].{each}" for each in ("seconds", "sandboxes", "sandbox_exits", "sandbox_recycled")
}


def commands(reading: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(each["command"], each["status"]): each["count"] for each in reading["commands"]}


def total(histogram: dict[str, Any]) -> int:
    return sum(histogram["counts"])


def test_commands(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        obj = harness.osd.create(harness.osd.create_partition())
        before = peer.snapshot()
        for index in range(5):
            harness.osd.write(obj, index * 100, b"x" * 100)
        for _ in range(3):
            assert harness.osd.read(obj, 0, 500)
        for _ in range(2):
            with pytest.raises(OSDError):
                harness.osd.read(ref(obj.partition_id, obj.object_id + 7), 0, 1)
        after = peer.snapshot()
    old, new = commands(before), commands(after)
    assert {key: new[key] - old.get(key, 0) for key in new if new[key] != old.get(key)} == {
        ("WRITE", "ok"): 5,
        ("READ", "ok"): 3,
        ("READ", "no_object"): 2,
    }
    assert after["bounds"] == pytest.approx(BOUNDS)
    for name, count in (("write", 5), ("read", 5), ("manage", 0), ("list", 0)):
        was, now = before["command_seconds"][name], after["command_seconds"][name]
        assert len(now["counts"]) == len(BOUNDS) + 1
        assert total(now) - total(was) == count
        assert (now["sum"] > was["sum"]) == (count > 0)
    transactions = after["transactions"]
    done = total(transactions["seconds"]) - total(before["transactions"]["seconds"])
    assert done >= 1
    assert transactions["seconds"]["sum"] > 0
    (was,), (now,) = before["heads"], after["heads"]
    assert (now["tier"], now["writes"] - was["writes"], now["errors"]) == ("main", 5, 0)
    assert now["reads"] - was["reads"] == 3
    assert after["store"]["objects"] == 1
    assert after["store"]["used_bytes"] == 500


def test_unknown_command(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        assert not any(name == "unknown" for name, _ in commands(peer.snapshot()))
        harness.transport.execute(Command(b"\x7f" + bytes(6) + b"\xe4" + bytes(228)))
        assert commands(peer.snapshot())["unknown", "cdb_field"] == 1


def fields(value: object, at: str = "") -> Iterator[str]:
    """Paths of all there is, as docs/control.md writes them."""
    if isinstance(value, dict) and at in MAPS:
        yield at + "{}"
    elif isinstance(value, dict) and "counts" in value:
        yield at
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from fields(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, at + "[]")
    else:
        yield at


# ---- jobs ----


@pytest.fixture
def target(tmp_path: Path, path: Path) -> Iterator[Target]:
    skip_without_sandboxes()
    running = Target(tmp_path, f";control={path}")
    yield running
    running.stop()


def pool_of(reading: dict[str, Any]) -> dict[str, Any]:
    pools = reading["pools"]
    assert [each["name"] for each in pools] == ["default"]
    found: dict[str, Any] = pools[0]
    return found


def finished(pool: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {(each["state"], each["reason"]): each["count"] for each in pool["finished"]}


def exits(pool: dict[str, Any]) -> int:
    return sum(pool["sandbox_exits"].values())


def test_jobs(target: Target, path: Path) -> None:
    for code in ("pass", "print(1)", "raise ValueError"):
        run(target, code).wait(DEADLINE_S)
    sleeping = run(target, SLEEP)
    until(lambda: is_running(sleeping))
    with Peer(path) as peer:
        during = pool_of(peer.snapshot())
        assert (during["busy"], during["sandboxes"]["taken"], during["ended"]) == (1, 1, 3)
        sleeping.kill()
        sleeping.wait(DEADLINE_S)
        held = run(target, "pass", hold=True)
        reading = peer.snapshot()
        held.kill()
        wait_for(lambda: exits(pool_of(peer.snapshot())) >= 4, "used sandboxes stay")
        pool = pool_of(peer.snapshot())
    assert (pool["arrived"], pool["started"], pool["ended"]) == (5, 4, 5)
    assert finished(pool) == {
        ("COMPLETED", 0): 2,
        ("FAILED", 201): 1,
        ("CANCELLED", 107): 2,
    }
    assert [total(pool["seconds"][name]) for name in ("queue", "start", "run", "cancel")] == [
        4, 4, 4, 1,
    ]  # fmt: skip
    assert pool["cpu_seconds"] > 0
    assert pool["run_seconds"] == pool["seconds"]["run"]["sum"] > 0
    assert pool["serving"] is True
    assert pool["sandbox_recycled"] == {"used": 4, "worn": 0, "idle": 0, "asked": 0}
    assert pool["sandbox_starts"] >= 4
    assert pool["warm_seconds"] > 0
    assert reading["jobs"]["held"] == 1
    assert reading["jobs"]["accepted"] == 5
    assert reading["jobs"]["service"] is True


CALLS = """
import osd
made = osd.zone.create_many(1)[0]
for _ in range(20):
    made.data.write(b"x" * 9)
try:
    made.setattr([(1, 1, b"")])
except osd.Invalid:
    pass
"""


def test_calls(target: Target, path: Path) -> None:
    with Peer(path) as peer:
        assert peer.snapshot()["proxy_calls"] == []
        status = run(target, CALLS).wait(DEADLINE_S)
        reading = peer.snapshot()
    found = {(each["command"], each["status"]): each["count"] for each in reading["proxy_calls"]}
    assert found["CREATE", "ok"] == 1
    assert found["WRITE", "ok"] == 20
    assert found["SETATTR", "invalid"] == 1
    assert found["FINISH", "ok"] == 1
    assert sum(found.values()) == status.calls
    assert reading["proxy_calls_gave_way"] == 0  # there were no commands to give way to
    assert 2 <= total(reading["proxy_call_seconds"]["data"]) <= 3


def test_array_counts_its_members(target: Target, path: Path) -> None:
    array = job_array.submit(target.commands, "pass", zone=target.partition, array=range(5))
    array.wait(DEADLINE_S)
    with Peer(path) as peer:
        pool = pool_of(peer.snapshot())
    assert (pool["arrived"], pool["started"], pool["ended"]) == (5, 5, 5)
    assert finished(pool) == {("COMPLETED", 0): 5}


def test_the_page_has_every_field(target: Target, path: Path) -> None:
    """And no other."""
    text = (SOURCE / "docs" / "control.md").read_text()
    table = text.split("## What SNAPSHOT has")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    told = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    run(target, "raise SystemExit(75)", retry_exit=75, attempts=1).wait(DEADLINE_S)
    with Peer(path) as peer:
        without = set(fields(peer.snapshot()))
        peer.hello("manager")
        assert set(fields(peer.snapshot())) | without == told


def test_refused_and_retried(target: Target, path: Path) -> None:
    with Peer(path) as peer:
        peer.ask(Type.SHED, on=True)
        with pytest.raises(errors.TargetBusy):
            run(target, "pass")
        peer.ask(Type.SHED, on=False)
        again = run(target, "raise SystemExit(75)", retry_exit=75, attempts=2)
        again.wait(DEADLINE_S)
        figures = peer.snapshot()["jobs"]
    assert figures["refused"]["shed"] == 1
    assert sum(figures["refused"].values()) == 1
    assert figures["retried"] == [{"reason": 202, "count": 2}]


def test_jobs_that_wait(target: Target, path: Path) -> None:
    """Depth and age of the queue; who watches is told at once, and as long as they wait."""
    with Peer(path) as peer:
        peer.ask(Type.POOL, name="default", active=1)
        first = run(target, SLEEP)
        until(lambda: is_running(first))
        peer.ask(Type.WATCH, interval_ms=60000)
        waiting = run(target, "pass")
        pushed = pool_of(peer.push())
        assert (pushed["queued"], pushed["busy"], pushed["active"]) == (1, 1, 1)
        assert pushed["oldest"] < 5
        more = [run(target, "pass") for _ in range(3)]
        wait_for(lambda: pool_of(peer.snapshot())["oldest"] > 0.1, "the oldest does not age")
        assert pool_of(peer.snapshot())["queued"] == 4
        assert len(peer.pushed) >= 3, "they still wait, and nothing is pushed"
        first.kill()
        for job in (waiting, *more):
            job.wait(DEADLINE_S)
        pool = pool_of(peer.snapshot())
        assert (pool["queued"], pool["oldest"]) == (0, 0)
        assert pool["seconds"]["queue"]["sum"] > 0.4
