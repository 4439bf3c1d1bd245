# SPDX-License-Identifier: GPL-2.0-or-later
"""Names with credentials (docs/names.md): what one of the root, of a partition or of a directory permits,
and attempts to reach more with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.commands.provision import Provisioner
from pyosd.errors import Invalid, NoSuchName, OSDError, PermissionDenied
from pyosd.security.credentials import Credential, StaticSource
from pyosd.security.master_key import MasterKey
from pyosd.types import ROOT, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import Permission, SecurityMethod
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.names import NameParams, NameVerb
from tests.serving import Serving, missing, shared

pytestmark = pytest.mark.tgtd
CHANGE = Permission.CREATE | Permission.WRITE | Permission.REMOVE
CAPKEY, CMDRSP, ALLDATA = (
    getattr(SecurityMethod, each) for each in ("CAPKEY", "CMDRSP", "ALLDATA")
)
by_method = pytest.mark.parametrize("method", [CAPKEY, CMDRSP, ALLDATA], ids=lambda each: each.name)
TAG = AttributeValue(Page.USER_SECURITY, 0x4000_0001, b"\0\0\0\5")
TAG_OF_DIRECTORY = AttributeValue(Page.COLLECTION_SECURITY, 0x4000_0001, b"\0\0\0\5")


@dataclass
class Tree:
    """A target that takes nothing without credentials.  The partition has a/secret, mine/sub/f, mine/g."""

    served: Serving
    keys: Provisioner
    admin: pyosd.Target
    pid: PartitionId
    mine: ObjectRef
    secret: ObjectRef

    def credential(
        self, method: SecurityMethod, obj: ObjectRef, kind: ObjectType, permissions: Permission
    ) -> Credential:
        return self.keys.source(method).credential(obj, kind, permissions)

    def narrow(self, method: SecurityMethod, permissions: Permission = CHANGE) -> pyosd.Target:
        """A session with credentials of the directory mine alone."""
        kind = ObjectType.COLLECTION
        made = [
            self.credential(method, self.mine, kind, each)
            for each in (Permission.READ, permissions)
        ]
        return self.served.connect(credentials=StaticSource(made))

    def paths(self) -> list[bytes]:
        return sorted(walk(self.admin, ref(self.pid)))


def walk(osd: pyosd.Target, directory: ObjectRef, above: bytes = b"") -> Iterator[bytes]:
    for each in osd.list_names(directory).entries:
        yield above + each.name
        if each.is_directory:
            yield from walk(osd, each.object, above + each.name + b"/")


@pytest.fixture(scope="module")
def strict() -> Iterator[tuple[Serving, Provisioner]]:
    if why := missing():
        pytest.skip(why)
    with shared("--no-sandboxes", "--security", "capkey") as served, served.connect() as plain:
        yield served, Provisioner(plain, MasterKey.read(served.master_key))


@pytest.fixture
def tree(strict: tuple[Serving, Provisioner]) -> Iterator[Tree]:
    served, keys = strict
    with served.connect(credentials=keys.source()) as osd:
        pid = osd.create_partition()
    keys.add(pid)
    with served.connect(credentials=keys.source()) as admin:
        root = ref(pid)
        for path in ("a", "mine", "mine/sub"):
            admin.make_directory(root, path)
        for path in ("a/secret", "mine/sub/f", "mine/g"):
            admin.create_name(root, path)
        yield Tree(
            *(served, keys, admin, pid),
            admin.lookup(root, "mine").object,
            admin.lookup(root, "a/secret").object,
        )
        admin.remove_partition(pid, contents=True)


@by_method
def test_a_credential_of_a_directory_permits_its_subtree(
    tree: Tree, method: SecurityMethod
) -> None:
    with tree.narrow(method) as osd:
        assert osd.lookup(tree.mine, "sub/f").names == 1
        assert [e.name for e in osd.list_names(tree.mine, "sub", details=True).entries] == [b"f"]
        made = osd.create_name(tree.mine, "sub/new")
        assert made.made
        assert osd.rename(tree.mine, "sub/new", "top").object == made.object
        assert osd.link(tree.mine, "sub/again", "top").names == 2
        osd.make_directory(tree.mine, "sub/deep")
        osd.rename(tree.mine, "sub/deep", "g", exchange=True)
        osd.remove_directory(tree.mine, "g")
        assert osd.unlink(tree.mine, "top").names == 1
        assert osd.unlink(tree.mine, "sub/again").removed
        assert osd.put_name(tree.mine, "sub/file", b"secret").made
        found = osd.lookup_data(tree.mine, "sub/file", 100)[1]
        assert found is not None and bytes(found.data) == b"secret"
        assert osd.put_name(tree.mine, "sub/file", b"new", replace=True).removed
        osd.unlink(tree.mine, "sub/file")
    assert tree.paths() == [
        b"a",
        b"a/secret",
        b"mine",
        b"mine/sub",
        b"mine/sub/deep",
        b"mine/sub/f",
    ]


@by_method
def test_attempts_to_leave_it(tree: Tree, method: SecurityMethod) -> None:
    before = tree.paths()
    read = tree.credential(method, tree.mine, ObjectType.COLLECTION, Permission.READ)
    change = tree.credential(method, tree.mine, ObjectType.COLLECTION, CHANGE)
    with tree.narrow(method) as osd:
        for path in ("../a/secret", "sub/../../a/secret", "/a/secret", "./g", "..", "sub/.."):
            with pytest.raises(Invalid):
                osd.lookup(tree.mine, path)
            for act in (osd.unlink, osd.create_name, osd.remove_directory):
                with pytest.raises(Invalid):
                    act(tree.mine, path)
            with pytest.raises(Invalid):
                osd.put_name(tree.mine, path, b"x", replace=True)
            with pytest.raises(Invalid):
                osd.lookup_data(tree.mine, path, 10)
            with pytest.raises(Invalid):
                osd.rename(tree.mine, "g", path)
            with pytest.raises(Invalid):
                osd.link(tree.mine, "stolen", path)
        with pytest.raises(NoSuchName):
            osd.lookup(tree.mine, "a/secret")
        with pytest.raises(Invalid):  # by its id: only with a credential of the partition
            osd.link(tree.mine, "stolen", tree.secret)
        for verb in (NameVerb.UNLINK, NameVerb.RMDIR, NameVerb.RENAME):
            other = b"h" if verb is NameVerb.RENAME else b""
            with pytest.raises(Invalid):  # the directory itself has no name inside
                osd.call(rq.names(tree.mine, NameParams(verb, b"", other)), credential=change)
        for params in (NameParams(NameVerb.LOOKUP, b"a/secret"), NameParams(NameVerb.LIST, b"")):
            for elsewhere in (ref(tree.pid), ref(), tree.admin.lookup(ref(tree.pid), "a").object):
                with pytest.raises(PermissionDenied):
                    osd.call(rq.names(elsewhere, params), credential=read)
        with pytest.raises(PermissionDenied):
            osd.call(
                rq.names(ref(tree.pid), NameParams(NameVerb.UNLINK, b"a/secret")), credential=change
            )
    assert tree.paths() == before


@by_method
def test_it_permits_no_more_than_it_says(tree: Tree, method: SecurityMethod) -> None:
    before = tree.paths()
    read = tree.credential(method, tree.mine, ObjectType.COLLECTION, Permission.READ)
    write = tree.credential(
        method, tree.mine, ObjectType.COLLECTION, Permission.CREATE | Permission.WRITE
    )
    with tree.served.connect() as osd:
        for verb, other in (
            *((each, b"") for each in (NameVerb.CREATE, NameVerb.MKDIR, NameVerb.UNLINK)),
            (NameVerb.PUT, b""),
            *((each, b"x") for each in (NameVerb.LINK, NameVerb.RENAME)),
        ):
            request = rq.names(tree.mine, NameParams(verb, b"g", other))
            for less in (read, write):
                with pytest.raises(PermissionDenied) as caught:
                    osd.call(request, credential=less)
                assert caught.value.field_pointer == 129
        lists = AttributeLists(set=(AttributeValue(Page.APPLICATION, 1, b"x"),))
        request = rq.names(tree.mine, NameParams(NameVerb.LOOKUP, b"g"), attributes=lists)
        with pytest.raises(PermissionDenied):
            osd.call(request, credential=read)
        with pytest.raises(OSDError):
            osd.call(rq.names(tree.mine, NameParams(NameVerb.LOOKUP, b"g")))
    assert tree.paths() == before


def test_a_list_of_permitted_attributes_holds_for_listings(tree: Tree) -> None:
    """The list has none of those that LIST returns."""
    read = tree.credential(CAPKEY, tree.mine, ObjectType.COLLECTION, Permission.READ)
    limited = replace(read.capability, attributes_access=1)
    key, system = tree.keys.working[tree.pid], tree.keys.system_id
    for capability, shown in ((read.capability, True), (limited, False)):
        only = StaticSource([Credential.sign(capability, key, system)])
        with tree.served.connect(credentials=only) as osd:
            found = {each.name: each for each in osd.list_names(tree.mine, details=True).entries}
        assert sorted(found) == [b"g", b"sub"]
        assert bool(found[b"g"].created_ms) == any(found[b"g"].version) == shown


def tagged(tree: Tree, tag: int) -> Credential:
    """Of the whole partition, for objects with the tag."""
    plain = tree.credential(CAPKEY, ref(tree.pid), ObjectType.PARTITION, CHANGE)
    capability = replace(plain.capability, policy_access_tag=tag)
    return Credential.sign(capability, tree.keys.working[tree.pid], tree.keys.system_id)


def test_tags_are_those_of_the_object_and_of_its_directory(tree: Tree) -> None:
    """Tag 0 of a capability is any.  A name cannot be made in, moved to or taken from a directory with
    another tag, whatever the tag of the object is."""
    root = ref(tree.pid)
    of_partition = AttributeValue(Page.PARTITION_SECURITY, 0x4000_0001, b"\0\0\0\5")
    tree.admin.set_attributes(root, [of_partition])
    tree.admin.set_attributes(tree.mine, [TAG_OF_DIRECTORY])
    tree.admin.set_attributes(tree.admin.lookup(root, "mine/g").object, [TAG])
    five = tagged(tree, 5)
    before = tree.paths()
    with tree.served.connect() as osd:

        def send(verb: NameVerb, path: bytes, other: bytes = b"") -> None:
            osd.call(rq.names(root, NameParams(verb, path, other)), credential=five)

        for act in (
            (NameVerb.UNLINK, b"a/secret"),
            (NameVerb.UNLINK, b"mine/sub/f"),
            (NameVerb.CREATE, b"a/new"),
            (NameVerb.PUT, b"a/new"),
            (NameVerb.PUT, b"mine/sub/new"),
            (NameVerb.MKDIR, b"mine/sub/new"),
            (NameVerb.RENAME, b"mine/g", b"a/g"),
            (NameVerb.RENAME, b"a/secret", b"mine/s"),
            (NameVerb.LINK, b"mine/s", b"a/secret"),
            (NameVerb.LINK, b"a/g", b"mine/g"),
        ):
            with pytest.raises(PermissionDenied):
                send(*act)
            assert tree.paths() == before, act
        send(NameVerb.RENAME, b"mine/g", b"mine/h")
    assert b"mine/h" in tree.paths()


@by_method
def test_the_root(tree: Tree, method: SecurityMethod) -> None:
    """Its credential permits names of partitions, and nothing inside of them."""
    root, name = ref(), f"part{tree.pid:x}"
    read = tree.credential(method, ROOT, ObjectType.ROOT, Permission.READ)
    change = tree.credential(method, ROOT, ObjectType.ROOT, CHANGE)
    with tree.served.connect(credentials=StaticSource([read, change])) as osd:
        assert osd.link(root, name, ref(tree.pid)).object == ref(tree.pid)
        assert osd.lookup(root, name).object == ref(tree.pid)
        assert name.encode() in [each.name for each in osd.list_names(root).entries]
        for path in ("a", "a/secret", "mine/g"):
            with pytest.raises(PermissionDenied):
                osd.lookup(root, f"{name}/{path}")
            with pytest.raises(PermissionDenied):
                osd.unlink(root, f"{name}/{path}")
        with pytest.raises(PermissionDenied):
            osd.list_names(root, name)
        with pytest.raises(PermissionDenied):
            osd.call(rq.names(ref(tree.pid), NameParams(NameVerb.LOOKUP, b"a")), credential=read)
        assert not osd.unlink(root, name).removed
    of_partition = tree.credential(method, ref(tree.pid), ObjectType.PARTITION, Permission.READ)
    with tree.served.connect() as osd, pytest.raises(PermissionDenied):
        osd.call(rq.names(root, NameParams(NameVerb.LIST, b"")), credential=of_partition)
    assert b"a/secret" in tree.paths()


def test_names_lend_rights(tree: Tree) -> None:
    """As docs/security.md (section 10) warns: names of the whole partition, with READ of one directory, are
    READ of its objects.  Each alone is not, and a policy access tag keeps an object out."""
    root = ref(tree.pid)
    tree.admin.write(tree.secret, 0, b"secret")
    change = tree.credential(CAPKEY, root, ObjectType.PARTITION, CHANGE)
    read = tree.credential(CAPKEY, tree.mine, ObjectType.COLLECTION, Permission.READ)
    with tree.served.connect() as osd:

        def send(credential: Credential, obj: ObjectRef, params: NameParams) -> bytes:
            request = rq.names(obj, params, room=200)
            return bytes(osd.call(request, credential=credential).data)

        looks = NameParams(NameVerb.LOOKUP, b"secret", most=100)
        moves = NameParams(NameVerb.RENAME, b"a/secret", b"mine/secret")
        with pytest.raises(PermissionDenied):
            send(change, root, replace(looks, path=b"a/secret"))
        with pytest.raises(NoSuchName):
            send(read, tree.mine, looks)
        with pytest.raises(PermissionDenied):
            send(tagged(tree, 5), root, moves)
        send(change, root, moves)
        assert send(read, tree.mine, looks).endswith(b"secret")
