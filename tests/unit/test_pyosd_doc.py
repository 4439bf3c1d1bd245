# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/pyosd.md is what tools/pyosddoc.py makes of the code, and has every public name."""

from __future__ import annotations

import inspect
from pathlib import Path

import pyosd
from pyosd import aio
from pyosd.functions import Functions
from tools.pyosddoc import INTERNAL, manual

PAGE = Path(__file__).resolve().parents[2] / "docs/pyosd.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == manual(), "run: python -m tools.pyosddoc >docs/pyosd.md"


def test_it_has_every_name_with_a_text() -> None:
    text = PAGE.read_text()
    assert not [name for name in pyosd.__all__ if name not in text]
    for cls in (pyosd.Target, pyosd.Job, pyosd.JobArray, aio.AsyncTarget, Functions):
        for name in vars(cls):
            if name.startswith("_") or name in INTERNAL:
                continue
            if callable(getattr(cls, name)):
                assert f"\n{name}(" in text or f"\n{name}:" in text, name
                assert inspect.getdoc(getattr(cls, name)), name
