# SPDX-License-Identifier: GPL-2.0-or-later
"""Checksums as people use them: `osd target serve --checksums on`, `osd target scrub`, scripts."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pyosd
from pyosd.cli import main
from pyosd.types import ObjectRef
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, sandboxes_missing

BLOCK = 4096
DATA = bytes(at % 251 for at in range(5 * BLOCK))
OPTIONS = ("--checksums", "on", "--verify", "always", "--scrub-days", "0")

pytestmark = pytest.mark.tgtd
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="iosd-test-"))  # tgtd's user may look into it
    made.chmod(0o755)
    yield made / "store"
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def checked(folder: Path) -> Iterator[Serving]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    with Serving(*arguments(OPTIONS), data=folder) as served:
        yield served


@pytest.fixture
def osd(checked: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("IOSD_TARGET", checked.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def run(*words: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return run


def turn_over(folder: Path, obj: ObjectRef, at: int) -> None:
    (path,) = (folder / "data").glob(f"{obj.partition_id:016x}.*/*/{obj.object_id:016x}.*h")
    with path.open("r+b") as file:
        byte = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([byte[0] ^ 4]), at)


def test_scrub(osd: Run, checked: Serving, folder: Path) -> None:
    with checked.connect() as target:
        obj = target.create_and_write(target.create_partition(), DATA)
        whole = json.loads(osd("target", "scrub", "start", "--wait", "-o", "json").stdout)
        assert (whole["state"], whole["damage"]) == ("idle", [])
        assert whole["objects"] >= 1
        turn_over(folder, obj, 2 * BLOCK + 9)
        osd("target", "scrub")
        text = osd("target", "scrub", "start", "--wait", "--rate", "1GiB", code=65).stdout
        assert f"{obj} bytes {2 * BLOCK} to {3 * BLOCK - 1}" in text
        told = json.loads(osd("target", "scrub", "-o", "json", code=65).stdout)
        assert told["damage"] == [{"id": str(obj), "offset": 2 * BLOCK, "length": BLOCK}]
        assert told["rate_bytes"] == 1 << 30
        target.write(obj, 0, DATA)
        osd("target", "scrub", "start", "--wait")


def test_a_script_reads_no_damage(checked: Serving, folder: Path) -> None:
    if sandboxes_missing():
        unavailable("sandbox", str(sandboxes_missing()))
    with checked.connect() as target:
        obj = target.create_and_write(target.create_partition(), DATA)
        where = f"{int(obj.partition_id)}, {int(obj.object_id)}"
        read = f"import osd\nosd.result(osd.userobject({where}).data.read())"
        assert target.exec(read, zone=obj).result(timeout=60) == DATA
        turn_over(folder, obj, 10)
        with pytest.raises(pyosd.ScriptError):
            target.exec(read, zone=obj).result(timeout=60)
        target.remove(obj)


def test_without_checksums(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSD_TARGET", serving.url)
    done = CliRunner().invoke(main, ["target", "scrub"])
    assert done.exit_code == 1
    assert "--checksums on" in done.output
