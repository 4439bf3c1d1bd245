# SPDX-License-Identifier: GPL-2.0-or-later
"""The first names of paths: the partitions, by id or by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from pyosd import errors
from pyosd.commands import names
from pyosd.commands.attributes import get_attributes
from pyosd.commands.collections import list_partitions
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.objects import create_partition
from pyosd.fs.paths import JOBS, PathInfo, check_name, encoded, join, named_id, split, text_of
from pyosd.types import FIRST_ID, ROOT, AttributeId, ObjectRef, ref
from pyosd.wire.attributes import Page, Timestamp
from pyosd.wire.names import PATH_MAX

__all__ = [
    "OF_A_PATH",
    "about",
    "absent",
    "find_partition",
    "make_partition",
    "named_partitions",
    "named_refusal",
    "rename_partition",
    "top_info",
]

KEPT_S = 1.0
"""Seconds that the name of a partition is used for: another client can give it to another one."""
_TIMES = (
    AttributeId(Page.PARTITION_TIMESTAMPS, Timestamp.CREATED),
    AttributeId(Page.PARTITION_TIMESTAMPS, Timestamp.DATA_MODIFIED),
)
_NO_NAME = (0x5, 0x80, 0x30)
_REFUSALS: dict[type[errors.OSDError], str] = {
    errors.NoSuchName: ": no such file or directory",
    errors.NotADirectory: ": not a directory",
    errors.NameExists: " exists",
    errors.IsADirectory: " is a directory",
    errors.NotEmpty: ": directory not empty",
}

OF_A_PATH = (*_REFUSALS,)
"""Refusals that are about a path."""


def absent(path: str) -> errors.NoSuchName:
    """The refusal of a path that nothing has."""
    return errors.NoSuchName(*_NO_NAME, f"{path!r}: no such file or directory")


@contextmanager
def about(fs: Any, path: str) -> Iterator[None]:
    """Let refusals of a command on a path name it, up to the name that the target refuses."""
    try:
        yield
    except OF_A_PATH as error:
        if error.sense is None:  # it names its path already
            raise
        raise named_refusal(error, path, int(fs.base is None)) from None


def named_refusal(error: errors.OSDError, path: str, known: int = 1) -> errors.OSDError:
    """The same error about a path; other errors are returned as they are.

    Args:
        known: names of the path that were not in the command: 1, the partition, or 0.
    """
    kind = next((each for each in _REFUSALS if isinstance(error, each)), None)
    if kind is None or error.sense is None:
        return error
    refused = join(path)
    if kind is not errors.NotEmpty and len(path) <= PATH_MAX:  # a longer one takes several commands
        refused = join(*split(path)[: known + 1 + (error.sense.information or 0)])
    code = (error.sense_key, error.asc, error.ascq, f"{refused!r}{_REFUSALS[kind]}")
    return kind(*code, sense=error.sense, sam_status=error.sam_status)


def find_partition(fs: Any, name: str) -> Dialogue[ObjectRef]:
    """The partition that has an id or a name.  A name is looked up again after KEPT_S.

    Raises: NoSuchName: no partition has the name.
    """
    number = named_id(name)
    if number is not None:
        return ref(number)
    known: dict[str, tuple[ObjectRef, float]] = fs.partitions
    found, since = known.get(name, (ROOT, -inf))
    now = monotonic()
    if now < since + KEPT_S:
        return found
    try:
        entry = yield from names.lookup(ROOT, encoded([name]))
    except (errors.Invalid, errors.NotFound):
        known.pop(name, None)
        raise errors.NoSuchName(*_NO_NAME, f"no partition has the name {name!r}") from None
    found = ref(entry.object.partition_id)
    known[name] = found, now
    return found


def make_partition(fs: Any, name: str) -> Dialogue[ObjectRef]:
    """Make a partition that has a name.  Raises: NameExists, Invalid."""
    check_name(name)
    made = ref((yield from create_partition(name=name)))
    fs.partitions[name] = made, monotonic()
    return made


def rename_partition(fs: Any, name: str, new_name: str, replace: bool) -> Dialogue[None]:
    """Give a partition, which has an id or a name, another name.

    Args:
        replace: a partition that has the new name is left without one.

    Raises: NameExists; NoSuchName.  ValueError: the new name is a partition's id.
    """
    if named_id(new_name) is not None:
        raise ValueError(f"'/{new_name}' is the id of a partition, which cannot be a name")
    number = named_id(name)
    old = name if number is None else (yield from _names()).get(number)
    if old is not None:
        yield from names.rename(ROOT, encoded([old]), encoded([new_name]), replace=replace)
        fs.partitions.pop(old, None)
    else:
        yield from names.link(ROOT, encoded([new_name]), ref(number or 0), replace=replace)
    fs.partitions.pop(new_name, None)


def named_partitions() -> Dialogue[list[tuple[str, ObjectRef]]]:
    """All partitions for data, each with its first name in paths: its name, or else its id."""
    found = yield from list_partitions()
    named = yield from _names()
    return [(named.get(each) or hex(each), ref(each)) for each in found if each >= FIRST_ID]


def _names() -> Dialogue[dict[int, str]]:
    """Partition -> its name; none without the permission to list the root's."""
    found, after, more = dict[int, str](), b"", True
    try:
        while more:
            page = yield from names.list_names(ROOT, after=after)
            found |= {each.object.partition_id: text_of(each.name) for each in page.entries}
            more = page.more
            after = page.entries[-1].name if page.entries else b""
    except (errors.PermissionDenied, errors.Invalid):
        return {}
    return {number: name for number, name in found.items() if name != JOBS}


def top_info(base: ObjectRef, path: str) -> Dialogue[PathInfo]:
    """A directory that paths begin at: the root, a partition, or a directory without a name here."""
    if base == ROOT or base.object_id:
        return PathInfo(path, base, True)
    try:
        created, modified = yield from get_attributes(base, _TIMES)
    except errors.NotFound:
        raise absent(path) from None
    return PathInfo(path, base, True, 0, created.uint, modified.uint)
