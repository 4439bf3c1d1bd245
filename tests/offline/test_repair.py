# SPDX-License-Identifier: GPL-2.0-or-later
"""Repair when it is interrupted, and of what chance has damaged; what the tools refuse to touch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from iosd_host.cli import store as commands
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.keys import SEAL_BYTES, KeyKind, KeyName
from iosd_host.store_tools.format.records import (
    ALL_OBJECTS,
    LOST_PARTITION,
    AttributeKey,
    MetaKind,
    Place,
    dead_files_key,
    parse_partition_key,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.folders import copy_file
from pyosd.types import PartitionId
from tests.offline.conftest import Template
from tests.offline.damage import head_file
from tests.offline.damages import DAMAGES
from tests.offline.stores import FIRST, Snapshot, Store, everything, look, lost, started

ROOT = Path(__file__).resolve().parents[2]
MANY = (
    "index entry removed",
    "record removed everything left",
    "object record of no type",
    "file of nobody",
    "files that are none",
    "a tail of an object without",
    "collection record removed",
    "partition record removed",
    "payload of no job",
    "boot counter too low",
)
STEPS = (1, 3, 6, 10, 15, 21, 28, 36, 45)


def killed_at(step: int, store: Store) -> int:
    """Run a repair that is killed at this step.  Returns how it ended."""
    argv = ["--yes", "--json", "--data", str(store.data)]
    argv += ["--ssd", str(store.ssd)] if store.ssd else []
    done = subprocess.run(
        [sys.executable, "-m", "tests.offline.killed_repair", str(step), *argv],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def test_killed_and_run_again(store: Store, before: Snapshot) -> None:
    for name in MANY:
        DAMAGES[name].act(store)
    files = contents(store)
    ends = [killed_at(step, store) for step in STEPS]
    assert -signal.SIGKILL in ends
    store.repair()
    assert store.check() == []
    assert_kept(files, store)
    with store.serve() as osd:
        after, found = look(osd), lost(osd)
        moved = {store.names.attributed, store.names.long}
        assert {obj: seen for obj, seen in before.items() if obj not in moved} == after
        kept = everything(osd)
        for obj in moved:
            assert before[obj].data in kept
    whole = next(each for name, each in found.items() if name.startswith("lost 10000.10001."))
    assert whole.attributes[0x10000, 3] == b"value 3", "file and attributes came apart"
    assert len(found) == len(lost_names(found)), found.keys()


def lost_names(found: Mapping[str, object]) -> set[str]:
    """Without what follows a name twice: nothing was put there a second time."""
    return {name.rpartition(".")[0] or name for name in found}


# ---- chance


@dataclass(frozen=True)
class Blow:
    """One random damage.  table None: to a data file.  which: modulo how many there are."""

    table: Table | None
    which: int
    how: str
    at: int
    byte: int


blows = st.builds(
    Blow,
    st.sampled_from([*Table, None, None, None, Table.OBJECTS, Table.OBJECTS]),
    st.integers(0, 1000),
    st.sampled_from(["flip", "flip", "cut", "remove", "grow", "key"]),
    st.integers(0, 200),
    st.integers(1, 255),
)


def strike(store: Store, blow: Blow) -> None:
    if blow.table is not None:
        strike_record(store, blow.table, blow)
        return
    files = data_files(store)
    if not files:
        return
    path = files[blow.which % len(files)]
    if blow.how == "remove":
        path.unlink()
    elif blow.how == "cut":
        os.truncate(path, path.stat().st_size * blow.at // 200)
    elif blow.how == "key":
        path.rename(path.with_name(path.name.replace("0", "a", 1 + blow.at % 5)))
    else:
        with path.open("ab") as file:
            file.write(bytes([blow.byte]) * (blow.at + 1))


def strike_record(store: Store, table: Table, blow: Blow) -> None:
    records = store.records(table)
    if not records:
        return
    key, value = records[blow.which % len(records)]
    if blow.how == "remove":
        store.remove(table, key)
    elif blow.how == "cut":
        store.put(table, key, value[: len(value) * blow.at // 200])
    elif blow.how == "grow":
        store.put(table, key, value + bytes([blow.byte]) * blow.at)
    elif blow.how == "flip" and value:
        at = blow.at % len(value)
        store.put(table, key, value[:at] + bytes([value[at] ^ blow.byte]) + value[at + 1 :])
    else:
        at = blow.at % len(key)
        store.remove(table, key)
        store.put(table, key[:at] + bytes([key[at] ^ blow.byte]) + key[at + 1 :], value)


def data_files(store: Store) -> list[Path]:
    found = (path for root in store.roots for path in (root / "data").rglob("*"))
    return sorted(path for path in found if path.is_file())


def contents(store: Store) -> list[bytes]:
    return [path.read_bytes() for path in data_files(store)]


def assert_kept(files: list[bytes], store: Store) -> None:
    """Each file's bytes are the beginning of a file still."""
    now = contents(store)
    for data in files:
        assert any(each.startswith(data) for each in now), f"{len(data)} bytes are gone"


