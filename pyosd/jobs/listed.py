# SPDX-License-Identifier: GPL-2.0-or-later
"""The partitions whose jobs a user may list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pyosd import errors
from pyosd.commands import Commands
from pyosd.types import PartitionId

__all__ = ["of_partitions_with_jobs", "partitions_with_jobs"]

Value = TypeVar("Value")


def partitions_with_jobs(commands: Commands) -> list[PartitionId]:
    """The partitions whose jobs can be listed. Without permission to list the root, these are the
    partitions of the source of credentials, and only the user's own jobs are listed.

    Raises: PermissionDenied: neither.
    """
    try:
        return commands.list_partitions()
    except errors.PermissionDenied:
        source = commands.signer.source
        partitions = source.partitions() if source is not None else None
        if partitions is None:
            raise
        return partitions


def of_partitions_with_jobs(
    commands: Commands, listed: Callable[[PartitionId], Iterable[Value]]
) -> Iterator[Value]:
    """The values that listed() returns for the partitions whose jobs can be listed.

    A partition of which the user may not list the jobs is left out.

    Raises: PermissionDenied: there is no other partition.
    """
    refused, permitted = None, False
    for partition_id in partitions_with_jobs(commands):
        try:
            found = listed(partition_id)
        except errors.PermissionDenied as error:
            if not error.verified:
                raise
            refused = error
        else:
            permitted = True
            yield from found
    if refused is not None and not permitted:
        raise refused
