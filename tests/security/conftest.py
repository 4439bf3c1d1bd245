# SPDX-License-Identifier: GPL-2.0-or-later
"""A served target that has keys, and an object to do things with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import pyosd
from pyosd.commands.provision import Provisioner
from pyosd.security.master_key import MasterKey
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.capability import SecurityMethod
from tests.serving import Serving, missing, shared

BEFORE = b"0123456789abcdef"
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green-ish")


@dataclass
class Guarded:
    """A target, a session without credentials, keys, and an object in a partition."""

    served: Serving
    plain: pyosd.Target
    keys: Provisioner
    partition_id: int
    obj: ObjectRef

    def connect(self, method: SecurityMethod, url: str = "", **options: float) -> pyosd.Target:
        """A separate session with permission for everything."""
        return pyosd.connect(
            url or self.served.url,
            credentials=self.keys.source(method),
            **options,  # type: ignore[arg-type]
        )

    def reset(self) -> None:
        """The object as tests find it."""
        empty = AttributeValue(*LOGICAL_LENGTH, bytes(8))
        self.plain.set_attributes(self.obj, [empty, COLOUR])
        self.plain.write(self.obj, 0, BEFORE)

    def state(self) -> tuple[bytes, bytes]:
        """Its contents."""
        data = bytes(self.plain.read(self.obj, 0, 4096))
        return data, self.plain.get_attribute(self.obj, *COLOUR.id)


@pytest.fixture(scope="session")
def guarded() -> Iterator[Guarded]:
    """Its least method is NOSEC, so that tests may look without leave; any other is enforced where it is
    used.
    """
    if why := missing():
        pytest.skip(why)
    with shared("--no-sandboxes") as served, served.connect() as plain:
        pid = plain.create_partition()
        keys = Provisioner(plain, MasterKey.read(served.master_key))
        keys.add(pid)
        obj = plain.create_and_write(pid, BEFORE)
        yield Guarded(served, plain, keys, pid, obj)
