# SPDX-License-Identifier: GPL-2.0-or-later
"""Views of collections and directories: they have the members (docs/views.md, "Views of collections")."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import Invalid, NoSuchName, NotADirectory, NotFound, OSDError
from pyosd.functions import Functions, FunctionStage
from pyosd.osd._query import attr
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.exec.conftest import Run
from tests.exec.test_stacks import CONTRACT, NO_CHANGE, SAME, put, refusal, whole
from tests.exec.test_view_names import MADE_IN_VIEW, NAMES, UPPER, in_view, names
from tests.exec.test_views import SOURCE
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

NOTE = AttributeValue(Page.APPLICATION, 1, b"of the view")


@pytest.fixture
def upper(functions: Functions) -> FunctionStage:
    return FunctionStage(put(functions, UPPER, SAME, name="upper"))


def members(target: pyosd.Target, view: PartitionId) -> list[int]:
    return [each.object_id for each in target.list_objects(view)]


def test_a_view_has_the_members(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    """Those from before and later ones, until they leave, are removed, or the collection is."""
    part = target.create_collection(zone.partition_id)
    made = [target.create_and_write(zone.partition_id, b"text") for _ in range(4)]
    target.add_member(part, made[0])
    view = functions.view_create(part, [upper]).id
    far = functions.view_create(view, []).id
    assert functions.view(view).source == part
    joins = AttributeValue(Page.USER_COLLECTIONS, 1, part.object_id.to_bytes(8))
    made.append(target.create_and_write(zone.partition_id, b"text", attributes=[joins]))
    target.add_member(part, made[2])
    for each in (view, far):
        assert members(target, each) == sorted(made[at].object_id for at in (0, 2, 4))
        assert whole(target, ref(each, made[4].object_id)) == b"TEXT"
        with pytest.raises(NotFound):
            target.read(ref(each, made[1].object_id), 0, 1)
    target.set_attributes(ref(view, made[0].object_id), [NOTE])
    found = target.query(ref(view), attr(NOTE.page, NOTE.number) == NOTE.value)
    assert found == [ref(view, made[0].object_id)]
    target.remove_member(part, made[0])
    target.remove(made[2])
    for each in (view, far):
        assert members(target, each) == [made[4].object_id]
    target.add_member(part, made[0])
    assert not target.get_attribute(ref(view, made[0].object_id), NOTE.page, NOTE.number)
    target.remove_collection(part, with_members=True)
    assert members(target, view) == members(target, far) == []
    again = target.create_collection(zone.partition_id, part.object_id)
    target.add_member(again, made[1])
    assert members(target, view) == [], "a later collection with the id is another one"
    with pytest.raises(Invalid, match="made again"):
        functions.view_refresh(view)


def test_names_of_a_directory(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    """Those in the directory itself: neither others of the base nor those in directories below."""
    directory = target.make_directory(zone, "logs").object
    below = target.make_directory(zone, "logs/old").object
    target.put_name(zone, "outside", b"secret")
    target.put_name(zone, "logs/old/b", b"secret")
    made = target.put_name(zone, "logs/a", b"text").object
    view = functions.view_create(directory, [upper], name="upper").id
    far = functions.view_create(view, []).id
    for each in (view, far):
        for top in (ref(each), in_view(each, directory)):
            assert names(target, top) == {"a": in_view(each, made)}
            assert target.lookup(top, "a").object == in_view(each, made)
            for path in ("old", "old/b", "outside", "logs", "logs/a"):
                with pytest.raises(NoSuchName):
                    target.lookup(top, path)
            with pytest.raises(NoSuchName):
                target.list_names(top, "old")
            with pytest.raises(NotADirectory):
                target.lookup(top, "a/b")
        with pytest.raises(NotFound):
            target.list_names(in_view(each, below))
        with pytest.raises(NotFound):
            target.list_members(in_view(each, below))
        assert target.list_members(in_view(each, directory)) == [in_view(each, made)]
    assert target.lookup(ref(0), "upper/a").object == in_view(view, made)
    target.link(zone, "logs/old/c", made)
    target.link(zone, "logs/d", made)
    target.rename(zone, "outside", "logs/e")
    target.unlink(zone, "logs/a")
    assert names(target, ref(far)).keys() == {"d", "e"}
    target.rename(zone, "logs", "elsewhere")
    assert names(target, ref(view)).keys() == {"d", "e"}
    target.unlink(zone, "elsewhere/d")
    assert names(target, ref(far)).keys() == {"e"}
    assert len(members(target, far)) == 1, "an object with another name elsewhere has left"
    target.unlink(zone, "elsewhere/e")
    for path in ("elsewhere/old/b", "elsewhere/old/c"):
        target.unlink(zone, path)
    target.remove_directory(zone, "elsewhere/old")
    target.remove_directory(zone, "elsewhere")
    assert names(target, ref(view)) == {} and members(target, view) == []


def test_a_collection_without_names(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    part = target.create_collection(zone.partition_id)
    made = target.put_name(zone, "a", b"x").object
    target.add_member(part, made)
    view = functions.view_create(part, [], writable=True).id
    assert names(target, ref(view)) == {}
    with pytest.raises(NoSuchName):
        target.lookup(ref(view), "a")
    with pytest.raises(OSDError) as caught:
        target.link(ref(view), "b", in_view(view, made))
    assert refusal(caught) == (CONTRACT, NAMES)


def test_nothing_is_made_in_a_view_of_a_collection(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Its objects are written, and removed with those of the base, if it is writable."""
    directory = target.make_directory(zone, "d").object
    made = target.put_name(zone, "d/a", b"text").object
    other = target.create_and_write(zone.partition_id, b"other")
    view = functions.view_create(directory, [], writable=True).id
    plain = functions.view_create(directory, []).id
    changes: list[tuple[Callable[[], object], int]] = [
        (lambda: target.create(view), MADE_IN_VIEW),
        (lambda: target.create_and_write(view, b"x"), MADE_IN_VIEW),
        (lambda: target.copy(other, view), MADE_IN_VIEW),
        (lambda: target.put_name(ref(view), "b", b"x"), MADE_IN_VIEW),
        (lambda: target.put_name(in_view(view, directory), "b", b"x"), MADE_IN_VIEW),
        (lambda: target.make_directory(ref(view), "b"), MADE_IN_VIEW),
        (lambda: target.unlink(ref(view), "a"), NAMES),
        (lambda: target.rename(ref(view), "a", "b"), NAMES),
        (lambda: target.link(ref(view), "b", in_view(view, made)), NAMES),
        (lambda: target.write(in_view(plain, made), 0, b"x"), NO_CHANGE),
        (lambda: target.remove(in_view(plain, made)), NO_CHANGE),
    ]
    for change, why in changes:
        with pytest.raises(OSDError) as caught:
            change()
        assert refusal(caught) == (CONTRACT, why)
    target.write(in_view(view, made), 0, b"TE")
    assert whole(target, made) == whole(target, in_view(plain, made)) == b"TExt"
    for stranger in (other, ref(zone.partition_id, 0x77777)):
        value = stranger.partition_id.to_bytes(8) + stranger.object_id.to_bytes(8)
        with pytest.raises(Invalid):
            target.create_and_write(
                plain,
                b"",
                requested_id=stranger.object_id,
                attributes=[AttributeValue(Page.STACK, SOURCE, value)],
            )
    target.remove(in_view(view, made))
    assert names(target, zone, "d") == {} and members(target, plain) == []


