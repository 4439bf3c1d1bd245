# SPDX-License-Identifier: GPL-2.0-or-later
"""What Debian 12's older libraries lack and is as easily written without; `make deb-test` finds more."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_types_of_parameters_are_not_clicks() -> None:
    """click 8.1 cannot subscript its class: pyosd/cli and iosd_host/cli have param_type.py for that."""
    files = [
        file
        for tree in ("pyosd", "iosd_host", "iosd_secmgr")
        for file in (ROOT / tree).rglob("*.py")
    ]
    assert not [file for file in files if "click.ParamType[" in file.read_text()]