@pytest.fixture
def struck(template: Template, quick: Path) -> Callable[[list[Blow]], None]:
    def check_all(blows: list[Blow]) -> None:
        with tempfile.TemporaryDirectory(dir=quick) as folder:
            store = template[0].copy(Path(folder))
            for blow in blows:
                strike(store, blow)
            survive(store)

    return check_all


def survive(store: Store) -> None:
    files = contents(store)
    untouched = store.digest()
    store.check()
    assert store.digest() == untouched
    store.repair()
    assert store.check() == []
    assert_kept(files, store)
    with store.serve() as osd:
        look(osd)
        lost(osd)
    assert store.check() == []


def test_a_strange_attribute_hides_no_other(store: Store, before: Snapshot) -> None:
    """Served without repair: the rest can be read, and a structure check finds it."""
    place = store.place(store.names.attributed)
    store.put(Table.ATTRIBUTES, AttributeKey(place, 0x4000, 9).encode(), b"whose")
    with store.serve() as osd:
        assert look(osd) == before
        assert osd.object_structure_check(FIRST) > 0
        damage = osd.get_attribute(store.names.attributed, 6, 1)
    assert damage not in (b"", b"\0")


CAPKEY, CMDRSP = b"\1", b"\2"
ROOT_METHODS = [AttributeKey(Place(0, 1), 0x9000_0005, number).encode() for number in (1, 6)]


def partition_methods(store: Store) -> dict[int, bytes]:
    found = [(AttributeKey.decode(key), value) for key, value in store.records(Table.ATTRIBUTES)]
    return {
        key.place.partition_id: value
        for key, value in found
        if (key.page, key.number) == (0x3000_0005, 1)
    }


def test_what_repair_makes_opens_to_nobody(store: Store) -> None:
    """Without a method everybody could read what was in a partition with one."""
    for key, value in zip(ROOT_METHODS, (CAPKEY, CMDRSP), strict=True):
        store.put(Table.ATTRIBUTES, key, value)
    for key, _ in store.records(Table.PARTITIONS):
        if parse_partition_key(key)[1] == FIRST:
            store.remove(Table.PARTITIONS, key)
    head_file(store, store.names.plain).rename(store.data / "data" / "stray")
    store.repair()
    assert store.check() == []
    assert partition_methods(store) == {FIRST: CMDRSP, LOST_PARTITION: CMDRSP}


@pytest.mark.parametrize("lost_too", [Table.KEYS, None], ids=["and keys", "alone"])
def test_a_lost_table_of_attributes_opens_nothing(store: Store, lost_too: Table | None) -> None:
    """The security methods are in it."""
    root_key = KeyName(Place(0, 0), KeyKind.ROOT, 0).encode()
    store.put(Table.KEYS, root_key, b"\1" + bytes(99))
    (store.data / "seal").write_bytes(bytes(SEAL_BYTES))
    partitions = [parse_partition_key(key)[1] for key, _ in store.records(Table.PARTITIONS)]
    for table in filter(None, (Table.ATTRIBUTES, lost_too)):
        (store.data / "db" / table.value).write_bytes(b"")
    assert any(each["detail"].startswith("security methods lost: ") for each in store.repair())
    assert store.check() == []
    methods = partition_methods(store)
    assert methods.keys() >= set(partitions) and set(methods.values()) == {CAPKEY}
    records = dict(store.records(Table.ATTRIBUTES))
    assert [records[key] for key in ROOT_METHODS] == [CAPKEY, CAPKEY]


