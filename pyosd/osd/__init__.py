# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of an intelligent OSD, for scripts that run next to them and, unchanged, at a client.

    import osd

    for each in osd.zone:                       # a partition, say
        for offset, line in each.grep("error"):
            print(each.object_id, line)
    osd.result("done")

The classes root, partition, collection and userobject name objects by their ids. The target
receives no request before you call a method. userobject.data is a file over an object's bytes.
query() finds objects by their attributes, glob() by their paths. open() opens a file by its path.

args are the arguments of the script. zone is the object that limits its rights. job is the object
that represents the job. A job of an array has its index in array_index, and the object of the array
in array. Both are None in other jobs. over has the objects of a job that runs over files. call()
runs a function of the target. stage() reads the data that pass through this one. progress(),
result() and log() report. The output of a script is the data of the job's object.

A refusal of the target is raised as an OSDError: NotFound, PermissionDenied, NoSpace and so on.
Sizes, offsets and lengths are in bytes. Ids have 64 bits. A script has one thread by default. Only
one thread at a time can use an object, a file object or an iterator.

In a sandbox calls go to the job's proxy.  Elsewhere they go to the target that the environment
variable IOSD_TARGET names, or over what use() was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._current import current, use
from ._data import Data
from ._errors import (
    Conflict,
    Ended,
    Exists,
    Invalid,
    NoSpace,
    NotEmpty,
    NotFound,
    OSDError,
    PermissionDenied,
    StorageError,
)
from ._job import ObjectChange, StageInput, call, change, log, progress, result, stage
from ._objects import OSDObject, collection, object_of_type, partition, root, userobject
from ._paths.names import PathName, glob, lookup, open  # noqa: A004 -- scripts write osd.open()
from ._query import Condition, attr
from ._transport import Context, Transport
from ._values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    args: Any
    """The arguments of the submitter: those of `Target.exec(args=)` unchanged, those of
    `osd exec SCRIPT -- WORDS` as a list.

    None: there are none.

    >>> osd.args
    ['one', 'two']
    """
    zone: OSDObject
    """The object that limits the rights of the script: a root, partition, collection or userobject.

    >>> osd.zone
    osd.root()
    """
    job: userobject
    """The user object that represents the job.  Its data are the output of the script.

    At a client there is none, and the ids are 0.

    >>> isinstance(osd.job, osd.userobject)
    True
    """
    array: userobject | None
    """In a member of an array of jobs: the user object that represents the array; else None.

    >>> osd.array is None
    True
    """
    over: list[userobject]
    """In a member of an array over objects (`Target.exec(over=)`, `osd exec --over`): its objects; else
    an empty list.

    >>> osd.over
    []
    """
    array_index: int | None
    """In a member of an array of jobs: its index; else None.

    >>> osd.array_index is None
    True
    """

__all__ = [
    "Condition",
    "Conflict",
    "Context",
    "Data",
    "Ended",
    "Exists",
    "Invalid",
    "NoSpace",
    "NotEmpty",
    "NotFound",
    "OSDError",
    "OSDObject",
    "ObjectChange",
    "PathName",
    "PermissionDenied",
    "StageInput",
    "StorageError",
    "Transport",
    "Value",
    "args",
    "array",
    "array_index",
    "attr",
    "call",
    "change",
    "collection",
    "glob",
    "job",
    "log",
    "lookup",
    "open",
    "over",
    "partition",
    "progress",
    "query",
    "result",
    "root",
    "stage",
    "use",
    "userobject",
    "zone",
]


def query(condition: Condition | None = None) -> Iterator[userobject]:
    """User objects of the zone whose attributes match; see partition.query().

    >>> u.setattr([(0x10000, 5, "mine")])
    >>> u in list(osd.query(osd.attr(0x10000, 5) == "mine"))
    True

    Raises: Invalid: the zone is a user object; NotFound, PermissionDenied.
    """
    context = current().context
    where = object_of_type(context.zone_type, *context.zone)
    if isinstance(where, userobject):
        raise Invalid("a zone of one object has nothing to look for")
    assert isinstance(where, root | partition | collection)
    return where.query(condition)


def __getattr__(name: str) -> object:
    """Arguments come with the job, after the import of this package."""
    if name == "args":
        return current().context.args
    if name == "zone":
        context = current().context
        return object_of_type(context.zone_type, *context.zone)
    if name == "job":
        return userobject(*current().context.job)
    if name == "over":
        return [userobject(*ids) for ids in current().context.over]
    if name == "array_index":
        return current().context.array_index
    if name == "array":
        ids = current().context.array
        if ids == (0, 0):
            return None
        return userobject(*ids)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
