# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's actions on a target and its answers, with a target that sends prepared readings."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from iosd_host.config.schema import Setting
from iosd_host.control.link import LOST, MANAGER, STANDBY
from iosd_host.control.messages import Type
from iosd_host.manager import manager as module
from iosd_host.manager.keys import ADMIN, KeyHolder
from iosd_host.manager.manager import Manager
from iosd_host.manager.methods import methods
from iosd_host.manager.requests import SCHEMA, Requests
from iosd_host.manager.settings import TargetSettings, configured
from iosd_host.manager.state_store import Change, StateStore
from iosd_host.manager.target import ManagedTarget
from iosd_host.policy.events import Bounds, Decision, Load, SetActive, SetSpares, SetWorkers, Shed
from tests.manager.fake_target import FakeTarget, faked, pool, until
from tests.manager.test_link import QUICK
from tests.manager.test_server import in_loop

ROOT = KeyHolder("local", ADMIN)
BASE = {
    "pools.default.max": Setting("4", "/etc/iosd/iosd.toml"),
    "pools.default.limits.mem": Setting("256MiB", "default"),
    "manager.workers.min": Setting("1", "default"),
    "manager.workers.max": Setting("6", "default"),
    "manager.scale.interval": Setting("20ms", "default"),
}


class Script:
    """A policy that says what it is told to, once each."""

    def __init__(self) -> None:
        self.next: list[list[Decision]] = []
        self.seen: list[tuple[Load, Bounds]] = []
        self.fails = False

    def step(self, load: Load, bounds: Bounds) -> Sequence[Decision]:
        self.seen.append((load, bounds))
        if self.fails:
            raise ZeroDivisionError
        return self.next.pop(0) if self.next else []


class Desk:
    """A manager at work, and an administrator's requests to it."""

    def __init__(self, manager: Manager, script: Script) -> None:
        self.manager = manager
        self.script = script
        self.requests = Requests(methods(manager))

    @property
    def target(self) -> ManagedTarget:
        return self.manager.targets["t"]

    async def ask(self, method: str, why: str = "", **params: Any) -> Any:
        fields = {"schema": SCHEMA, "id": 1, "method": method, "params": params}
        body = json.dumps(fields | {"user": "ann", "why": why}).encode()
        answer = json.loads(await self.requests.answer(ROOT, body))
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]

    async def refused(self, method: str, **params: Any) -> dict[str, str]:
        with pytest.raises(AssertionError) as error:
            await self.ask(method, **params)
        return dict(error.value.args[0])

    async def log(self, *what: str, least: int = 0) -> list[dict[str, Any]]:
        """Lines of the log of changes of these kinds, once there are so many."""
        async with asyncio.timeout(50):
            while True:
                found = (await self.ask("changes"))["changes"]
                rows = [each for each in found if each["what"] in what]
                if len(rows) >= least:
                    return rows
                await asyncio.sleep(0.01)


@asynccontextmanager
async def managing(folder: Path, *paths: Path, base: Any = None) -> AsyncIterator[Desk]:
    manager, script = Manager(StateStore(folder), lambda name: {}), Script()
    for name, path in zip("tu", paths, strict=False):
        settings = TargetSettings(BASE if base is None else base, manager.store.overrides(name))
        manager.add(ManagedTarget(name, path, "test", settings, lambda: script, manager.log, QUICK))
    running = asyncio.create_task(manager.run())
    try:
        yield Desk(manager, script)
    finally:
        assert not running.done()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        manager.close()


async def ready(desk: Desk) -> None:
    await until(lambda: desk.target.link.role == MANAGER and desk.script.seen)


async def next_reading(desk: Desk) -> None:
    load = desk.target.load
    await until(lambda: desk.target.load is not load)


def told(target: FakeTarget, kind: Type = Type.POOL) -> list[dict[str, str]]:
    """Requests to the target, without author and reason."""
    return [
        {key: value for key, value in keys.items() if key not in ("by", "why")}
        for each, keys in target.changes
        if each == kind
    ]


