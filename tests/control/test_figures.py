# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of SNAPSHOT are what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iosd_host.control.messages import Type
from pyosd import errors, jobs
from pyosd.errors import OSDError
from pyosd.jobs import job_array
from pyosd.types import AttributeValue, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecParams, FunctionCall
from pyosd.wire.transport import Command
from tests.control.peer import Peer
from tests.harness import SOURCE, Harness
from tests.jobs.conftest import Target
from tests.jobs.test_exec import DEADLINE_S, SLEEP, is_running, run
from tests.jobs.test_offload import SIZE, SOON, WORK
from tests.waiting import until

BOUNDS = [*[base * 10.0**power for power in range(-5, 2) for base in (1, 2, 5)][2:-1], 60.0]


MAPS = {"command_seconds", "proxy_call_seconds", "jobs.refused", "rejected", "transactions.aborted"}
MAPS |= {"store.no_space", "offload.decisions", "functions.results.reads"}
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


class Meter:
    """Changes of the figures since it was made.  A context manager."""

    def __init__(self, target: Target) -> None:
        self.peer = Peer(target.folder / "control")
        self.before = self.peer.snapshot()

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    def read(self) -> dict[str, Any]:
        """The figures now, counters as they have grown."""
        grown: dict[str, Any] = since(self.before, self.peer.snapshot())
        return grown

    def pool(self) -> dict[str, Any]:
        """Of the only pool."""
        (found,) = self.read()["pools"]
        assert found["name"] == "default"
        pool: dict[str, Any] = found
        return pool


GAUGES = {
    "queued",
    "oldest",
    "busy",
    "active",
    "places",
    "jobs",
    "warm_seconds",
    "held",
    "running",
    "waiting",
}
GAUGES |= {"taken", "monotonic"}


def since(before: Any, now: Any, name: str = "") -> Any:
    """Numbers by how much they have grown, but for gauges; rows that have grown."""
    if isinstance(now, dict):
        known = before if isinstance(before, dict) else {}
        return {key: since(known.get(key), value, key) for key, value in now.items()}
    if isinstance(now, list):
        if name == "counts" or name == "pools":
            return [since(*pair) for pair in zip(before, now, strict=True)]
        old = {label(row): row["count"] for row in counted(before or [])}
        rows = counted(now)
        grown = [row | {"count": row["count"] - old.get(label(row), 0)} for row in rows]
        return [row for row in grown if row["count"]]
    if isinstance(now, bool) or not isinstance(now, int | float) or name in GAUGES:
        return now
    return now - (before or 0)


def counted(rows: list[Any]) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict) and "count" in row]


def label(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for key, value in row.items() if key != "count")


