# SPDX-License-Identifier: GPL-2.0-or-later
"""Every request of the control socket, every refusal, and who may change something."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iosd_host.control import messages
from iosd_host.control.messages import Frame, TargetError, Type
from tests.conftest import MakeHarness
from tests.control.conftest import HELD_S
from tests.control.peer import Peer
from tests.harness import SOURCE, Harness
from tests.waiting import until

CHANGES = [Type.WORKERS, Type.POOL, Type.RECYCLE, Type.PRINCIPAL, Type.SHED, Type.RELOAD]
CHANGE: dict[Type, dict[str, object]] = {
    Type.WORKERS: {"count": 3},
    Type.POOL: {"name": "default", "spares": 1},
    Type.RECYCLE: {"name": "default"},
    Type.PRINCIPAL: {"name": "ann", "weight": 2},
    Type.SHED: {"on": 0},
    Type.RELOAD: {},
}
LEASE_S = 3.0


# ---- HELLO ----


@pytest.mark.parametrize("kind", [each for each in Type if Type.HELLO < each < Type.WELCOME])
def test_hello_comes_first(harness: Harness, path: Path, kind: Type) -> None:
    with Peer(path, role=None) as peer:
        assert peer.code(kind) == "hello"
        assert peer.hello("tool")["role"] == "tool"


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"role": "king"}, "bad-value"),
        ({"role": ""}, "bad-value"),
        ({"role": "managers"}, "bad-value"),
        ({"who": ""}, "bad-value"),
        ({"who": "x" * 129}, "bad-value"),
        ({"who": None}, "bad-value"),
        ({"versions": "2-3"}, "version"),
        ({"versions": "1"}, "version"),
        ({"versions": "one"}, "version"),
        ({"more": "1"}, "bad-value"),
    ],
)
def test_bad_hello(harness: Harness, path: Path, keys: dict[str, str | None], code: str) -> None:
    with Peer(path, role=None) as peer:
        good: dict[str, object] = {"role": "manager", "who": "x", "versions": "1-1"}
        assert peer.code(Type.HELLO, **good | keys) == code
        assert peer.code(Type.SNAPSHOT) == "hello"
        assert peer.ask(Type.HELLO, **good | {"who": "x" * 128, "versions": "0-7"})


def test_welcome(harness: Harness, path: Path) -> None:
    with Peer(path, role="manager", who="first") as peer, Peer(path) as tool:
        assert peer.welcome is not None
        assert tool.welcome is not None
        assert peer.welcome | {"role": "tool"} == tool.welcome
        assert (peer.welcome["version"], peer.welcome["role"]) == (1, "manager")
        assert (peer.welcome["manager"], peer.welcome["lease"]) == ("first", HELD_S)
        boot = peer.snapshot()["target"]["boot"]
        assert (peer.welcome["boot"], len(boot)) == (boot, 32)
    harness.restart()
    with Peer(path) as peer:
        assert peer.snapshot()["target"]["boot"] != boot


# ---- one manager ----


def test_two_managers(harness: Harness, path: Path) -> None:
    with (
        Peer(path, "manager", "first") as first,
        Peer(path, "manager", "second") as second,
        Peer(path) as tool,
    ):
        assert second.welcome is not None
        assert (second.welcome["role"], second.welcome["manager"]) == ("standby", "first")
        for kind in CHANGES:
            assert second.code(kind, **CHANGE[kind]) == "not-manager"
            assert tool.code(kind, **CHANGE[kind]) == "managed"
        assert first.ask(Type.WORKERS, count=5)
        for each in (first, second, tool):
            reading = each.snapshot()
            assert reading["manager"]["who"] == "first"
            assert reading["manages"] == (each is first)
            assert reading["workers"]["count"] == 5
        first.close()
        until(lambda: second.snapshot()["manager"] is None, "the lease is still held")
        assert second.code(Type.WORKERS, count=6) == "not-manager"
        assert tool.ask(Type.WORKERS, count=7)["is"] == {"count": "7"}
        assert second.hello("manager")["role"] == "manager"
        assert tool.code(Type.WORKERS, count=8) == "managed"
        assert second.hello("tool")["role"] == "tool"
        assert tool.snapshot()["manager"] is None


def test_manager_that_stands_still_is_replaced(path: Path, make_harness: MakeHarness) -> None:
    """It sleeps for longer than its lease: the next takes over, and it is told when it goes on.  Of another
    target it is one that is heard of all the time."""
    harness = make_harness(memory=1, control=path)
    elsewhere = path.with_name("elsewhere")
    make_harness(memory=1, control=elsewhere)
    script = (
        "import sys\nfrom pathlib import Path\nfrom tests.control.peer import Peer, TargetError, Type\n"
        "with Peer(Path(sys.argv[1]), 'manager', 'sleeper') as peer:\n"
        "    print(peer.snapshot()['target']['monotonic'])\n"
        "    print(peer.ask(Type.WORKERS, count=9)['is']['count'], flush=True)\n"
        "    sys.stdin.readline()\n"
        "    print(peer.code(Type.WORKERS, count=10), flush=True)\n"
        "    print(peer.hello('manager')['role'], flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=SOURCE, stdin=pipe, stdout=pipe, text=True) as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdin is not None
        began = float(sleeper.stdout.readline())
        assert sleeper.stdout.readline() == "9\n"
        os.kill(sleeper.pid, signal.SIGSTOP)
        try:
            with Peer(path) as following, Peer(elsewhere) as other:
                assert following.welcome is not None
                assert following.welcome["lease"] == LEASE_S
                heard = [other.snapshot()["target"]["monotonic"]]
                other.hello("manager")

                def lease_ended() -> bool:
                    heard.append(other.snapshot()["target"]["monotonic"])
                    return following.snapshot()["manager"] is None

                until(lease_ended, "the lease never ends", pause=0.05)
                assert following.snapshot()["target"]["monotonic"] >= began + LEASE_S
                last = other.snapshot()
                heard.append(last["target"]["monotonic"])
                silent = max(b - a for a, b in zip(heard, heard[2:], strict=False))
                assert last["manages"] or silent >= LEASE_S, "only if this test stood still, too"
                assert following.hello("manager", "next")["role"] == "manager"
                os.kill(sleeper.pid, signal.SIGCONT)
                sleeper.stdin.write("\n")
                sleeper.stdin.flush()
                assert sleeper.stdout.readline() == "not-manager\n"
                role = sleeper.stdout.readline()
                after = following.snapshot()
                assert role == "standby\n" or (role == "manager\n" and not after["manages"])
                assert after["workers"]["count"] == 9
        finally:
            sleeper.kill()
    words = "no resource manager any more: sleeper has not been heard of"
    until(lambda: words in harness.log.read_text(), words)


# ---- requests ----


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (Type.SNAPSHOT, {"all": 1}),
        (Type.SNAPSHOT, {"why": "because"}),
        (Type.WATCH, {}),
        (Type.WATCH, {"interval_ms": 19}),
        (Type.WATCH, {"interval_ms": 60001}),
        (Type.WATCH, {"interval_ms": "soon"}),
        (Type.WORKERS, {}),
        (Type.WORKERS, {"count": 0}),
        (Type.WORKERS, {"count": 65}),
        (Type.WORKERS, {"count": "4 "}),
        (Type.WORKERS, {"count": "18446744073709551616"}),
        (Type.WORKERS, {"count": 4, "counts": 4}),
        (Type.WORKERS, {"count": 4, "why": "x" * 256}),
        (Type.POOL, {"name": "default"}),
        (Type.POOL, {"spares": 1}),
        (Type.POOL, {"name": "default", "mux": 1}),
        (Type.POOL, {"name": "default", "set": "x"}),
        (Type.POOL, {"name": "default", "max": "1;min=0"}),
        (Type.POOL, {"name": "default", "active": "2", "mode": "asleep"}),
        (Type.POOL, {"name": "default", "spares": "1" * 5000}),
        (Type.PRINCIPAL, {"name": "ann"}),
        (Type.PRINCIPAL, {"weight": 2}),
        (Type.PRINCIPAL, {"name": "ann", "weight": 0}),
        (Type.PRINCIPAL, {"name": "ann", "weight": 1001}),
        (Type.PRINCIPAL, {"name": "ann", "weight": 2, "at_once": "many"}),
        (Type.PRINCIPAL, {"name": "x" * 600, "weight": 2}),
        (Type.USAGE, {"after": "x" * 600}),
        (Type.USAGE, {"before": "ann"}),
        (Type.SHED, {}),
        (Type.SHED, {"on": 2}),
    ],
)
def test_bad_values(harness: Harness, path: Path, kind: Type, keys: dict[str, object]) -> None:
    with Peer(path) as peer:
        before = peer.snapshot()
        assert peer.code(kind, **keys) == "bad-value"
        after = peer.snapshot()
        assert after["pools"] == before["pools"]
        assert after["workers"]["count"] == before["workers"]["count"]


@pytest.mark.parametrize(
    "text", [b"count=4", b"count\n", b"=4\n", b"count=\xff\n", b"count=4\ncount=5\n", b"\n"]
)
def test_bad_text(harness: Harness, path: Path, text: bytes) -> None:
    with Peer(path) as peer:
        peer.send(messages.encode(Frame(Type.WORKERS, 9, text)))
        frame = peer.receive()
        assert frame.serial == 9
        with pytest.raises(TargetError) as caught:
            messages.answer_fields(frame)
        assert caught.value.code == "bad-value"


def test_too_many_keys(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        assert peer.code(Type.POOL, **{f"key_{n}": n for n in range(40)}) == "bad-value"


def test_workers(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        answer = peer.ask(Type.WORKERS, count=12, by="ann", why="a long queue, 'again'")
        assert (answer["was"], answer["is"]) == ({"count": "4"}, {"count": "12"})
        assert peer.snapshot()["workers"]["count"] == 12
        assert peer.ask(Type.WORKERS, count=1)["was"] == {"count": "12"}
        assert harness.osd.create_partition()
        until(lambda: peer.snapshot()["workers"]["busy"] == 0, "workers that are not needed stay")
    text = harness.log.read_text()
    assert "workers: count=4 -> count=12, by test for ann: a long queue, \\x27again\\x27" in text


def test_pool(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        keys = {"max": 5, "min": 0, "warm_spare": 2, "queue": 7, "mode": "paused"}
        before = peer.snapshot()["pools"][0]
        answer = peer.ask(Type.POOL, name="default", **keys, by="ann", why="quiet")
        assert answer["is"] == {key: str(value) for key, value in keys.items()}
        assert answer["was"] == {
            "max": str(before["max"]),
            "min": str(before["min"]),
            "warm_spare": str(before["warm_spare"]),
            "queue": str(before["queue_max"]),
            "mode": "running",
        }
        now = peer.snapshot()["pools"][0]
        shown = (now["max"], now["min"], now["warm_spare"], now["queue_max"], now["mode"])
        assert shown == (5, 0, 2, 7, "paused")
        assert peer.ask(Type.POOL, name="default", active=3)["is"] == {"active": "3"}
        assert peer.ask(Type.POOL, name="default", spares=3)["is"] == {"spares": "3"}
        now = peer.snapshot()["pools"][0]
        assert now["spares"] == now["warm_spare"] == 3, "its name of before"
        assert peer.snapshot()["pools"][0]["active"] == 3
        share = {"cpu_share": 50, "bandwidth": 1 << 20, "deadline": 1_500_000}
        assert peer.ask(Type.POOL, name="default", **share)["was"] == {
            "cpu_share": "100",
            "bandwidth": "0",
            "deadline": "0",
        }
        now = peer.snapshot()["pools"][0]
        assert (now["cpu_share"], now["bandwidth"], now["deadline"]) == (50, 1 << 20, 1.5)
        assert peer.code(Type.POOL, name="default", cpu_share=101) == "bad-value"
        assert peer.code(Type.POOL, name="nosuch", active=1) == "no-such-pool"
    until(lambda: "for ann: quiet" in harness.log.read_text())


def test_principal_and_usage(harness: Harness, path: Path) -> None:
    names = [f'user {number:02} "é"' for number in range(40)]
    with Peer(path) as peer:
        assert peer.ask(Type.USAGE) | {"principals": []} == peer.ask(Type.USAGE)
        answer = peer.ask(Type.PRINCIPAL, name=names[0], weight=7, queue=3, why="first")
        assert answer["was"] == {"weight": "1", "queue": "0"}
        assert answer["is"] == {"weight": "7", "queue": "3"}
        for name in names[1:]:
            peer.ask(Type.PRINCIPAL, name=name, at_once=2)
        parts = [peer.ask(Type.USAGE)]
        while parts[-1]["more"]:
            parts.append(peer.ask(Type.USAGE, after=parts[-1]["principals"][-1]["name"]))
        listed = [each for part in parts for each in part["principals"]]
        assert [each["name"] for each in listed] == names
        assert len(parts) == 2
        first = listed[0]
        assert (first["weight"], first["queue"], first["at_once"]) == (7, 3, 0)
        assert first["accepted"] == first["cpu_seconds"] == 0
    text = harness.log.read_text()
    assert "weight=1;queue=0 -> weight=7;queue=3, by test: first" in text


def test_shed(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        assert peer.snapshot()["shedding"] is False
        assert peer.ask(Type.SHED, on=True)["was"] == {"on": "0"}
        assert peer.snapshot()["shedding"] is True
        assert peer.ask(Type.SHED, on=False)["was"] == {"on": "1"}
        assert peer.snapshot()["shedding"] is False


def test_shedding_ends_with_its_manager(harness: Harness, path: Path) -> None:
    """Nobody would end it."""
    with Peer(path) as tool:
        with Peer(path, "manager") as manager:
            manager.ask(Type.SHED, on=True)
            assert tool.snapshot()["shedding"] is True
        until(lambda: tool.snapshot()["shedding"] is False, "it still sheds")


def test_recycle(harness: Harness, path: Path) -> None:
    """Without iosd-sandboxd there is nothing to be done, and all will be new."""
    with Peer(path) as peer:
        assert peer.ask(Type.RECYCLE, name="default", by="ann")
        assert peer.code(Type.RECYCLE, name="nosuch") == "no-such-pool"


def test_reload(make_harness: MakeHarness, path: Path) -> None:
    file = path.with_name("pools")
    file.write_text("name=default;max=2;queue=5\n")
    harness = make_harness(memory=1, control=path, pools=file)
    with Peer(path) as peer:
        assert peer.ask(Type.RELOAD)["changed"] == []
        file.write_text("name=default;max=3;queue=5\nname=extra;max=1\n")
        changed = peer.ask(Type.RELOAD, by="ann", why="more")["changed"]
        assert [line.split(":")[0] for line in changed] == ["default", "extra"]
        assert [pool["name"] for pool in peer.snapshot()["pools"]] == ["default", "extra"]
        before = peer.snapshot()["pools"]
        file.write_text("name=default;max=3;queue=6\nname=extra;mux=1\n")
        assert peer.code(Type.RELOAD) == "bad-value"
        assert peer.snapshot()["pools"] == before
    until(lambda: "by test for ann: more" in harness.log.read_text())


def test_reload_without_a_file(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        assert peer.code(Type.RELOAD) == "bad-value"


def test_watch(harness: Harness, path: Path) -> None:
    with Peer(path) as peer:
        start = peer.snapshot()["target"]["monotonic"]
        peer.ask(Type.WATCH, interval_ms=100)
        times = [peer.push()["target"]["monotonic"] for _ in range(4)]
        # A reading may be late by itself: the next one then follows it sooner, but not its time.
        assert all(at >= start + 0.1 * number for number, at in enumerate(times, 1))
        assert peer.code(Type.WORKERS) == "bad-value"
        peer.ask(Type.WATCH, interval_ms=0)
        peer.pushed.clear()
        peer.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            peer.receive()
