# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists over all partitions, for a user who may not read all of them; needs no target."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pyosd.cli.host.df import partition
from pyosd.cli.objects.part import COLUMNS, describe_permitted
from pyosd.cli.paths.sync import CLOCKS_AGREE_MS, clock_ahead
from pyosd.commands import Commands
from pyosd.errors import PermissionDenied
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.target import Target
from pyosd.types import PartitionId, ref

MINE, OTHER = PartitionId(0x10000), PartitionId(0x10001)


def refusal(*, verified: bool = True) -> PermissionDenied:
    error = PermissionDenied(5, 0x24, 0, "no permission")
    error.verified = verified
    return error


class Partly:
    """A target that permits nothing in one partition, or sends refusals that prove nothing."""

    def __init__(self, *, verified: bool = True) -> None:
        self.verified = verified

    def list_partitions(self) -> list[PartitionId]:
        return [MINE, OTHER]

    def jobs(self, pid: PartitionId) -> list[str]:
        if pid == OTHER:
            raise refusal(verified=self.verified)
        return ["a job"]

    def get_attributes(self, *_: Any) -> Any:
        raise refusal(verified=self.verified)

    get_attribute = get_attributes


def test_jobs_of_a_partition_that_refuses_are_left_out() -> None:
    target = Partly()
    assert [*of_partitions_with_jobs(cast(Commands, target), target.jobs)] == ["a job"]
    with pytest.raises(PermissionDenied):
        next(of_partitions_with_jobs(cast(Commands, target), lambda _: target.jobs(OTHER)))


def test_partitions_that_refuse_have_their_id_alone() -> None:
    commands = cast(Commands, Partly())
    row = describe_permitted(commands, ref(OTHER))
    assert [each.text(row) for each in COLUMNS] == [hex(OTHER), "-", "-", "-", "-", "-"]
    assert partition(commands, OTHER, 1)["id"] == hex(OTHER)


def test_a_clock_that_may_not_be_read_can_be_ahead_a_little() -> None:
    assert clock_ahead(cast(Target, Partly())) == CLOCKS_AGREE_MS


def test_a_refusal_without_proof_hides_nothing() -> None:
    target = Partly(verified=False)
    commands = cast(Commands, target)
    for act in (
        lambda: [*of_partitions_with_jobs(commands, target.jobs)],
        lambda: describe_permitted(commands, ref(OTHER)),
        lambda: partition(commands, OTHER, 1),
        lambda: clock_ahead(cast(Target, target)),
    ):
        with pytest.raises(PermissionDenied):
            act()
