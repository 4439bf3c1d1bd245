# SPDX-License-Identifier: GPL-2.0-or-later
"""The name of compiler and processor differs where machine code must not be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iosd_host.common import build_name as module
from iosd_host.common.build_name import build_name

CPU = "processor : 0\nflags : fpu sse2 avx2\n\nprocessor : 1\nflags : fpu sse2 avx2\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, on a processor of which CPU tells."""
    (tmp_path / "cpuinfo").write_text(CPU)
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "cpuinfo")
    path = tmp_path / "library"
    path.write_bytes(b"library")
    return path


def test_the_same_is_the_same(library: Path) -> None:
    name = build_name(library)
    assert name is not None and len(name) == 64
    module.CPU_INFO.write_text(CPU.replace("sse2 avx2", "avx2 sse2"))
    assert build_name(library) == name


def test_another_library_or_processor_has_another_name(library: Path) -> None:
    names = {build_name(library)}
    module.CPU_INFO.write_text(CPU.replace(" avx2", ""))
    names.add(build_name(library))
    os.utime(library, ns=(1, 1))
    names.add(build_name(library))
    library.write_bytes(b"another library")
    os.utime(library, ns=(1, 1))
    names.add(build_name(library))
    assert len(names) == 4


def test_no_library_has_no_name(library: Path) -> None:
    library.unlink()
    assert build_name(library) is None
