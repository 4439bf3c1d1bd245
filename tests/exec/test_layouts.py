# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of docs/layouts.md, which has nothing but the tables of that page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd.types import PartitionId
from tests.cli.documents import run_python
from tests.serving import Serving

FUNCTIONS = PartitionId(0x77)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "layouts.md"


def test_layouts_are_enough_for_an_initiator(
    serving: Serving, target: pyosd.Target, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"url": serving.url, "__name__": "page"}
    try:
        run_python(PAGE, names, lambda: capsys.readouterr().out)
    finally:
        names["unit"].close()
        target.remove_partition(names["pid"], contents=True)
        target.remove_partition(FUNCTIONS, contents=True)
