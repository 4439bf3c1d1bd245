# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated disks as an option of the module: what it refuses, that it warns, and that data is real."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.harness import Harness, StartFailed, program

HEAD = 2 << 20
ACCESS_S = 0.05
SLOW = "hdd:50ms:1GB/s+ssd:0us:1GB/s"


def serve(folder: Path, model: str, *, two_roots: bool = True) -> Harness:
    options = {"dir": folder / "data", "model": model}
    if two_roots:
        options["ssd"] = folder / "ssd"
        (folder / "ssd").mkdir(exist_ok=True)
    return Harness(program(), options, folder / "log")


@pytest.mark.parametrize(
    ("model", "two_roots", "words"),
    [
        ("quick", True, "names no simulated disks"),
        ("thesis", False, "has 2 disk(s) and the store 1 root(s)"),
        ("thesis-ssd", True, "has 1 disk(s) and the store 2 root(s)"),
    ],
)
def test_refused(tmp_path: Path, model: str, two_roots: bool, words: str) -> None:
    with pytest.raises(StartFailed, match="simulated") as failed:
        serve(tmp_path, model, two_roots=two_roots)
    assert words in str(failed.value)


def test_slow_where_the_model_says_so(tmp_path: Path) -> None:
    """Within the head the slow disk has no part; across the border it does, and all is there."""
    target = serve(tmp_path, SLOW)
    data = os.urandom(HEAD + 5000)
    partition = target.osd.create_partition()
    obj = target.osd.create(partition)

    start = time.monotonic()
    target.osd.write(obj, HEAD - 5000, data[HEAD - 5000 :])
    assert time.monotonic() - start >= 2 * ACCESS_S, "the tail is made, then written"
    target.osd.write(obj, 0, data[: HEAD - 5000])
    start = time.monotonic()
    assert target.osd.read(obj, 0, HEAD + 10_000) == data
    assert time.monotonic() - start >= ACCESS_S, "the arm was where the object ends"
    target.osd.read(obj, HEAD, 100)
    target.finish()
    assert "simulated" in (tmp_path / "log").read_text()

    again = Harness(
        program(), {"dir": tmp_path / "data", "ssd": tmp_path / "ssd"}, tmp_path / "log"
    )
    assert again.osd.read(obj, 0, HEAD + 5000) == data, "as real as without the model"
    again.finish()
