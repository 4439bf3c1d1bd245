# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of a security manager's files and configuration."""

from __future__ import annotations


class SecmgrError(Exception):
    """The security manager cannot work as it is set up; the text says why."""
