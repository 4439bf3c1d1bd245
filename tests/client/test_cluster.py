# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies on several targets: formats, and the verbs on real targets, one of them killed, and with a client
that is killed while it moves copies."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pyosd.cli import main
from pyosd.cluster.many import Many
from pyosd.cluster.map_object import MAP, ClusterMap, MapConflict
from pyosd.cluster.placement import Copies, Seal, place
from pyosd.cluster.targets_file import read_targets
from pyosd.cluster.throttle import Throttle
from pyosd.cluster.upkeep import ClusterReport, Upkeep
from pyosd.errors import NoSpace, SessionLost, StorageError
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from tests import warm
from tests.client.fake_cluster import failure
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing
from tests.waiting import until

PARTITION = PartitionId(0x10000)
OWN = AttributeId(0x10000, 7)
MOVES_SOME = """
from itertools import count
from threading import Event
from pyosd.cli import main
from pyosd.cluster.throttle import Throttle
number = count(1)
Throttle.take = lambda *_: next(number) > 15 and Event().wait()  # in the middle
main()
"""

# ---- formats ---------------------------------------------------------------------------------------


@given(st.binary(max_size=100))
def test_seals_come_back(data: bytes) -> None:
    assert Seal.decode(Seal.of(data).encode().value) == Seal.of(data)


def test_foreign_seals_are_refused() -> None:
    assert Seal.decode(b"") is None
    for value in (b"x", bytes(39), bytes(41)):
        with pytest.raises(ValueError):
            Seal.decode(value)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 60000,
        b'{"version": 0, "targets": []}',
        b'{"version": true, "targets": []}',
        b'{"version": 9007199254740992, "targets": []}',
        b'{"version": 1, "targets": "a"}',
        b'{"version": 1, "targets": [1]}',
    ],
)
def test_foreign_maps_are_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        ClusterMap.decode(value)


def test_no_map_follows_that_targets_could_not_read() -> None:
    """A target that lies about its version spoils the maps of no other."""
    last = ClusterMap.decode(b'{"version": 9007199254740991, "targets": ["a"]}')
    with pytest.raises(MapConflict, match="9007199254740991"):
        last.after(["a", "b"])
    assert ClusterMap.decode(ClusterMap(last.version - 1, ()).after(["a"]).encode()) == last


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no table"),
        ("targets = 1", "no table"),
        ("[targets]", "no table"),
        ("[targets]\na = 1", "not a text"),
        ("[targets]\na = 'iscsi://h'", "is not iscsi://"),
        ("[targets]\na = 'iscsi://u%p@h/t/1'", "has a secret"),
        ("x = 1\n[targets]\na = 'iscsi://h/t/1'", "no such key: 'x'"),
        ("[", "targets.toml: "),
    ],
)
def test_wrong_files_of_targets_are_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text(text)
    with pytest.raises(ValueError, match=why):
        read_targets(tmp_path / "targets.toml")


def test_a_throttle_lets_a_rate_pass() -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(100, lambda: now[0], sleep)
    for _ in range(11):
        throttle.take(50)
    assert now[0] == pytest.approx(5.0) and len(slept) == 10
    now[0] = 100.0  # what was not used is not saved up
    throttle.take(50)
    throttle.take(50)
    assert now[0] == pytest.approx(100.5)
    with pytest.raises(ValueError):
        Throttle(-1)


# ---- verbs without a target ------------------------------------------------------------------------


def test_put_prints_the_objects_that_it_stored_before_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "targets.toml").write_text("[targets]\na = 'iscsi://h/t/1'\n")
    (tmp_path / "file").write_bytes(b"data")
    made = Copies(ref(PARTITION, 0x10000), ("a",))
    monkeypatch.setattr(Many, "put", mock.Mock(side_effect=[made, failure(NoSpace)]))
    words = [str(tmp_path / "file")] * 2
    where = ["--targets", str(tmp_path / "targets.toml"), "-o", "id"]
    done = CliRunner().invoke(main, ["cluster", "put", *words, hex(PARTITION), *where])
    assert done.exit_code and done.stdout.split() == ["0x10000/0x10000"] and done.stderr


