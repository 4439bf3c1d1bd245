# SPDX-License-Identifier: GPL-2.0-or-later
"""Entry point of ``osd``. It is installed as ``osd_program`` because it runs before the import of
``pyosd``.

That takes a tenth of a second, in which Ctrl-C would print a traceback of imports.
"""

from __future__ import annotations

import signal
from typing import Any

__all__ = ["main"]


def main() -> Any:
    """Import the program and run it; until it runs, SIGINT ends us as it ends any other."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # nobody had it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pyosd.cli import main as program

    signal.signal(signal.SIGINT, handler)
    return program()
