# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of a target: code that lives in the store and is called by name (docs/functions.md)."""

from pyosd.functions.functions import AsyncFunctions, Functions
from pyosd.functions.manifest import Access, Function, Manifest

__all__ = ["Access", "AsyncFunctions", "Function", "Functions", "Manifest"]
