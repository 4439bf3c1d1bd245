# SPDX-License-Identifier: GPL-2.0-or-later
"""Exceptions of the package osd.

Everything the target refuses is an OSDError; Ended is not an error of the script and therefore no
Exception: it passes through ``except Exception`` and lets ``finally`` clean up.
"""

from __future__ import annotations

__all__ = [
    "ANSWERS",
    "Conflict",
    "Ended",
    "Exists",
    "Invalid",
    "NoSpace",
    "NotEmpty",
    "NotFound",
    "OSDError",
    "PermissionDenied",
    "StorageError",
]


class OSDError(Exception):
    """The target refused or failed a call; the text says why."""


class NotFound(OSDError, LookupError):
    """The object does not exist, or no longer does."""


class Exists(OSDError):
    """The requested id is taken."""


class PermissionDenied(OSDError, PermissionError):
    """Outside the job's zone, or a right is missing."""


class NoSpace(OSDError):
    """A quota or the device is full."""


class Invalid(OSDError, ValueError):
    """A bad argument; an attribute that is read-only or does not fit the object."""


class StorageError(OSDError):
    """The target's storage failed."""


class NotEmpty(OSDError):
    """The partition still has objects, or the collection members."""


class Conflict(OSDError):
    """An unfinished job stands in the way."""


class Ended(BaseException):
    """The job was told to end; what cleans up now has the job's grace, then the sandbox is killed."""


# By enum osd_answer_code (target/wire/proxy_frame.h); Ended takes the place of OK, which is no error.
ANSWERS: tuple[type[BaseException], ...] = (
    Ended,
    NotFound,
    Exists,
    PermissionDenied,
    NoSpace,
    Invalid,
    StorageError,
    NotEmpty,
    Conflict,
)