def test_a_refusal_names_its_target_and_what_may_be_left_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "targets.toml").write_text("[targets]\na = 'iscsi://h/t/1'\n")
    full = mock.Mock()
    full.create_and_write.side_effect = failure(NoSpace)
    full.remove.side_effect = failure(StorageError)
    full.list_attributes.side_effect = failure(NoSpace)
    monkeypatch.setattr(Many, "target", lambda self, name: full)
    where = [hex(PARTITION), "--targets", str(tmp_path / "targets.toml")]
    put = ["cluster", "put", str(tmp_path / "targets.toml"), *where, "--copies", "1"]
    for words in (put, ["cluster", "ls", *where]):
        assert "the target is a" in CliRunner().invoke(main, words).stderr
    assert "a copy may be left at a: " in CliRunner().invoke(main, put).stderr


def test_a_path_is_refused_for_several_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was resolved at IOSD_TARGET, and its id means another object at the other targets."""
    (tmp_path / "targets.toml").write_text("[targets]\na = 'iscsi://h/t/1'\n")
    (tmp_path / "script.py").write_text("import osd\n")
    monkeypatch.setenv("IOSD_TARGET", "iscsi://127.0.0.1:1/t/1")
    words = ["run", str(tmp_path / "script.py"), "--targets", str(tmp_path / "targets.toml")]
    done = CliRunner().invoke(main, [*words, "--zone", "/web"])
    assert done.exit_code == 2 and "give ids, not paths" in done.stderr


# ---- real targets ----------------------------------------------------------------------------------


@pytest.fixture
def three() -> Iterator[dict[str, Serving]]:
    if why := missing():
        unavailable("tgtd", why)
    with contextlib.ExitStack() as stack:
        found = {}
        for name in ("a", "b", "c"):
            found[name] = Serving(*arguments(), standard=True)
            stack.callback(found[name].stop, False)
            with found[name].connect() as target:
                target.create_partition(PARTITION)
        yield found


def targets_file(folder: Path, served: dict[str, Serving]) -> str:
    path = folder / f"{'-'.join(served)}.toml"
    lines = [f'{name} = "{each.url}"' for name, each in served.items()]
    path.write_text("\n".join(["[targets]", *lines, ""]))
    return str(path)


def osd(*words: object, code: int = 0) -> Any:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, f"{words}: {done.exit_code}\n{done.output}"
    return done


def raise_lost() -> ClusterReport:
    raise SessionLost("the target closed the connection")


@pytest.mark.tgtd
@pytest.mark.sandbox
@pytest.mark.slow
def test_verbs_on_real_targets(three: dict[str, Serving], tmp_path: Path) -> None:
    """put, check, a copy lost, one changed, a target killed; a client killed while it moves copies."""
    two = targets_file(tmp_path, {name: three[name] for name in ("a", "b")})
    whole = targets_file(tmp_path, three)
    files = []
    for number in range(40):
        files.append(tmp_path / f"file{number}")
        files[-1].write_bytes(bytes([number]) * (number * 1000))
    large = tmp_path / "large"
    large.write_bytes(os.urandom((9 << 20) + 5))
    osd("cluster", "put", *files, hex(PARTITION), "--targets", two)
    osd("cluster", "put", large, hex(PARTITION), "--targets", two)  # moved last, by its id
    absent = osd("cluster", "ls", "0x99999", "--targets", two, code=66).stderr
    assert "0x99999 does not exist at a, b; each target needs it: 'osd part create" in absent
    unknown = osd("cluster", "check", hex(PARTITION), "--targets", two, "--without", "z", code=2)
    assert "no target is named z; there are a, b" in unknown.stderr
    listed = osd(
        "cluster", "ls", hex(PARTITION), "--targets", two, "--no-header"
    ).stdout.splitlines()
    assert len(listed) == 41 and all({*line.split()[1:]} == {"a", "b"} for line in listed)
    objects = [ObjectRef.parse(line.split()[0]) for line in listed]
    assert (
        "no fault in 41 objects, 82 copies"
        in osd("cluster", "check", hex(PARTITION), "--targets", two).stderr
    )

    with three["a"].connect() as a, three["b"].connect() as b:
        a.set_attributes(objects[2], [AttributeValue(*OWN, b"mine")])
        b.remove(objects[2])
        b.write(objects[3], 0, b"other")
        found = osd("cluster", "check", hex(PARTITION), "--targets", two, "-o", "id", code=1)
        assert found.stdout.split() == [*map(str, (objects[2], objects[3], objects[3]))]
        osd("cluster", "repair", hex(PARTITION), "--targets", two, code=1)
        assert b.get_attribute(objects[2], *OWN) == b"mine"
        osd("cluster", "repair", hex(PARTITION), "--targets", two, "--prefer", "newest")
        assert bytes(a.read(objects[3], 0, 5)) == b"other"

    # A client that is killed while it moves copies to three targets.
    words = ["cluster", "rebalance", hex(PARTITION), "--targets", whole, "--at-once", "1"]
    command = [sys.executable, "-c", MOVES_SOME, *words, "--rate", "1GiB"]
    with three["c"].connect() as c, warm.Python(command) as process:
        until(lambda: len(c.list_objects(PARTITION)) > 3)
        process.kill()
    left = osd("cluster", "check", hex(PARTITION), "--targets", whole, code=1)
    assert "missing" in left.stdout
    osd(*words)
    osd("cluster", "check", hex(PARTITION), "--targets", whole, "--all-data")
    wanted = {obj: {*place(obj, ("a", "b", "c"), 2)} for obj in objects}
    for name, served in three.items():
        with served.connect() as target:
            here = {*target.list_objects(PARTITION)}
            assert here - {ref(PARTITION, MAP)} == {
                obj for obj, names in wanted.items() if name in names
            }

    osd("cluster", "repair", hex(PARTITION), "--targets", two, code=18)
    three["c"].kill_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Upkeep, "check", lambda _: raise_lost())
        lost = osd("cluster", "check", hex(PARTITION), "--targets", two, code=69).stderr
    assert "target was lost during the work" in lost and "run it again" in lost
    away = osd("cluster", "check", hex(PARTITION), "--targets", whole, code=69).stderr
    assert "c does not answer" in away and "--without" in away
    osd("cluster", "check", hex(PARTITION), "--targets", whole, "--without", "c", code=1)
    osd("cluster", "repair", hex(PARTITION), "--targets", whole, "--without", "c")
    osd("cluster", "check", hex(PARTITION), "--targets", whole, "--without", "c", "--all-data")
    with three["a"].connect() as a, three["b"].connect() as b:
        for obj in objects:
            length = a.length(obj)
            assert bytes(a.read(obj, 0, length)) == bytes(b.read(obj, 0, length))


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_scripts_and_lists_at_all_targets(
    three: dict[str, Serving], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = targets_file(tmp_path, three)
    script = tmp_path / "hello.py"
    script.write_text("import osd\nprint('hello', osd.args[0])\n")
    done = osd("run", script, "--targets", whole, "--", "you")
    assert sorted(done.stdout.splitlines()) == [f"{name} | hello you" for name in three]
    ids = osd(
        "submit", script, "--targets", whole, "--name", "second", "--", "x"
    ).stdout.splitlines()
    assert [line.split()[0] for line in ids] == [*three]
    rows = osd("ps", "--targets", whole, "--no-header").stdout.splitlines()
    assert len(rows) == 6 and {row.split()[0] for row in rows} == {*three}
    monkeypatch.setenv("IOSD_TARGETS", whole)
    assert len(osd("ps", "--all", "--name", "second", "-o", "id").stdout.splitlines()) == 3
    for wrong in (
        ["--local"],
        ["--follow"],
        ["--after", "0x10000/0x1"],
        ["--target", "iscsi://h/t/1"],
    ):
        osd("exec", script, "--targets", whole, *wrong, code=2)
    osd("ps", "--all", "0x10000/0x1", code=2)
    script.write_text("raise SystemExit(3)\n")
    osd("run", script, "--targets", whole, code=10)
    assert osd("run", script, "--targets", whole, "--exit-code", "script", code=3)

    three["b"].kill_all()
    found = osd("ps", "--all", "--no-header", code=69)
    assert {row.split()[0] for row in found.stdout.splitlines()} == {"a", "c"}
    assert (
        "osd: b: cannot " in found.stderr
    )  # connect, or receive: its port closes later than it dies
