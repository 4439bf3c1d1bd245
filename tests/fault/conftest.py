# SPDX-License-Identifier: GPL-2.0-or-later
"""The library that makes system calls fail, built once for a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.faults import interposer


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interposer(tmp_path_factory.mktemp("interpose"))
