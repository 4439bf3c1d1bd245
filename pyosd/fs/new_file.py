# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that is being written: an object that gets its name when it is whole.

In a partition the object has no name before.  Below a directory, whose commands know no ids, it has a
name that begins with .osd- meanwhile.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass

from pyosd import errors
from pyosd.commands import names
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.objects import create, remove
from pyosd.types import ObjectRef

__all__ = ["NewFile", "give_up", "is_final", "needs_steps", "new_file", "publish"]


def is_final(error: BaseException) -> bool:
    """Whether the error ends a transfer for good: it was refused, not cut off."""
    refused = isinstance(error, OSError | errors.OSDError)
    return refused and not isinstance(error, errors.MAY_HAVE_ACTED)


def needs_steps(error: errors.OSDError) -> bool:
    """Whether PUT was refused where CREATE, WRITE and LINK are not: functions check what is made, and
    cannot be asked about commands on names; or the target is of an earlier release.
    """
    return isinstance(error, errors.ChangeRefused) or names.is_about(error, names.VERB_FIELD)


@dataclass(frozen=True)
class NewFile:
    """The partition or directory, the object, and its name meanwhile (b"": none)."""

    base: ObjectRef
    object: ObjectRef
    temporary: bytes = b""


def new_file(base: ObjectRef) -> Dialogue[NewFile]:
    """An empty one."""
    if not base.object_id:
        return NewFile(base, (yield from create(base.partition_id)))
    temporary = f".osd-{secrets.token_hex(8)}".encode()
    entry = yield from names.create_name(base, temporary)
    return NewFile(base, entry.object, temporary)


def publish(new: NewFile, path: bytes, *, replace: bool) -> Dialogue[None]:
    """Give it its name.  If it has certainly not got the name, remove it."""
    try:
        if new.temporary:
            yield from names.rename(new.base, new.temporary, path, replace=replace)
        else:
            yield from names.link(new.base, path, new.object, replace=replace)
    except errors.MAY_HAVE_ACTED:
        raise  # it may have its name
    except errors.OSDError:
        yield from give_up(new)
        raise


def give_up(new: NewFile) -> Dialogue[None]:
    """Remove it; what cannot be removed stays without the name that was meant."""
    with suppress(errors.OSDError):
        if new.temporary:
            yield from names.unlink(new.base, new.temporary)
        else:
            yield from remove(new.object)
