# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of the resource manager: complete, limited in size, and set aside if damaged."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iosd_host.manager import state_store
from iosd_host.manager.state_store import (
    LEVELS,
    PEOPLE,
    POLICY,
    Change,
    FolderLock,
    Override,
    StateError,
    StateStore,
    merge,
)
from tests.harness import SOURCE


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    made = StateStore(tmp_path)
    made.database.execute(
        "PRAGMA synchronous = OFF"
    )  # a test's hundreds of transactions need no disk
    yield made
    made.close()


def test_overrides_and_changes_survive(tmp_path: Path, store: StateStore) -> None:
    one = Override("pool", "default", "max", 3, "root (local)", "tonight's batch", 12.5)
    two = Override("workers", "", "count", 2, "root (local)", "", 13.0)
    change = Change("t", "pool.set", one.by, one.why, {"max": 2}, {"max": 3}, "default", 12.5)
    store.change([change], put=[one, two])
    store.change([Change("t", "policy", "policy", "idle", at=14.0)], drop=[two])
    store.close()
    again = StateStore(tmp_path)
    assert again.overrides("t") == [one]
    assert again.overrides("other") == []
    first, second = again.changes("t")
    assert first.fields() == change.fields() | {"id": 1}
    assert first.fields() == {
        "id": 1,
        "at": 12500,
        "target": "t",
        "pool": "default",
        "what": "pool.set",
        "by": "root (local)",
        "why": "tonight's batch",
        "was": {"max": 2},
        "is": {"max": 3},
    }
    assert (second.by, second.was, second.id) == ("policy", None, 2)
    assert again.changes(None, since=1) == [second]
    assert again.changes("t", most=1) == [second]
    assert (tmp_path / "state.sqlite").stat().st_mode & 0o777 == 0o600


def test_changes_of_somebody(store: StateStore) -> None:
    """However many the policy has made since."""
    for by, pool in (("alice (console)", "a"), ("alice", None), ("alicent (local)", "b")):
        store.change([Change("t", "pool.set", by, "", pool=pool)])
    store.change([Change("t", "link", "iosd-manager", "boot", pool="a")])
    store.change([Change("t", POLICY, POLICY, str(n), pool="a") for n in range(300)])

    def makers(**which: Any) -> list[str]:
        return [each.by for each in store.changes("t", most=5, **which)]

    assert makers() == [POLICY] * 5
    assert makers(who=PEOPLE) == ["alice (console)", "alice", "alicent (local)"]
    assert makers(who="alice") == ["alice (console)", "alice"]
    assert makers(who="alice (console)") == ["alice (console)"]
    assert makers(who="nobody") == []
    assert makers(who=PEOPLE, pool="a") == ["alice (console)"]
    assert makers(who=POLICY, pool="a") == [POLICY] * 5
    assert makers(pool="b") == ["alicent (local)"]


def test_log_is_bounded(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "CHANGES_MOST", 50)
    monkeypatch.setattr(state_store, "PRUNE_EVERY", 10)
    for n in range(20):
        store.change([Change("t", "policy", "policy", str(10 * n + i)) for i in range(10)])
    left = store.changes("t", most=10_000)
    assert [int(each.why) for each in left] == list(range(150, 200))


