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
    """The target refused a call, or failed; the text says why.  The other errors are children of it.

    >>> try:
    ...     osd.userobject(p.partition_id, 0x7fff0000).length()
    ... except osd.OSDError as error:
    ...     print(type(error).__name__)
    NotFound
    """


class NotFound(OSDError, LookupError):
    """The object does not exist.  Also a LookupError.

    >>> osd.userobject(p.partition_id, 0x7fff0000).data.read()
    Traceback (most recent call last):
    osd.NotFound: ...
    """


class Exists(OSDError):
    """The requested id is taken.

    >>> u.create()
    Traceback (most recent call last):
    osd.Exists: ...
    """


class PermissionDenied(OSDError, PermissionError):
    """The object is outside the job's zone, or a permission is missing.  Also a PermissionError.

    >>> u.setattr([(5, 1, b"no script may set security attributes")])
    Traceback (most recent call last):
    osd.PermissionDenied: ...
    """


class NoSpace(OSDError):
    """A quota or the device is full.

    >>> u.setattr([(2, 1, 100)])  # the most bytes it may hold
    >>> u.data.write(bytes(200))
    Traceback (most recent call last):
    osd.NoSpace: ...
    """


class Invalid(OSDError, ValueError):
    """An argument is wrong, or an attribute is read-only or does not fit the object.  Also a ValueError.

    >>> u.data.truncate(-1)
    Traceback (most recent call last):
    osd.Invalid: ...
    """


class StorageError(OSDError):
    """The storage of the target failed; the target's log has the details.  Not the script's fault."""


class NotEmpty(OSDError):
    """The partition still has objects, or the collection members.

    >>> p.remove()
    Traceback (most recent call last):
    osd.NotEmpty: ...
    """


class Conflict(OSDError):
    """A job that has not ended prevents a change of its object or partition."""


class Ended(BaseException):
    """The job has to end.  The script can clean up for the job's grace; then the sandbox is killed.

    It is no Exception: it passes `except Exception`, and `finally` can clean up.  It is raised
    between two instructions of the script's main thread, after `osd job kill` or at a limit of time.

    >>> issubclass(osd.Ended, Exception)
    False
    """


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
    OSDError,  # a function that the data pass through has failed
)

for _each in (OSDError, *ANSWERS):
    _each.__module__ = "osd"  # so tracebacks name them as scripts do
