# SPDX-License-Identifier: GPL-2.0-or-later
"""The errno for an exception of the client."""

from __future__ import annotations

import errno

from pyosd import errors
from pyosd.fronts.osdfs.kernel import WithErrno
from pyosd.wire.sense import CONTRACT

__all__ = ["is_of_directory", "number_of"]

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


# refusals of the functions of a view (docs/views.md)
_OF_DIRECTORY = 11
_OF_CONTRACTS = {3: errno.EROFS, 7: errno.EROFS, 10: errno.EROFS, _OF_DIRECTORY: errno.EPERM}


def contract_of(error: BaseException) -> int | None:
    """The contract of functions that refuses a command; None: there is none."""
    if not isinstance(error, errors.OSDError) or error.sense is None:
        return None
    code = error.sense.asc, error.sense.ascq
    return error.sense.command_information if code == CONTRACT else None


def is_of_directory(error: BaseException) -> bool:
    """Whether a command is refused because a directory of a view has no attributes of its own."""
    return contract_of(error) == _OF_DIRECTORY


def number_of(error: BaseException) -> int:
    """The errno that an operation fails with; EIO for what is not expected."""
    if isinstance(error, WithErrno):
        return error.number
    contract = contract_of(error)
    if contract in _OF_CONTRACTS:
        return _OF_CONTRACTS[contract]
    return next((number for kind, number in _NUMBERS if isinstance(error, kind)), errno.EIO)
