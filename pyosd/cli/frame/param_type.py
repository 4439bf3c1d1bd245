# SPDX-License-Identifier: GPL-2.0-or-later
"""click.ParamType with the type of its values, which click knows since 8.2; Debian 12 has 8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

__all__ = ["ParamType"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """The same class, whatever it is subscripted with."""

        def __class_getitem__(cls, value):
            """Types of values are for checkers."""
            return cls
