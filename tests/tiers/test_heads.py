# SPDX-License-Identifier: GPL-2.0-or-later
"""Head sizes over the wire, by `osd`, in the configuration; and scripts that read over the border."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from iosd_host.control.messages import Type
from pyosd import requests as rq
from pyosd.cli import main
from pyosd.types import AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from tests.control.peer import Peer
from tests.expect import LIST_FIELD, check
from tests.harness import Harness, program
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, sandboxes_missing, shared
from tests.tiers.placement import (
    DRAIN,
    HDD,
    HDD_BYTES,
    HEAD_ON,
    HEAD_SIZE,
    NOWHERE,
    SSD,
    SSD_BYTES,
    check_store,
    head,
    set_heads,
)
from tests.waiting import until

HEAD = 64 << 10
OTHER = 5000
DATA = bytes(at % 251 for at in range(3 * HEAD))

Run = Callable[..., Result]


def size(value: int) -> AttributeValue:
    return AttributeValue(Page.HEAD, HEAD_SIZE, value.to_bytes(8, "big"))


# ---- over the wire ----


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    (tmp_path / "ssd").mkdir()
    options = {"dir": tmp_path / "data", "ssd": tmp_path / "ssd", "head_size": HEAD}
    made = Harness(program(), options, tmp_path / "log")
    yield made
    made.finish()


def test_size_before_the_first_byte(harness: Harness) -> None:
    """With CREATE, or later; 26/00 once there are bytes, and in CREATE AND WRITE, whose are there."""
    osd = harness.osd
    partition = osd.create_partition()
    obj = osd.create(partition, attributes=[size(OTHER)])
    assert (head(osd, obj, HEAD_SIZE), head(osd, obj, HEAD_ON)) == (OTHER, NOWHERE)
    osd.set_attributes(obj, [size(OTHER + 1)])
    osd.write(obj, 0, DATA)
    assert head(osd, obj, HEAD_ON) == SSD
    assert head(osd, obj, SSD_BYTES) == OTHER + 1
    assert head(osd, obj, HDD_BYTES) == len(DATA) - OTHER - 1
    for value in (size(OTHER), size(OTHER + 1)):
        reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (value,))))
        check(reply, LIST_FIELD, value.id)
    lists = AttributeLists((), (size(OTHER),))
    request = rq.create_and_write(partition, 0, 0, DATA, attributes=lists)
    check(osd.reply(request), LIST_FIELD, size(0).id)
    assert osd.read(obj, 0, len(DATA)) == DATA
    assert osd.list_objects(partition) == [obj]


def test_another_default_leaves_objects_alone(harness: Harness, tmp_path: Path) -> None:
    """Each is read, grows and is cut at its own head size."""
    osd = harness.osd
    partition = osd.create_partition()
    objects = {osd.create_and_write(partition, DATA): HEAD}
    for default in (0, 1, OTHER, 4096, 2 << 20):
        harness.finish()
        harness.options += f";head_size={default}"  # the last one counts
        harness.start()
        osd = harness.osd
        objects[osd.create_and_write(partition, DATA)] = default
        for obj, wanted in objects.items():
            assert head(osd, obj, HEAD_SIZE) == wanted
            assert head(osd, obj, SSD_BYTES) == min(wanted, len(DATA))
            assert osd.read(obj, 0, len(DATA)) == DATA
    for obj in objects:
        osd.punch(obj, 3000, 4000)
        osd.append(obj, b"end")
        assert osd.read(obj, 0, len(DATA)) == DATA[:3000] + DATA[7000:] + b"end"
    harness.finish()
    check_store(tmp_path)
    harness.start()


def test_figures(tmp_path: Path) -> None:
    """Figures of heads at the control socket, and thus in the metrics: bytes and calls, by
    device."""
    (tmp_path / "ssd").mkdir()
    options = {"dir": tmp_path / "data", "ssd": tmp_path / "ssd", "head_size": HEAD}
    control = tmp_path / "control"
    harness = Harness(program(), options | {"control": control}, tmp_path / "log")
    osd = harness.osd
    partition = osd.create_partition()

    def bytes_of() -> dict[str, int]:
        with Peer(control) as peer:
            return {each["tier"]: each["bytes"] for each in peer.ask(Type.SNAPSHOT)["heads"]}

    objects = [osd.create_and_write(partition, b"f" * length) for length in (100, HEAD, 3 * HEAD)]
    objects.append(osd.create(partition, attributes=[size(0)]))
    osd.write(objects[3], 0, b"f" * HEAD)
    assert bytes_of() == {"ssd": 100 + 2 * HEAD, "main": 0}
    osd.append(objects[0], b"f" * HEAD)
    osd.punch(objects[1], 10, 20)
    osd.remove(objects[2])
    osd.copy(objects[0], partition)
    assert bytes_of() == {"ssd": 3 * HEAD - 20, "main": 0}
    set_heads(osd, DRAIN, 1)
    until(lambda: bytes_of() == {"ssd": 0, "main": 3 * HEAD - 20})
    with Peer(control) as peer:
        before = {each["tier"]: each["reads"] for each in peer.ask(Type.SNAPSHOT)["heads"]}
        osd.read(objects[0], 0, 2 * HEAD)
        after = {each["tier"]: each["reads"] for each in peer.ask(Type.SNAPSHOT)["heads"]}
    assert after["ssd"] == before["ssd"], "nothing is there"
    assert after["main"] > before["main"]
    harness.kill()
    harness.start()
    assert bytes_of() == {"ssd": 0, "main": 3 * HEAD - 20}
    harness.osd.remove_partition(partition, contents=True)
    assert bytes_of() == {"ssd": 0, "main": 0}
    harness.finish()


# ---- by people ----


@pytest.fixture(scope="module")
def two_tiers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A target as people serve it, with an SSD, and what the file says of heads."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    config = tmp_path_factory.mktemp("heads") / "iosd.toml"
    config.write_text('[heads]\nsize = "64KiB"\nhigh_water = 99\nlow_water = 98\n')
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))  # tgtd's user may look into it
    folder.chmod(0o755)
    words = ["--config", str(config), "--ssd", str(folder / "ssd"), "--head-rate", "1GiB"]
    with shared(*arguments(words)) as served:
        yield served
    shutil.rmtree(folder)


@pytest.fixture
def osd(two_tiers: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("IOSD_TARGET", two_tiers.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def run(*words: object, code: int = 0, data: bytes | None = None) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words], input=data)
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return run


def shown(osd: Run, *words: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(osd(*words, "-o", "json").stdout)
    return found


@pytest.mark.tgtd
def test_obj_heads(osd: Run) -> None:
    pid = osd("part", "create").stdout.strip()
    usual, small = osd("obj", "create", pid, "--count", 2).stdout.split()
    osd("obj", "heads", small, "--set", "4KiB")
    for each in (usual, small):
        osd("obj", "write", each, data=DATA)
    records = shown(osd, "obj", "heads", usual, small)["heads"]
    assert records == [
        {"schema": "iosd.head/1", "id": usual, "head_bytes": HEAD, "head_on": "ssd"}
        | {"ssd_bytes": HEAD, "hdd_bytes": len(DATA) - HEAD},
        {"schema": "iosd.head/1", "id": small, "head_bytes": 4096, "head_on": "ssd"}
        | {"ssd_bytes": 4096, "hdd_bytes": len(DATA) - 4096},
    ]
    assert "ssd" in osd("obj", "heads", small).stdout
    osd("obj", "heads", small, "--set", "8KiB", code=1)


@pytest.mark.tgtd
def test_target_heads(osd: Run) -> None:
    found = shown(osd, "target", "heads")
    assert (found["policy"], found["head_bytes"]) == ("first", HEAD)
    assert (found["high_water_percent"], found["low_water_percent"]) == (99, 98)
    assert found["rate_bytes"] == 1 << 30
    found = shown(osd, "target", "heads", "--policy", "off", "--size", "1MiB")
    assert (found["policy"], found["head_bytes"]) == ("off", 1 << 20)
    osd("target", "heads", "--policy", "first", "--size", HEAD)
    assert "small-only" not in osd("target", "heads").stdout
    room = shown(osd, "target", "info")
    for key in ("ssd_total_bytes", "ssd_free_bytes", "hdd_total_bytes", "hdd_free_bytes"):
        assert isinstance(room[key], int)
        assert room[key]


SCRIPT = """
import osd
o = osd.userobject({pid}, {oid})
view = o.data.map()
data = bytes(view)
with o.data as file:
    file.seek({head} - 100)
    data += file.read(200) + file.read()