def test_one_id_lost_twice(store: Store) -> None:
    place = store.place(store.names.attributed)
    head_file(store, store.names.attributed).unlink()
    other = replace(place, incarnation=place.incarnation + 90)
    record = dict(store.records(Table.OBJECTS))[place.encode()]
    store.remove(Table.OBJECTS, place.encode())
    store.put(Table.OBJECTS, other.encode(), record)
    store.repair()
    with store.serve() as osd:
        name = f"lost {place.partition_id:x}.{place.object_id:x}.0"
        assert {name, f"{name}.2"} <= lost(osd).keys()


@pytest.mark.parametrize("template", [False, True], indirect=True, ids=["one root", "two roots"])
def test_random_damage(struck: Callable[[list[Blow]], None], seed: int) -> None:
    @hypothesis.seed(seed)
    @settings(
        max_examples=int(os.environ.get("OSD_OFFLINE_EXAMPLES", "8")),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(st.lists(blows, min_size=1, max_size=6))
    def run(blows: list[Blow]) -> None:
        struck(blows)

    run()


# ---- what is refused


def test_a_live_store_is_refused(store: Store) -> None:
    with store.serve() as osd:
        for command in (commands.check, commands.repair, commands.dump):
            result = store.run(command)
            assert result.exit_code == 18
            assert "in use" in result.stderr and "stop" in result.stderr
        assert len(osd.list_partitions()) == 2
    assert store.check() == []


def test_directories_that_do_not_fit(store: Store, templates: dict[bool, Template]) -> None:
    assert store.ssd is not None
    untouched = store.digest()
    for data, ssd, code in (
        (store.data, None, 78),
        (store.ssd, store.data, 78),
        (templates[False][0].data, store.ssd, 78),
        (store.folder / "nothing", None, 66),
        (store.data / "data", None, 66),
    ):
        words = ["--data", str(data)] + (["--ssd", str(ssd)] if ssd else [])
        for command in (commands.check, commands.repair, commands.dump):
            assert CliRunner().invoke(command, words).exit_code == code, (data, ssd)
    assert store.digest() == untouched


def test_a_store_without_its_folder_of_data_files(store: Store, tmp_path: Path) -> None:
    """It may be a disk that is not mounted.  Repair made every object empty."""
    (store.data / "data").rename(tmp_path / "elsewhere")
    result = store.run(commands.repair, "--yes")
    assert result.exit_code == 78
    assert "put it back" in result.output
    (tmp_path / "elsewhere").rename(store.data / "data")
    assert store.check() == []


@pytest.mark.parametrize("at", [11, 23], ids=["version", "feature bit"])
def test_stores_of_another_release(store: Store, at: int) -> None:
    data = bytearray((store.data / "superblock").read_bytes())
    data[at] |= 2
    data[508:] = zlib.crc32(data[:508]).to_bytes(4, "big")
    (store.data / "superblock").write_bytes(data)
    untouched = store.digest()
    for command in (commands.check, commands.repair, commands.dump):
        result = store.run(command)
        assert result.exit_code == 78
        assert "use the release that wrote it" in result.stderr
    assert store.digest() == untouched


def test_the_ssd_directory_of_another_store(store: Store) -> None:
    """With wrong heads everything looks damaged: nothing is repaired."""
    assert store.ssd is not None
    shutil.rmtree(store.ssd / "data")
    (store.ssd / "data").mkdir()
    DAMAGES["another store id on the ssd"].act(store)
    untouched = {name: text for name, text in store.digest().items() if "/data" in name}
    assert store.kinds() == {"store-ids-differ"}
    result = store.run(commands.repair, "--yes")
    assert result.exit_code == 65
    assert "another store" in result.stderr
    assert {k: v for k, v in store.digest().items() if k in untouched} == untouched


def test_superblocks_are_not_guessed_against_the_records(
    templates: dict[bool, Template], folder: Path
) -> None:
    """Without superblocks the records tell whether there are two roots, and which are."""
    one = templates[False][0].copy(folder / "one")
    two = templates[True][0].copy(folder / "two")
    assert two.ssd is not None
    (one.data / "superblock").unlink()
    for root in two.roots:
        (root / "superblock").unlink()
    foreign = folder / "foreign"
    (foreign / "data").mkdir(parents=True)
    for words in (
        ["--data", str(two.data)],
        ["--data", str(two.data), "--ssd", str(foreign)],
        ["--data", str(one.data), "--ssd", str(two.ssd)],
    ):
        result = CliRunner().invoke(commands.repair, ["--yes", *words])
        assert result.exit_code == 78, words
        assert "--ssd" in result.stderr
    for store in (one, two):
        store.repair()
        assert store.check() == []


def test_a_store_that_was_killed_is_only_looked_at(store: Store) -> None:
    harness = started(store.folder, store.two_roots)
    harness.osd.write(harness.osd.create(PartitionId(0x10000)), 0, b"just now")
    harness.kill()
    shutil.copytree(store.folder, store.folder / "killed", ignore=shutil.ignore_patterns("ballast"))
    killed = Store(store.folder / "killed", store.two_roots, store.names)
    untouched = killed.digest()
    assert killed.check() == []
    assert killed.digest() == untouched
    result = killed.run(commands.check, "-v")
    assert "not-closed" in result.stdout and "open-reservation" in result.stdout


def test_what_the_target_removes_itself_is_no_damage(store: Store) -> None:
    """Files of objects that are gone, or that were being made; the collection of all objects."""
    for number, kind in enumerate((MetaKind.DEAD_FILES, MetaKind.DRAFT_FILES)):
        place, generation = Place(FIRST, 1, 0x10001 + number), 0x99
        path = store.data / "data" / FileName(place, generation, False).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"to go")
        store.put(Table.META, kind.key + dead_files_key(place, generation)[1:], b"")
    tracking = AttributeKey(Place(FIRST, 1, ALL_OBJECTS), 0x6000_0004, 1)
    store.put(Table.ATTRIBUTES, tracking.encode(), b"\0" * 8)
    assert store.check() == []
    assert store.repair() == []


