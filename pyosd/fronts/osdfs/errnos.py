# SPDX-License-Identifier: GPL-2.0-or-later
"""Which errno an exception of the client becomes."""

from __future__ import annotations

import errno

from pyosd import errors
from pyosd.fronts.osdfs.kernel import WithErrno

__all__ = ["number_of"]

_NUMBERS: tuple[tuple[type[BaseException], int], ...] = (
    # a child stands before its parent
    (errors.NoSuchName, errno.ENOENT),
    (errors.NameExists, errno.EEXIST),
    (errors.NotADirectory, errno.ENOTDIR),
    (errors.IsADirectory, errno.EISDIR),
    (errors.NameChanged, errno.ESTALE),
    (errors.NotFound, errno.ESTALE),  # the object was removed by somebody else
    (errors.NotEmpty, errno.ENOTEMPTY),
    (errors.Exists, errno.EEXIST),
    (errors.FunctionInUse, errno.EBUSY),
    (errors.Conflict, errno.EBUSY),
    (errors.PermissionDenied, errno.EACCES),
    (errors.NoSpace, errno.ENOSPC),
    (errors.TargetBusy, errno.EAGAIN),
    (errors.Unreachable, errno.EIO),
    (errors.Invalid, errno.EINVAL),
    (ValueError, errno.ENAMETOOLONG),  # the path of a name, from its partition on
    (errors.OSDError, errno.EIO),  # storage errors, aborted tasks, wrong integrity check values
)


def number_of(error: BaseException) -> int:
    """The errno that an operation fails with; EIO for what is not expected."""
    if isinstance(error, WithErrno):
        return error.number
    return next((number for kind, number in _NUMBERS if isinstance(error, kind)), errno.EIO)