def test_what_cannot_be_a_base(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    directory = target.make_directory(zone, "d").object
    user_object = target.create(zone.partition_id)
    near = functions.view_create(zone.partition_id, []).id
    own = target.create_collection(near)
    for source in (
        user_object,
        ref(zone.partition_id, 0x7777),
        ref(zone.partition_id, 1),
        in_view(near, directory),
    ):
        with pytest.raises(Invalid):
            functions.view_create(source, [])
    target.add_member(own, in_view(near, user_object))
    view = functions.view_create(own, []).id
    assert members(target, view) == [user_object.object_id]
    target.remove(user_object)
    assert members(target, view) == []


def test_scripts_in_a_view_of_a_directory(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run, upper: FunctionStage
) -> None:
    directory = target.make_directory(zone, "d").object
    target.make_directory(zone, "d/e")
    made = target.put_name(zone, "d/a.txt", b"text").object
    target.put_name(zone, "d/e/b.txt", b"other")
    target.link(zone, "first", made)
    view = functions.view_create(directory, [upper]).id
    script = """
        import osd
        osd.result({path: osd.open(path, "rb").read().decode() for path in osd.glob("**/*.txt")})
    """
    for where in (ref(view), in_view(view, directory)):
        status = run(script, zone=where)
        assert status.state is JobState.COMPLETED, target.job(status.id).stderr()
        assert target.job(status.id).result() == {"a.txt": "TEXT"}


def test_views_made_beside_changes_of_members(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, serving: Serving, seed: int
) -> None:
    """Each view has the members in the end, whenever it was made."""
    part = target.create_collection(zone.partition_id)
    directory = target.make_directory(zone, "d").object
    made = [target.create(zone.partition_id) for _ in range(6)]
    views = list[tuple[ObjectRef, PartitionId]]()
    ended = threading.Event()

    def change(number: int) -> None:
        chance = random.Random(seed + number)
        with serving.connect() as client:
            while not ended.is_set():
                for at in range(number, len(made), 2):
                    if chance.random() < 0.5:
                        client.add_member(part, made[at])
                    else:
                        client.remove_member(part, made[at])
                client.put_name(directory, f"a{number}", b"x", replace=True)
                if chance.random() < 0.5:
                    client.unlink(directory, f"a{number}")

    with ThreadPoolExecutor(2) as threads:
        changes = [threads.submit(change, number) for number in range(2)]
        try:
            for _ in range(4):
                views += [(each, functions.view_create(each, []).id) for each in (part, directory)]
        finally:
            ended.set()
        for each in changes:
            each.result()
    for source, view in views:
        assert members(target, view) == [each.object_id for each in target.list_members(source)]
