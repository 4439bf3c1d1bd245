# SPDX-License-Identifier: GPL-2.0-or-later
"""Permissions for views: those of the user who names a source, and those of readers and writers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pyosd.errors import Invalid, PermissionDenied
from pyosd.security.credentials import Credential, KeySource
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Permission
from tests.exec.test_rights import Keyed
from tests.exec.test_views import shows
from tests.serving import arguments, shared

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


class Lacking(KeySource):
    """The credentials for one object lack permissions."""

    lacks: tuple[ObjectRef, Permission]

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        found = super().credential(obj, object_type, permissions)
        if obj != self.lacks[0]:
            return found
        kept = replace(found.capability, permissions=permissions & ~self.lacks[1])
        return Credential.sign(kept, self._keys[obj.partition_id], self._system_id)


@pytest.fixture(scope="module")
def keyed() -> Iterator[Keyed]:
    with shared(*arguments(["--slots", "2"])) as served:
        found = Keyed(served)
        yield found
        found.plain.close()


def without(keyed: Keyed, obj: ObjectRef, permissions: Permission) -> Any:
    """A session whose credentials for the object lack permissions."""
    source = Lacking(keyed.keys.working, keyed.system_id)
    source.lacks = (obj, permissions)
    return keyed.connect(source)


def at_the_extension(caught: pytest.ExceptionInfo[Invalid]) -> bool:
    """The capability for the source, which the continuation segment has, does not suffice."""
    sense = caught.value.sense
    return sense is not None and sense.field_pointer == 48


def test_permissions_to_name_a_source(keyed: Keyed) -> None:
    """READ, and WRITE if the view is writable."""
    with keyed.connect() as target:
        shown = target.create(keyed.pid)
    with without(keyed, keyed.obj, Permission.WRITE) as target:
        shows(target, shown, keyed.obj)
        with pytest.raises(Invalid) as caught:
            shows(target, shown, keyed.obj, writable=True)
        assert at_the_extension(caught)
    with without(keyed, keyed.obj, Permission.READ) as target:
        for writable in (False, True):
            with pytest.raises(Invalid) as caught:
                shows(target, shown, keyed.obj, writable)
            assert at_the_extension(caught)


def test_permissions_to_read_and_write(keyed: Keyed) -> None:
    """Those for the object of the view, and none for its source."""
    with keyed.connect() as target:
        shown = target.create(keyed.pid)
        shows(target, shown, keyed.obj, writable=True)
    with without(keyed, keyed.obj, ~Permission(0)) as target:
        target.write(shown, 0, b"new")
        assert bytes(target.read(shown, 0, 3)) == b"new"
        with pytest.raises(PermissionDenied):
            target.read(keyed.obj, 0, 3)
    with without(keyed, shown, Permission.WRITE) as target:
        assert bytes(target.read(keyed.obj, 0, 3)) == b"new"
        with pytest.raises(PermissionDenied):
            target.write(shown, 0, b"x")