@in_loop
async def test_a_change_right_after_the_start_waits_for_the_target(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await desk.ask("pool.set", target="t", pool="default", values={"max": 3})
        assert told(target) == [{"name": "default", "max": "3"}]
    (folder / "two").mkdir()
    async with managing(folder / "two", folder / "absent") as desk:
        error = await desk.refused("pool.set", target="t", pool="default", values={"max": 3})
        assert "cannot connect" in error["message"]


@in_loop
async def test_policy_decides(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        load, bounds = desk.script.seen[-1]
        assert (load.workers.count, load.pools[0].name, load.pools[0].max) == (2, "default", 4)
        assert bounds.workers == (1, 6)
        desk.script.next = [
            [SetActive("default", 3, "jobs wait"), SetSpares("default", 5, "they come fast")],
            [SetWorkers(4, "commands wait"), Shed(True, "no room")],
        ]
        await until(lambda: len(target.changes) == 4)
        assert target.changes[0][1] == {
            "name": "default",
            "active": "3",
            "by": "policy",
            "why": "jobs wait",
        }
        assert told(target)[1] == {"name": "default", "warm_spare": "5"}
        assert told(target, Type.WORKERS) == [{"count": "4"}]
        assert told(target, Type.SHED) == [{"on": "1"}]
        lines = [
            (each["pool"], each["was"], each["is"]) for each in await desk.log("policy", least=4)
        ]
        assert lines[:3] == [
            ("default", {"active": 1}, {"active": 3}),
            ("default", {"warm_spare": 2}, {"warm_spare": 5}),
            (None, {"count": 2}, {"count": 4}),
        ]
        [status] = (await desk.ask("status"))["targets"]
        assert (status["workers"]["why"], status["workers"]["max"]) == ("commands wait", 6)
        assert (status["pools"][0]["why"], status["pools"][0]["by"]) == ("jobs wait", "policy")
        assert desk.target.decisions == {("default", "up"): 1, ("workers", "up"): 1}


@in_loop
async def test_a_decision_that_is_refused(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        target.refuse[Type.POOL] = ("bad-value", "no")
        desk.script.next = [[SetActive("default", 3, "jobs wait")]]
        await until(lambda: target.refused)
        target.refuse.clear()
        desk.script.next = [[SetActive("default", 2, "jobs wait")]]
        await until(lambda: target.changes)
        assert [each["is"] for each in await desk.log("policy", least=1)] == [{"active": 2}]


@in_loop
async def test_administrators_change_pools(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        values = {"max": "6", "limits.mem": "512MiB", "scale.cooldown": "2s"}
        assert await desk.ask("pool.set", "tonight", pool="default", values=values) == {
            "target": "t",
            "pool": "default",
            "was": {"max": "4", "limits.mem": "256MiB", "scale.cooldown": None},
            "is": values,
            "note": "takes effect as jobs arrive; for jobs that come from now on",
        }
        words = {"name": "default", "max": "6", "memory": str(512 << 20)}
        assert told(target) == [words]
        assert target.changes[0][1]["by"] == "ann (local)"
        assert desk.target.bounds.pools["default"].cooldown == 2.0

        await desk.ask("pool.scale", pool="default", active=2)
        assert told(target)[-1] == {"name": "default", "active": "2"}
        assert not desk.target.bounds.pools["default"].auto
        await desk.ask("pool.scale", pool="default", auto=True, min=0, max=3)
        assert told(target)[-1] == {"name": "default", "min": "0", "max": "3"}
        assert desk.target.bounds.pools["default"].auto

        await desk.ask("pool.drain", pool="default")
        await desk.ask("pool.pause", pool="default")
        found = await desk.ask("pool.resume", pool="default")
        assert (found["was"], found["is"]) == ({"mode": "paused"}, {"mode": "running"})
        modes = [words["mode"] for words in told(target) if "mode" in words]
        assert modes == ["draining", "paused", "running"]
        await desk.ask("pool.recycle", pool="default")
        assert told(target, Type.RECYCLE) == [{"name": "default"}]

        shown = {each["key"]: each for each in (await desk.ask("config.show"))["settings"]}
        row = shown["pools.default.limits.mem"]
        assert (row["value"], row["origin"], row["by"]) == ("512MiB", "live", "ann (local)")
        assert (row["why"], row["was"]) == ("tonight", "256MiB")
        assert shown["manager.workers.max"]["origin"] == "default"
        assert "pools.default.mode" not in shown

        found = await desk.ask("pool.reset", pool="default", keys=["max", "max"])
        assert (found["was"], found["is"]) == ({"max": "3"}, {"max": "4"})
        await desk.ask("pool.reset", pool="default")
        assert told(target)[-1] == {"name": "default", "memory": str(256 << 20)}
        shown = {each["key"]: each for each in (await desk.ask("config.show"))["settings"]}
        assert {each["origin"] for each in shown.values()} == {"default", "/etc/iosd/iosd.toml"}
        lines = await desk.log("pool.set", "pool.scale", "pool.drain", "pool.recycle", "pool.reset")
        assert [each["what"] for each in lines][:2] == ["pool.set", "pool.scale"]
        assert (lines[0]["by"], lines[0]["why"]) == ("ann (local)", "tonight")


@in_loop
async def test_workers_and_principals(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        found = await desk.ask("workers.set", count=3)
        assert (found["was"], found["is"]) == (
            {"count": "2", "auto": None},
            {"count": "3", "auto": "false"},
        )
        assert told(target, Type.WORKERS) == [{"count": "3"}]
        assert not desk.target.bounds.workers_scale.auto
        await desk.ask("workers.set", auto=True, min=2, max=5)
        assert desk.target.bounds.workers == (2, 5)
        assert desk.target.bounds.workers_scale.auto
        assert "count" not in desk.target.settings.of("workers")
        await desk.ask("principal.set", principal="alice", weight=5)
        await desk.ask("principal.set", principal="alice", at_once=2)
        share = {"name": "alice", "weight": "5", "queue": "0", "at_once": "2"}
        assert told(target, Type.PRINCIPAL)[-1] == share


@in_loop
async def test_two_changes_of_a_principal_at_once(folder: Path) -> None:
    """Each keeps what the other one sets."""
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        await asyncio.gather(
            desk.ask("principal.set", principal="alice", weight=5),
            desk.ask("principal.set", principal="alice", queue=7),
        )
        share = {"name": "alice", "weight": "5", "queue": "7", "at_once": "0"}
        assert told(target, Type.PRINCIPAL)[-1] == share


class Lines(logging.Handler):
    """What is logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@in_loop
async def test_a_change_is_logged_once(folder: Path) -> None:
    """By the target, if it is told."""
    log, lines = logging.getLogger("iosd"), Lines()
    before, level = log.handlers, log.level
    log.handlers = [lines]
    log.setLevel(logging.INFO)
    try:
        async with faked(folder) as target, managing(folder, target.path) as desk:
            await ready(desk)
            await desk.ask("workers.set", count=3)
            await desk.ask("pool.set", pool="default", values={"max": 3})
            assert not [each for each in lines.lines if ".set" in each]
            await desk.ask("workers.set", auto=True, min=2, max=5)
            assert [each for each in lines.lines if "workers.set" in each]
    finally:
        log.handlers = before
        log.setLevel(level)


@in_loop
async def test_what_cannot_be_changed(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        for method, params, code, words in (
            ("pool.set", {"pool": "default", "values": {"mox": 1}}, "bad-value", "'max'"),
            ("pool.set", {"pool": "default", "values": {"engine": "x"}}, "bad-value", "reload"),
            ("pool.set", {"pool": "default", "values": {"max": 65}}, "bad-value", "1 to 64"),
            ("pool.set", {"pool": "default", "values": {}}, "bad-params", "not empty"),
            ("pool.set", {"pool": "other", "values": {"max": 1}}, "no-such-pool", "default"),
            ("pool.scale", {"pool": "default"}, "bad-params", "say active"),
            ("pool.scale", {"pool": "default", "active": 1, "auto": True}, "bad-params", "follow"),
            ("pool.scale", {"pool": "default", "active": 65}, "bad-params", "0 to 64"),
            ("pool.reset", {"pool": "default", "keys": ["max"]}, "bad-value", "as configured"),
            ("workers.set", {}, "bad-params", "say count"),
            ("workers.set", {"min": 5, "max": 4}, "bad-value", "above"),
            ("principal.set", {"principal": "a"}, "bad-params", "say weight"),
            ("principal.set", {"principal": "a", "weight": 0}, "bad-params", "1 to 1000"),
            ("pool.drain", {"pool": "default", "target": "x"}, "no-such-target", "'x'"),
        ):
            error = await desk.refused(method, **params)
            assert (error["code"], words in str(error)) == (code, True), (method, params, error)
        target.refuse[Type.POOL] = ("bad-value", "beyond the budget")
        error = await desk.refused("pool.set", pool="default", values={"max": "9"})
        assert (error["code"], error["message"]) == ("bad-value", "beyond the budget")
        assert target.changes == []
        assert desk.target.settings.overrides == {}
        assert await desk.log("pool.set") == []


@in_loop
async def test_a_stop_loses_no_line_of_the_log(folder: Path) -> None:
    manager, others = Manager(StateStore(folder), lambda name: {}), threading.Event()
    manager.log(Change("t", "policy", "policy"))
    calls = [
        asyncio.create_task(call)
        for call in (
            manager.stored(others.wait),  # the store has other work, so the lines must wait
            manager._write(),
        )
    ]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    others.set()
    manager.close()
    store = StateStore(folder)
    assert [each.what for each in store.changes()] == ["policy"]
    store.close()


@in_loop
async def test_set_again_in_another_run(folder: Path) -> None:
    async with faked(folder) as target:
        async with managing(folder, target.path) as desk:
            await ready(desk)
            await desk.ask("pool.set", pool="default", values={"max": "3", "queue": "7"})
            await desk.ask("pool.pause", "maintenance", pool="default")
            await desk.ask("workers.set", count=3)
            await desk.ask("principal.set", principal="alice", weight=5)
            await target.stop()
            await until(lambda: desk.target.link.role == LOST)
            target.changes.clear()
            target.boot, target.pools = "b2", [pool("default", mode="running")]
            target.start()
            await until(lambda: desk.target.synced == "b2")
            words = {"name": "default", "max": "3", "queue": "7", "mode": "paused"}
            assert told(target) == [words]
            assert told(target, Type.WORKERS) == [{"count": "3"}]
            assert told(target, Type.PRINCIPAL)[0]["weight"] == "5"
            lines = await desk.log("restored", "link")
            assert [each["is"] for each in lines if each["what"] == "link"] == [
                {"role": MANAGER},
                {"role": LOST},
                {"role": MANAGER},
            ]
            assert "another process" in lines[2]["why"]
            assert (lines[3]["pool"], lines[3]["is"]["mode"]) == ("default", "paused")
            [status] = (await desk.ask("status"))["targets"]
            assert status["role"] == MANAGER
        # The manager itself is restarted: nothing is set twice, everything is remembered.
        target.changes.clear()
        async with managing(folder, target.path) as desk:
            await ready(desk)
            assert desk.target.settings.get("pools.default.mode") == "paused"
            assert target.changes == []
            await target.stop()
            target.boot = "b3"
            target.start()
            await until(lambda: desk.target.synced == "b3")
            assert told(target)[0]["mode"] == "paused"


@in_loop
async def test_what_is_refused_is_set_again_one_by_one(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        await desk.ask("pool.set", pool="default", values={"max": "3", "queue": "7"})
        await target.stop()
        await until(lambda: desk.target.link.role == LOST)
        target.changes.clear()
        target.boot = "b2"
        target.refuse[Type.POOL] = ("bad-value", "beyond the budget")
        target.start()
        await until(lambda: desk.target.synced == "b2")
        assert desk.target.link.role == MANAGER
        lines = await desk.log("restored")
        assert [each["is"] for each in lines] == [{"max": "3"}, {"queue": "7"}]
        assert all("cannot be set again: beyond" in each["why"] for each in lines)


@in_loop
async def test_one_pool_gives_before_another_has(folder: Path) -> None:
    """Values that were set one after the other hold together, and can only be set together
    again."""
    async with faked(folder) as target, managing(folder, target.path) as desk:
        target.slots, target.pools = 8, [pool("default"), pool("numpy")]
        await ready(desk)
        await until(lambda: desk.target.load and len(desk.target.load.pools) == 2)
        await desk.ask("pool.set", pool="numpy", values={"max": "1"})
        await desk.ask("pool.set", pool="default", values={"max": "7"})
        await target.stop()
        await until(lambda: desk.target.link.role == LOST)
        target.changes.clear()
        target.boot, target.pools = "b2", [pool("default"), pool("numpy")]
        target.start()
        await until(lambda: desk.target.synced == "b2")
        assert [words["max"] for words in told(target)] == ["1", "7"]
        assert [each["pool"] for each in await desk.log("restored")] == ["numpy", "default"]


@in_loop
async def test_a_policy_that_fails(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        desk.script.fails = True
        seen = len(desk.script.seen)
        await until(lambda: len(desk.script.seen) > seen + 2)
        await desk.ask("pool.scale", pool="default", active=2)
        desk.script.fails = False
        desk.script.next = [[SetActive("default", 3, "after")]]
        await until(lambda: len(target.changes) == 2)


@in_loop
async def test_no_target_and_standby(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as one:
        await ready(one)
        (folder / "two").mkdir()
        async with managing(folder / "two", target.path) as two:
            await until(lambda: two.target.link.role == STANDBY)
            await until(lambda: two.target.load is not None)
            assert (await two.refused("workers.set", count=3))["code"] == "standby"
            assert (await two.ask("status"))["targets"][0]["pools"][0]["name"] == "default"
            two.script.next = [[SetWorkers(8, "wrong")]]
            for _ in range(3):
                await next_reading(two)
            assert target.changes == []  # it decides nothing
        await target.stop()
        await until(lambda: one.target.link.role == LOST)
        error = await one.refused("workers.set", count=3)
        assert (error["code"], "cannot be reached" in error["message"]) == ("no-target", True)


@in_loop
async def test_usage_over_runs(folder: Path) -> None:
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)

        def row(name: str, finished: int, running: int) -> dict[str, Any]:
            share = {"weight": 1, "queue": 0, "at_once": 0}
            return {"name": name, **share, "running": running, "finished": finished}

        target.principals = [row(name, 2, 1) for name in ("alice", "bob", "carol")]
        await desk.ask("pool.usage")
        await target.stop()
        await until(lambda: desk.target.link.role == LOST)
        assert [each["running"] for each in (await desk.ask("pool.usage"))["principals"]] == [0] * 3
        target.boot, target.principals = "b2", [row("alice", 5, 3)]
        target.start()
        await until(lambda: desk.target.link.boot == "b2")
        found = (await desk.ask("pool.usage"))["principals"]
        assert [(each["name"], each["finished"], each["running"]) for each in found] == [
            ("alice", 7, 3),
            ("bob", 2, 0),
            ("carol", 2, 0),
        ]


def test_history_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS_S", 0.05)

    async def run() -> None:
        async with faked(tmp_path) as target, managing(tmp_path, target.path) as desk:
            target.pools = [pool("default", busy=1, queued=4, oldest=1.5)]
            await ready(desk)
            loads: list[Any] = []
            while not loads or not loads[-1]["pools"]["default"]["queued"]:
                loads = (await desk.ask("history", since=0))["loads"]
                await asyncio.sleep(0.01)
            found = loads[-1]["pools"]["default"]
            assert (found["busy"], found["oldest"], found["active"]) == (1, 1.5, 1)
            assert loads[-1]["workers"] == {"count": 2, "busy": 0, "queued": 0}
            assert loads[-1]["at"] % 10_000 == 0

    asyncio.run(run())


@in_loop
async def test_two_targets(folder: Path) -> None:
    (folder / "u").mkdir()
    async with (
        faked(folder) as one,
        faked(folder / "u") as two,
        managing(folder, one.path, two.path) as desk,
    ):
        await until(
            lambda: all(each.link.role == MANAGER for each in desk.manager.targets.values())
        )
        assert (await desk.refused("workers.set", count=3))["code"] == "no-such-target"
        await desk.ask("workers.set", target="u", count=3)
        assert (told(one, Type.WORKERS), told(two, Type.WORKERS)) == ([], [{"count": "3"}])
        await two.stop()
        await until(lambda: desk.manager.targets["u"].link.role == LOST)
        await desk.ask("workers.set", target="t", count=4)  # one does not wait for the other


def test_a_store_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_S", 0.02)

    async def run() -> None:
        async with faked(tmp_path) as target, managing(tmp_path, target.path) as desk:
            await ready(desk)
            await desk.ask("changes")
            await desk.manager.stored(desk.manager.store.database.execute, "PRAGMA query_only = 1")
            desk.script.next = [[SetActive("default", 3, "jobs wait")]]
            await until(lambda: target.changes)  # the policy goes on
            error = await desk.refused("workers.set", count=3)
            assert (error["code"], "cannot be kept" in error["message"]) == ("failed", True)
            assert told(target, Type.WORKERS) == [{"count": "3"}]
            await desk.manager.stored(desk.manager.store.database.execute, "PRAGMA query_only = 0")
            assert [each["is"] for each in await desk.log("policy", "workers.set", least=2)] == [
                {"active": 3},
                {"count": "3", "auto": "false"},
            ]

    asyncio.run(run())


def test_settings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "iosd.toml"
    path.write_text(
        "[target]\nmemory_budget = '8GiB'\n[manager.workers]\nmin = 2\nmax = 5\n"
        "[manager.scale]\ncooldown = '9s'\n[pools.default]\nmax = 3\n"
        "[pools.default.limits]\nmem = '1GiB'\n[pools.fast.scale]\ninterval = '20ms'\n"
    )
    settings = TargetSettings(configured(path), [])
    bounds = settings.bounds()
    assert (bounds.workers, bounds.memory) == ((2, 5), 8 << 30)
    assert (bounds.pools["default"].cooldown, bounds.pools["fast"].interval) == (9.0, 0.02)
    assert settings.get("pools.default.limits.mem") == "1GiB"
    assert settings.get("pools.default.maximum.mem") == "1GiB"
