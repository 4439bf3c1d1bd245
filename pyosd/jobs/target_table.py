# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods about jobs that Target and AsyncTarget share, beside commands."""

from __future__ import annotations

from typing import Any

from pyosd.commands.attributes import get_attribute
from pyosd.commands.dialogue import Dialogue, Method, OwnMethod, blocking_call
from pyosd.iscsi.session import local_address
from pyosd.jobs.submission import jobs_of
from pyosd.types import ObjectRef, PartitionId
from pyosd.wire.attributes import CURRENT_PRINCIPAL
from pyosd.wire.job_status import JobStatus

__all__ = ["TargetTable"]


def principals(target: Any, obj: ObjectRef) -> Dialogue[frozenset[str]]:
    """The names that JobStatus.principal may have for jobs of this session.

    Args:
        obj: any object whose attributes this session may read.

    With a security manager's credentials it is one name, which the target says.  Else the target
    knows sessions by CHAP user or by address.
    """
    told = (yield from get_attribute(obj, *CURRENT_PRINCIPAL)).decode(errors="replace")
    if told.startswith("audit:"):
        return frozenset((told,))
    place = target.transport.address
    own = yield from blocking_call(lambda: local_address(place.host, place.port))
    user = [f"chap:{place.chap.user}"] if place.chap else []
    return frozenset((f"addr:{own}", f"addr:[{own}]", *user))


def jobs(partition_id: PartitionId) -> Dialogue[list[JobStatus]]:
    """Every job whose surrogate is in a partition, by id, in one command."""
    return jobs_of(partition_id)


class TargetTable:
    """Methods about jobs."""

    principals = OwnMethod(principals)
    jobs = Method(jobs)
