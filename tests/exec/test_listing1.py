# SPDX-License-Identifier: GPL-2.0-or-later
"""Listing 1 of the iOSD paper, as a function of the store (examples/functions/listing1.py)."""

from __future__ import annotations

import pytest

from pyosd.errors import ScriptError
from pyosd.functions import Access
from pyosd.types import ROOT, PartitionId, ref
from tests.machine import ROOT as TREE
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

LISTING = TREE / "examples" / "functions" / "listing1.py"


def test_it_does_what_the_script_does() -> None:
    with Serving() as serving, serving.connect() as target:
        target.functions.put(LISTING, access=Access.WRITE)
        for _ in range(2):
            job = target.functions.submit("listing1", zone=ROOT)
            assert job.result() == ["Hello World\n"]
            script = target.exec(TREE / "examples" / "listing1.py", zone=ROOT)
            script.wait(60)
            assert list(job.logs()) == list(script.logs())[:1]
            assert PartitionId(0x10000) not in target.list_partitions()


def test_it_leaves_objects_of_others() -> None:
    """A store has the paper's ids as soon as somebody has made a partition and an object."""
    with Serving() as serving, serving.connect() as target:
        mine = target.create_and_write(target.create_partition(0x10000), b"mine")
        assert mine == ref(0x10000, 0x10000)
        target.functions.put(LISTING, access=Access.WRITE)
        assert target.functions.call("listing1", zone=ROOT) == ["Hello World\n"]
        assert bytes(target.read(mine, 0, 4)) == b"mine"
        assert PartitionId(0x10001) not in target.list_partitions()


def test_its_access_class_and_zone_bind_it() -> None:
    with Serving() as serving, serving.connect() as target:
        target.functions.put(LISTING, name="reads", access=Access.READ)
        target.functions.put(LISTING, access=Access.WRITE)
        for name, zone in (("reads", ROOT), ("listing1", ref(target.create_partition(0x20000)))):
            with pytest.raises(ScriptError, match="PermissionDenied"):
                target.functions.call(name, zone=zone)