def test_log_is_bounded_over_many_short_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A manager that restarted before it had written so many removed none, ever."""
    monkeypatch.setattr(state_store, "CHANGES_MOST", 5)
    for run in range(4):
        store = StateStore(tmp_path)
        store.change([Change("t", "policy", "policy", str(3 * run + i)) for i in range(3)])
        left = store.changes("t")
        store.close()
    assert [int(each.why) for each in left] == list(range(7, 12))


def test_usage_is_summed_over_boots(store: StateStore) -> None:
    store.put_usage("t", "b1", {"alice": {"finished": 3, "run_usec": 10}})
    store.put_usage("t", "b1", {"alice": {"finished": 5, "run_usec": 20}})
    store.put_usage("t", "b2", {"bob": {"finished": 1}})
    store.put_usage("t", "b2", {"alice": {"finished": 1, "calls": 7}, "bob": {"finished": 2}})
    store.put_usage("other", "b9", {"alice": {"finished": 100}})
    assert store.usage("t") == {
        "alice": {"finished": 6, "run_usec": 20, "calls": 7},
        "bob": {"finished": 2},
    }


def test_principals_are_bounded(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "PRINCIPALS_MOST", 2)
    store.put_usage("t", "b1", {f"p{n}": {"finished": n} for n in range(6)})
    store.put_usage("t", "b2", {})
    sums = store.usage("t")
    assert sum(each["finished"] for each in sums.values()) == 15
    assert set(sums) == {"(others)", "p4", "p5"}


def test_history_is_thinned(store: StateStore) -> None:
    end = 3600
    for at in range(0, end, 10):
        pool = {"busy": at % 60 / 10, "queued": at, "ended": at}
        store.put_load("t", at, {"pools": {"default": pool}})
    fine, minutes, quarters = (store.history("t", 0, step, 10_000) for step, _ in LEVELS)
    assert [row["at"] for row in fine] == list(range(0, end * 1000, 10_000))
    assert [row["at"] for row in minutes] == list(range(0, (end - 60) * 1000, 60_000))
    assert [row["at"] for row in quarters] == list(range(0, (end - 900) * 1000, 900_000))
    assert minutes[5]["pools"]["default"] == {"busy": 2.5, "queued": 350, "ended": 350}
    assert quarters[1]["pools"]["default"]["queued"] == 1790
    assert store.history("t", 0, 20, most=3) == fine[-3:]


def test_history_is_bounded(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_store, "LEVELS", ((10, 100), (60, 600), (900, 3600)))
    for at in range(0, 8_000, 10):
        store.put_load("t", at, {"x": at})
    [(rows,)] = store.database.execute("SELECT count(*) FROM history")
    assert rows <= 11 + 11 + 5
    store.put_load("t", 500, {"x": 1})  # somebody set the clock back
    assert [row["at"] for row in store.history("t", 0, 10)] == [500_000]


def test_merge() -> None:
    loads: list[dict[str, Any]] = [
        {"queued": 1, "io": None},
        {"queued": 3, "busy": 1},
        {"queued": 2, "busy": 2, "ended": 9},
    ]
    assert merge(loads) == {"queued": 3, "io": None, "busy": 1.5, "ended": 9}


def test_a_change_as_a_line_of_the_log() -> None:
    change = Change("disk", "policy", "policy", "none waits", {"active": 2}, {"active": 1}, "p")
    assert str(change) == "disk: pool p: active 2 -> 1, by policy: none waits"
    change = Change("disk", "workers.set", "ada", now={"count": 4})
    assert str(change) == "disk: workers.set, count None -> 4, by ada"


def test_damaged_file_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    StateStore(tmp_path).close()
    (tmp_path / "state.sqlite").write_bytes(os.urandom(8192))
    store = StateStore(tmp_path)
    assert store.changes() == []
    assert "is damaged" in caplog.text
    assert len(list(tmp_path.glob("state.damaged-*"))) == 1


def test_later_release_is_refused(tmp_path: Path, store: StateStore) -> None:
    store.database.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StateError, match="version 99"):
        StateStore(tmp_path)
    with sqlite3.connect(tmp_path / "state.sqlite") as left:
        assert left.execute("PRAGMA user_version").fetchone() == (99,)


def test_folder_belongs_to_one(tmp_path: Path) -> None:
    one, two = FolderLock(tmp_path / "new"), FolderLock(tmp_path / "new")
    assert one.take()
    assert not two.take()
    assert two.holder() == str(os.getpid())
    one.close()
    assert two.take()
    two.close()


WRITER = """
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from iosd_host.manager.state_store import Change, Override, StateStore
store = StateStore(Path(sys.argv[1]))
for n in range(10**9):
    store.change([Change("t", str(n), "a")], put=[Override("pool", "p", "max", n)])
    print(n, flush=True)
"""


def test_killed_while_writing(tmp_path: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path], cwd=SOURCE, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        said += writer.stdout.readlines()
        writer.stdout.close()
        last = int([line for line in said if line.endswith("\n")][-1])
        store = StateStore(tmp_path)
        [override], [change] = store.overrides("t"), store.changes("t", most=1)
        assert override.value == int(change.what)  # both or none
        assert override.value in (last, last + 1)  # what was acknowledged is there
        store.close()
