# SPDX-License-Identifier: GPL-2.0-or-later
"""Log lines of programs that run until a signal ends them.

Errors and names in them have words of others: of a target, of the author of a function, of a client.
"""

from __future__ import annotations

import copy
import logging

from pyosd.cli.output.terminal import escaped, harmless

__all__ = ["HarmlessLines", "log_to_stderr"]


class HarmlessLines(logging.Formatter):
    """Messages of one line each, and nothing that a terminal would obey; a traceback has more lines."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record."""
        shown = copy.copy(record)
        shown.msg, shown.args = harmless(record.getMessage()), None
        return escaped(super().format(shown))


def log_to_stderr(form: str = "osd: %(message)s", level: int = logging.WARNING) -> None:
    """Write log lines of this form (as of logging.Formatter), from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(HarmlessLines(form))
    logging.basicConfig(level=level, handlers=[handler])
