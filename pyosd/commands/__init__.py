# SPDX-License-Identifier: GPL-2.0-or-later
"""The OSD-2 commands as methods over any Transport, and what several commands do together."""

from pyosd.commands.unit import Commands

__all__ = ["Commands"]