def finished(pool: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {(each["state"], each["reason"]): each["count"] for each in pool["finished"]}


def test_jobs(served: Target) -> None:
    with Meter(served) as meter:
        for code in ("pass", "print(1)", "raise ValueError"):
            run(served, code).wait(DEADLINE_S)
        sleeping = run(served, SLEEP)
        until(lambda: is_running(sleeping))
        until(lambda: meter.pool()["busy"] == 1, "sandboxes of jobs that ended stay")
        during = meter.pool()
        assert (during["sandboxes"]["taken"], during["ended"]) == (1, 3)
        sleeping.kill()
        sleeping.wait(DEADLINE_S)
        held = run(served, "pass", hold=True)
        assert meter.read()["jobs"]["held"] == 1
        held.kill()
        until(lambda: sum(meter.pool()["sandbox_exits"].values()) >= 4, "used sandboxes stay")
        until(lambda: meter.pool()["sandbox_starts"] >= 3, "no others are started")
        reading = meter.read()
        pool = meter.pool()
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
    assert pool["run_seconds"] == pytest.approx(pool["seconds"]["run"]["sum"])
    assert pool["serving"] is True
    assert pool["sandbox_recycled"] == {"used": 4, "worn": 0, "idle": 0, "asked": 0}
    assert pool["warm_seconds"] > 0
    assert reading["jobs"]["accepted"] == reading["jobs"]["finished"] == 5
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


def test_calls(served: Target) -> None:
    with Meter(served) as meter:
        job = run(served, CALLS)
        until(lambda: meter.pool()["ended"], "it does not end")  # asks by no command
        reading = meter.read()
        status = job.wait(DEADLINE_S)
    found = {(each["command"], each["status"]): each["count"] for each in reading["proxy_calls"]}
    assert found["CREATE", "ok"] == 1
    assert found["WRITE", "ok"] == 20
    assert found["SETATTR", "invalid"] == 1
    assert found["FINISH", "ok"] == 1
    assert sum(found.values()) == status.calls
    assert reading["proxy_calls_gave_way"] == 0  # there were no commands to give way to
    assert 2 <= total(reading["proxy_call_seconds"]["data"]) <= 3


def test_array_counts_its_members(served: Target) -> None:
    with Meter(served) as meter:
        array = job_array.submit(served.commands, "pass", zone=served.partition, array=range(5))
        array.wait(DEADLINE_S)
        pool = meter.pool()
    assert (pool["arrived"], pool["started"], pool["ended"]) == (5, 5, 5)
    assert finished(pool) == {("COMPLETED", 0): 5}


def test_refused_and_retried(served: Target) -> None:
    with Meter(served) as meter:
        meter.peer.ask(Type.SHED, on=True)
        with pytest.raises(errors.TargetBusy):
            run(served, "pass")
        meter.peer.ask(Type.SHED, on=False)
        run(served, "raise SystemExit(75)", retry_exit=75).wait(DEADLINE_S)
        figures = meter.read()["jobs"]
    assert figures["refused"]["shed"] == 1
    assert sum(figures["refused"].values()) == 1
    assert figures["retried"] == [{"reason": 202, "count": 2}]


def test_jobs_that_wait(served: Target) -> None:
    """Depth and age of the queue; who watches is told at once, and as long as they wait."""
    with Meter(served) as meter:
        peer = meter.peer
        peer.ask(Type.POOL, name="default", active=1)
        first = run(served, SLEEP)
        until(lambda: is_running(first))
        peer.ask(Type.WATCH, interval_ms=60000)
        waiting = run(served, "pass")
        pushed = since(meter.before, peer.push())["pools"][0]
        assert (pushed["queued"], pushed["busy"], pushed["active"]) == (1, 1, 1)
        assert pushed["oldest"] < 5
        more = [run(served, "pass") for _ in range(3)]
        until(lambda: meter.pool()["oldest"] > 0.1, "the oldest does not age")
        assert meter.pool()["queued"] == 4
        until(
            lambda: bool(peer.snapshot()) and len(peer.pushed) >= 3,
            "they wait, and nothing is pushed",
        )
        with Peer(served.folder / "control") as late:
            late.ask(Type.WATCH, interval_ms=60000)
            assert since(meter.before, late.push())["pools"][0]["queued"] == 4
        first.kill()
        for job in (waiting, *more):
            job.wait(DEADLINE_S)
        pool = meter.pool()
        assert (pool["queued"], pool["oldest"]) == (0, 0)
        assert pool["seconds"]["queue"]["sum"] > 0.1
        peer.ask(Type.POOL, name="default", active=2)


def test_recycle(served: Target) -> None:
    with Meter(served) as meter:
        until(lambda: meter.peer.snapshot()["pools"][0]["ready"] >= 2, "none is kept ready")
        ready = meter.peer.snapshot()["pools"][0]["ready"]
        meter.peer.ask(Type.RECYCLE, name="default", why="a test")
        until(lambda: meter.pool()["sandbox_recycled"]["asked"] >= ready, "none is replaced")
        assert meter.peer.code(Type.RECYCLE, name="nosuch") == "no-such-pool"
        run(served, "pass").wait(DEADLINE_S)


def call_function(served: Target, code: bytes) -> None:
    """Store a function, call it without a record, and remove it."""
    osd = served.commands
    partition = osd.create_partition(PartitionId(0x11))
    function = osd.create_and_write(partition, code)
    osd.activate_function(function)
    named = FunctionCall(partition, function.object_id)
    osd.call_function(ref(served.partition.partition_id), b"", ExecParams(function=named))
    osd.remove_partition(partition, contents=True)


def test_calls_of_functions(served: Target) -> None:
    def calls(reading: dict[str, Any]) -> dict[str, int]:
        assert {each["signer"] for each in reading["functions"]["calls"]} == {""}
        return {each["outcome"]: each["count"] for each in reading["functions"]["calls"]}

    call_function(served, b"def main(args):\n    pass\n")
    with Peer(served.folder / "control") as peer:
        before = calls(peer.snapshot())
        call_function(served, b"def main(args):\n    raise ValueError\n")
        call_function(served, b"def main(args):\n    pass\n")
        after = peer.snapshot()
    assert calls(after) == {
        "completed": before["completed"] + 1,
        "failed": before["failed"] + 1,
    }
    assert (after["functions"]["active"], after["functions"]["reserved_bytes"]) == (0, 0)


def test_the_page_has_every_field(served: Target) -> None:
    """And no other.  Unknown figures are absent; every kind has at least one value."""
    text = (SOURCE / "docs" / "control.md").read_text()
    table = text.split("## What SNAPSHOT has")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    told = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    run(served, "raise SystemExit(75)", retry_exit=75).wait(DEADLINE_S)
    call_function(served, b"def main(args):\n    pass\n")
    obj = served.commands.create(served.partition.partition_id)
    served.commands.write(obj, 0, bytes(SIZE))
    jobs.submit(served.commands, WORK, zone=obj, home=SOON).wait(DEADLINE_S)
    with pytest.raises(errors.PushedBack):
        jobs.submit(served.commands, WORK, zone=obj, home=SOON)
    quota = AttributeValue(Page.PARTITION_QUOTAS, 0x10001, (1 << 40).to_bytes(8, "big"))
    served.commands.set_attributes(ref(served.partition.partition_id), [quota])
    with Peer(served.folder / "control") as peer:
        without = set(fields(peer.snapshot()))
        peer.hello("manager")
        assert set(fields(peer.snapshot())) | without == told
