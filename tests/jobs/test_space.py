# SPDX-License-Identifier: GPL-2.0-or-later
"""What a client occupies or reads is counted, whichever way it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyosd.exec_params import Limits
from pyosd.job_status import JobState

from tests.jobs.test_exec import DEADLINE_S, run

if TYPE_CHECKING:
    from pyosd.types import ObjectRef
    from tests.jobs.conftest import Target

MIB = 1 << 20

READ = """
import osd
data = osd.userobject({o.partition_id}, {o.object_id}).data
{how}
"""
WAYS = {
    "in large pieces": "while data.read(4 << 20): pass",
    "all at once": "data.read()",
    "through a map": "sum(memoryview(data.map())[::4096])",
}


def large_object(target: Target, length: int) -> ObjectRef:
    """An object of zeros that need no space."""
    made = target.commands.create(target.partition.partition_id)
    target.commands.write(made, length - 1, b"\0")
    return made


# ---- bytes read


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_io_limit_holds_for_large_reads(target: Target, how: str) -> None:
    """They would be made through descriptors, where nobody counts."""
    code = READ.format(o=large_object(target, 200 * MIB), how=how)
    status = run(target, code, limits=Limits(io=MIB)).wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.LIMIT_EXCEEDED, 307)
    assert status.bytes_read <= MIB


def test_reads_within_an_io_limit_are_exact(target: Target) -> None:
    """Also of those that would be maps, which are copies then."""
    made = large_object(target, 3 * MIB)
    how = "assert len(data.map()) == 3 << 20; assert data.read(1 << 20)"
    status = run(target, READ.format(o=made, how=how), limits=Limits(io=5 * MIB)).wait(DEADLINE_S)
    assert (status.state, status.bytes_read) == (JobState.COMPLETED, 4 * MIB)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_bytes_read_include_descriptors(target: Target, how: str) -> None:
    """Each time an object's descriptors are passed its length counts as read."""
    made = large_object(target, 20 * MIB)
    status = run(target, READ.format(o=made, how=how)).wait(DEADLINE_S)
    assert status.state is JobState.COMPLETED
    assert 20 * MIB <= status.bytes_read <= 25 * MIB