osd.result(data)
"""


@pytest.mark.tgtd
def test_scripts_read_one_range_wherever_the_head_is(osd: Run, two_tiers: Serving) -> None:
    """Mapped and read across the border, before and after the drain of the SSD, and when it is undone."""
    if sandboxes_missing():
        unavailable("sandbox", str(sandboxes_missing()))
    with two_tiers.connect() as target:
        obj = target.create_and_write(target.create_partition(), DATA)
        wanted = DATA + DATA[HEAD - 100 :]
        for place in (SSD, HDD, SSD):
            if place == HDD:
                osd("target", "drain-ssd")
                assert "no head is on the SSD" in osd("target", "drain-ssd").stderr
            elif head(target, obj, HEAD_ON) == HDD:
                osd("target", "drain-ssd", "--undo")
                until(lambda: head(target, obj, HEAD_ON) == SSD)
            assert head(target, obj, HEAD_ON) == place
            code = SCRIPT.format(head=HEAD, pid=obj.partition_id, oid=obj.object_id)
            job = target.exec(code, zone=obj)
            assert job.result(timeout=60) == wanted


@pytest.mark.tgtd
def test_without_an_ssd(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no heads to ask for."""
    monkeypatch.setenv("IOSD_TARGET", serving.url)
    with serving.connect() as target:
        obj = target.create(target.create_partition())
    for words in (["target", "drain-ssd"], ["target", "heads"], ["obj", "heads", str(obj)]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 1, done.output
        assert "no SSD" in done.output