def test_dry_run_and_question(store: Store) -> None:
    DAMAGES["file of nobody"].act(store)
    untouched = store.digest()
    result = store.run(commands.repair, "--dry-run")
    assert result.exit_code == 65 and "moved to lost+found" in result.stdout
    result = store.run(commands.repair)
    assert result.exit_code == 2 and "add --yes" in result.output
    assert store.digest() == untouched


def test_the_log_says_what_was_done(store: Store) -> None:
    DAMAGES["file of nobody"].act(store)
    store.repair()
    lines = [json.loads(each) for each in (store.data / "repair.log").read_text().splitlines()]
    assert lines[0]["event"] == "begin" and lines[-1]["event"] == "end"
    assert "orphan-file" in {each.get("kind") for each in lines if each["event"] == "mended"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_works_as_the_owner(store: Store) -> None:
    for path in (store.folder, *store.folder.rglob("*")):
        os.chown(path, 12345, 12345)
    for path in store.folder.parents:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o111)
    DAMAGES["record removed everything left"].act(store)
    for path in store.folder.rglob("*"):
        os.chown(path, 12345, 12345)
    store.repair()
    owners = {path.stat().st_uid for root in store.roots for path in root.rglob("*")}
    assert owners == {12345}


def test_a_copy_has_the_bytes_and_no_blocks_for_zeros(folder: Path) -> None:
    """The database's log is 64 MiB with hardly anything in it."""
    source, target = folder / "source", folder / "target"
    with source.open("wb") as file:
        for at, data in ((5, b"first"), (1 << 20, bytes(1 << 20)), (3 << 20, b"\1" * 300_000)):
            file.seek(at)
            file.write(data)
        file.truncate(64 << 20)
    copy_file(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_blocks * 512 < 1 << 20
