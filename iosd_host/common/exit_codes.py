# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes of the host's commands, as docs/cli.md lists them."""

from __future__ import annotations

__all__ = [
    "EXIT_CONFIG",
    "EXIT_FAILED",
    "EXIT_NOT_PERMITTED",
    "EXIT_NO_INPUT",
    "EXIT_PROBLEMS",
    "EXIT_WAIT_OVER",
    "EXIT_WRONG_STATE",
]

EXIT_FAILED = 1
EXIT_WRONG_STATE = 18
EXIT_PROBLEMS = 65
EXIT_NO_INPUT = 66
EXIT_NOT_PERMITTED = 77
EXIT_CONFIG = 78
EXIT_WAIT_OVER = 124
