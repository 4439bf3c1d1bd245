# SPDX-License-Identifier: GPL-2.0-or-later
"""Permissions for views: those of the user who names a source, and those of readers and writers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pyosd.errors import Invalid, PermissionDenied
from pyosd.security.credentials import Credential, KeySource
from pyosd.types import AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import Permission, SecurityMethod
from tests.exec.test_rights import METHOD, Keyed
from tests.exec.test_views import SOURCE, shows
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


def becomes(target: Any, view: ObjectRef, base: ObjectRef, flags: bytes) -> None:
    value = base.partition_id.to_bytes(8) + flags
    target.set_attributes(view, [AttributeValue(Page.PARTITION_STACK, SOURCE, value)])


@pytest.fixture
def view(keyed: Keyed) -> Iterator[ObjectRef]:
    """A partition with keys."""
    made = ref(keyed.plain.create_partition())
    keyed.keys.add(made.partition_id)
    yield made
    keyed.plain.remove_partition(made.partition_id, contents=True)


def test_permissions_to_make_a_view(keyed: Keyed, view: ObjectRef) -> None:
    """READ for the base, and the right to change its objects if the view is writable."""
    base = ref(keyed.pid)
    for lacks, flags in (
        (Permission.READ, b""),
        (Permission.WRITE, b"\1"),
        (Permission.CREATE, b"\1"),
        (Permission.REMOVE, b"\1"),
    ):
        with without(keyed, base, lacks) as target, pytest.raises(Invalid) as caught:
            becomes(target, view, base, flags)
        assert at_the_extension(caught)
    with pytest.raises(Invalid):  # without a capability
        becomes(keyed.plain, view, base, b"")
    with keyed.connect() as target:
        part = target.create_collection(keyed.pid)
    for flags in (bytes(1) + part.object_id.to_bytes(8), b""):
        with without(keyed, base, Permission.READ) as target, pytest.raises(Invalid):
            becomes(target, view, base, flags)
        with without(keyed, base, ~Permission.READ) as target:
            becomes(target, view, base, flags)


def test_permissions_to_decide_about_a_whole_partition(keyed: Keyed) -> None:
    """Also to remove what there is: POL_SEC beside the permissions for one object."""
    with keyed.connect() as target:
        part = target.create_collection(keyed.pid)
    for obj, page, number in (
        (ref(keyed.pid), Page.PARTITION_STACK, 1),
        (ref(keyed.pid), Page.PARTITION_STACK, SOURCE),
        (ref(keyed.pid), Page.PARTITION_HOOKS, 1),
        (part, Page.COLLECTION_STACK, 1),
    ):
        value = AttributeValue(page, number, b"")
        for lacks in (Permission.POL_SEC, Permission.FUN_EXE, Permission.SET_ATTR):
            with without(keyed, obj, lacks) as target, pytest.raises(PermissionDenied):
                target.set_attributes(obj, [value])
        with keyed.connect() as target:
            target.set_attributes(obj, [value])
    with without(keyed, keyed.obj, Permission.POL_SEC) as target:
        for page in (Page.STACK, Page.HOOKS):
            target.set_attributes(keyed.obj, [AttributeValue(page, 1, b"")])


class Lists(KeySource):
    """The credentials permit less on the user objects of a partition than on the partition itself."""

    pid: int
    permissions: Permission
    tag = 0

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        found = super().credential(obj, object_type, permissions)
        if obj.partition_id != self.pid or object_type is not ObjectType.USER_OBJECT:
            return found
        kept = replace(
            found.capability,
            permissions=permissions & self.permissions,
            policy_access_tag=self.tag,
        )
        return Credential.sign(kept, self._keys[obj.partition_id], self._system_id)


@pytest.mark.parametrize(
    ("flags", "permitted", "tag"),
    [
        (b"", Permission(0), 0),
        (b"", Permission.READ, 7),
        (b"\1", Permission.READ | Permission.WRITE, 0),
    ],
)
def test_permission_to_list_the_base_is_not_enough(
    keyed: Keyed, view: ObjectRef, flags: bytes, permitted: Permission, tag: int
) -> None:
    """A view shows the data of objects that are made later, whatever their policy access tag."""
    source = Lists(keyed.keys.working, keyed.system_id)
    source.pid, source.permissions, source.tag = keyed.pid, permitted, tag
    with keyed.connect(source) as target:
        assert keyed.obj in target.list_objects(keyed.pid)
        with pytest.raises(Invalid) as caught:
            becomes(target, view, ref(keyed.pid), flags)
        assert at_the_extension(caught)


def test_permissions_to_make_objects_in_a_view(keyed: Keyed, view: ObjectRef) -> None:
    """CREATE and REMOVE for the view, and none for the base."""
    stored, shown = (ref(each, 0x66666) for each in (keyed.pid, view.partition_id))
    with keyed.connect() as target:
        becomes(target, view, ref(keyed.pid), b"\1")
    with without(keyed, stored, ~Permission(0)) as target:
        target.create(view.partition_id, shown.object_id)
        with pytest.raises(PermissionDenied):
            target.remove(stored)
        target.remove(shown)
        target.create_and_write(view.partition_id, b"x", requested_id=shown.object_id)
        with pytest.raises(PermissionDenied):
            target.read(stored, 0, 1)
    method = AttributeValue(Page.PARTITION_SECURITY, METHOD, bytes((SecurityMethod.CAPKEY,)))
    keyed.plain.set_attributes(view, [method])
    with without(keyed, shown, Permission.REMOVE) as target:
        with pytest.raises(PermissionDenied):
            target.remove(shown)
        assert bytes(target.read(stored, 0, 1)) == b"x"


class Tagged(KeySource):
    """The credentials are for objects with a policy access tag."""

    tag: int

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        found = super().credential(obj, object_type, permissions)
        kept = replace(found.capability, policy_access_tag=self.tag)
        return Credential.sign(kept, self._keys[obj.partition_id], self._system_id)


def test_permissions_for_names_in_a_view(keyed: Keyed, view: ObjectRef) -> None:
    """Those for the view, or for a directory of it, and none for the base."""
    base = ref(keyed.pid)
    with keyed.connect() as target:
        becomes(target, view, base, b"\1")
        directory = target.make_directory(base, "dir").object
        made = target.put_name(base, "dir/a", b"x").object
    shown, below = (ref(view.partition_id, each.object_id) for each in (made, directory))
    with without(keyed, base, ~Permission(0)) as target:
        for where, path in ((view, "dir/a"), (below, "a")):
            assert target.lookup(where, path).object == shown
            assert target.list_names(where, path.rpartition("/")[0]).entries
            target.put_name(where, path + "2", b"y")
            target.rename(where, path + "2", path + "3")
            target.unlink(where, path + "3")
        with pytest.raises(PermissionDenied):
            target.lookup(base, "dir/a")
    for lacks in (view, below):
        path = "dir/a" if lacks == view else "a"
        with without(keyed, lacks, Permission.READ) as target, pytest.raises(PermissionDenied):
            target.lookup(lacks, path)
        with without(keyed, lacks, Permission.WRITE) as target, pytest.raises(PermissionDenied):
            target.unlink(lacks, path)
    source = Tagged(keyed.keys.working, keyed.system_id)
    source.tag = 7
    with keyed.connect(source) as target, pytest.raises(PermissionDenied):
        target.lookup(view, "dir/a")
    with keyed.connect() as target:
        target.unlink(view, "dir/a")
        target.remove_directory(view, "dir")
