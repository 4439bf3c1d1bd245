# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of a target: code that lives in the store and is called by name (docs/functions.md)."""

from pyosd.functions.capacity import Engine, FunctionCapacity
from pyosd.functions.functions import AsyncFunctions, Functions
from pyosd.functions.hooks import Hook, HookEvent
from pyosd.functions.manifest import (
    Access,
    Contract,
    Function,
    FunctionCalls,
    FunctionFailure,
    FunctionUser,
    Manifest,
    OutputSize,
    RecordForm,
)
from pyosd.functions.results import DataOrigin, KeptResults, LastRead, OriginStage
from pyosd.functions.stages import FunctionStage
from pyosd.functions.views import View

__all__ = [
    "Access",
    "AsyncFunctions",
    "Contract",
    "DataOrigin",
    "Engine",
    "Function",
    "FunctionCalls",
    "FunctionCapacity",
    "FunctionFailure",
    "FunctionStage",
    "FunctionUser",
    "Functions",
    "Hook",
    "HookEvent",
    "KeptResults",
    "LastRead",
    "Manifest",
    "OriginStage",
    "OutputSize",
    "RecordForm",
    "View",
]
