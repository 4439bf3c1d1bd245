# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of an intelligent OSD, for scripts that run next to them and, unchanged, at a client.

Classes root, partition, collection and userobject name objects; userobject.data is a file over its
bytes.  args, zone and job tell what the script was given: its arguments, the object its rights end
at, and the object that stands for the job.  progress(), result() and log() report.

In a sandbox calls go to the job's proxy.  Elsewhere they go to the target that the environment
variable IOSD_TARGET names (see _client), or over what use() was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from ._job import log, progress, result
from ._objects import OSDObject, collection, object_of_type, partition, root, userobject
from ._query import Condition, attr
from ._transport import Context, Transport, current, use
from ._values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    args: Any  # whatever the submitter gave
    zone: OSDObject
    job: userobject

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
    "PermissionDenied",
    "StorageError",
    "Transport",
    "Value",
    "args",
    "attr",
    "collection",
    "job",
    "log",
    "partition",
    "progress",
    "query",
    "result",
    "root",
    "use",
    "userobject",
    "zone",
]


def query(condition: Condition | None = None) -> Iterator[userobject]:
    """User objects of the zone whose attributes match; see partition.query()."""
    context = current().context
    where = object_of_type(context.zone_type, *context.zone)
    if isinstance(where, userobject):
        raise Invalid("a zone of one object has nothing to look for")
    assert isinstance(where, root | partition | collection)
    return where.query(condition)


def __getattr__(name: str) -> object:
    """args, zone and job come with the job, after this package was imported."""
    if name == "args":
        return current().context.args
    if name == "zone":
        context = current().context
        return object_of_type(context.zone_type, *context.zone)
    if name == "job":
        return userobject(*current().context.job)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
