# SPDX-License-Identifier: GPL-2.0-or-later
"""The names in a view are those of its base, at every moment (docs/views.md, "Names in a view")."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import (
    ChangeRefused,
    Invalid,
    IsADirectory,
    NameExists,
    NoSuchName,
    NotADirectory,
    NotEmpty,
    OSDError,
)
from pyosd.functions import Functions, FunctionStage, Hook, HookEvent
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.exec.conftest import Run
from tests.exec.test_stacks import CONTRACT, NO_INVERSE, SAME, put, refusal, whole
from tests.exec.test_views import SOURCE
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

MADE_IN_VIEW, NAMES, DIRECTORY = 7, 10, 11
UPPER = """
import osd

def main(args):
    return osd.stage(args).data.upper()"""


@pytest.fixture
def upper(functions: Functions) -> FunctionStage:
    """A stage without an inverse."""
    return FunctionStage(put(functions, UPPER, SAME, name="upper"))


def names(target: pyosd.Target, directory: ObjectRef, path: str = "") -> dict[str, ObjectRef]:
    return {
        each.name.decode(): each.object
        for each in target.list_names(directory, path, details=True).entries
    }


def in_view(view: int, obj: ObjectRef) -> ObjectRef:
    return ref(view, obj.object_id)


def test_names_are_those_of_the_base(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    """LOOKUP and LIST, before and after changes of the base, also in a view of a view."""
    base = zone
    directory = target.make_directory(base, "logs").object
    made = target.put_name(base, "logs/a.txt", b"text").object
    near = functions.view_create(base.partition_id, [upper])
    far = functions.view_create(near.id, [])
    for view in (near.id, far.id):
        top = ref(view)
        shown = in_view(view, made)
        found = target.lookup(top, "logs/a.txt")
        assert (found.object, found.names) == (shown, 1)
        assert target.lookup(top, "logs").object == in_view(view, directory)
        assert names(target, top) == {"logs": in_view(view, directory)}
        assert names(target, top, "logs") == {"a.txt": shown}
        assert names(target, in_view(view, directory)) == {"a.txt": shown}
        assert target.lookup(in_view(view, directory), "a.txt").object == shown
        assert whole(target, shown) == b"TEXT"
        assert target.lookup_data(top, "logs/a.txt", 100)[1] is None
        assert target.list_members(in_view(view, directory)) == [shown]
        with pytest.raises(NoSuchName):
            target.lookup(top, "logs/b.txt")
        with pytest.raises(NotADirectory):
            target.lookup(top, "logs/a.txt/b")
        with pytest.raises(NotADirectory):
            target.list_names(top, "logs/a.txt")
    target.rename(base, "logs/a.txt", "logs/b.txt")
    target.link(base, "second", made)
    assert names(target, ref(far.id)).keys() == {"logs", "second"}
    assert target.lookup(ref(far.id), "logs/b.txt").names == 2
    target.unlink(base, "logs/b.txt")
    target.remove_directory(base, "logs")
    assert names(target, ref(near.id)) == {"second": in_view(near.id, made)}
    target.unlink(base, "second")
    assert names(target, ref(far.id)) == {}


def test_a_read_only_view_refuses_changes_of_names(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    directory = target.make_directory(zone, "in").object
    made = target.put_name(zone, "a", b"x").object
    writable = functions.view_create(zone.partition_id, [], writable=True)
    view = functions.view_create(writable.id, []).id
    top, shown = ref(view), in_view(view, made)
    changes: list[tuple[Callable[[], object], int]] = [
        (lambda: target.create_name(top, "b"), MADE_IN_VIEW),
        (lambda: target.put_name(top, "b", b""), MADE_IN_VIEW),
        (lambda: target.put_name(top, "a", b"", replace=True), MADE_IN_VIEW),
        (lambda: target.make_directory(top, "b"), MADE_IN_VIEW),
        (lambda: target.link(top, "b", shown), NAMES),
        (lambda: target.unlink(top, "a"), NAMES),
        (lambda: target.rename(top, "a", "b"), NAMES),
        (lambda: target.remove_directory(top, "in"), NAMES),
        (lambda: target.create_name(in_view(view, directory), "b"), MADE_IN_VIEW),
    ]
    for change, why in changes:
        with pytest.raises(OSDError) as caught:
            change()
        assert refusal(caught) == (CONTRACT, why)
    assert names(target, zone).keys() == names(target, top).keys() == {"a", "in"}
    below = functions.view_create(view, [], writable=True).id
    with pytest.raises(OSDError) as caught:
        target.unlink(ref(below), "a")
    assert refusal(caught) == (CONTRACT, NAMES)


def test_names_change_through_a_writable_view(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Each verb acts on the base.  The data of PUT pass the inverse functions."""
    gzipped = functions.put_stock("gzip").id
    near = functions.view_create(zone.partition_id, [FunctionStage(gzipped)], writable=True)
    view = functions.view_create(near.id, [], writable=True).id
    top = ref(view)
    directory = target.make_directory(top, "d").object
    assert directory.partition_id == view
    put = target.put_name(top, "d/a", b"text").object
    assert gzip.decompress(whole(target, ref(zone.partition_id, put.object_id))) == b"text"
    assert whole(target, put) == b"text"
    assert target.put_name(top, "d/a", b"later", replace=True).object != put
    with pytest.raises(NameExists):
        target.put_name(top, "d/a", b"again")
    with pytest.raises(NameExists):
        target.make_directory(top, "d")
    made = target.create_name(directory, "b").object
    target.write(made, 0, b"bytes")
    assert target.link(top, "c", made).names == 2
    target.rename(top, "d/b", "d/e")
    assert target.rename(top, "c", "d/a", exchange=True).object == made
    assert target.unlink(top, "d/a").names == 1
    assert names(target, zone).keys() == {"c", "d"}
    assert names(target, zone, "d").keys() == names(target, directory).keys() == {"e"}
    assert whole(target, target.lookup(top, "d/e").object) == b"bytes"
    assert gzip.decompress(whole(target, target.lookup(zone, "c").object)) == b"later"
    refused: list[tuple[Callable[[], object], type[OSDError]]] = [
        (lambda: target.remove_directory(top, "d"), NotEmpty),
        (lambda: target.unlink(top, "d"), IsADirectory),
        (lambda: target.rename(top, "d", "d/f"), Invalid),
        (lambda: target.link(top, "own", target.create_collection(view)), Invalid),
    ]
    for change, wrong in refused:
        with pytest.raises(wrong):
            change()
    target.unlink(top, "d/e")
    target.unlink(top, "c")
    target.remove_directory(top, "d")
    assert names(target, zone) == {}
    assert target.list_objects(zone.partition_id) == target.list_objects(view) == []


def test_data_without_an_inverse_are_not_stored(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    target.put_name(zone, "a", b"old")
    view = functions.view_create(zone.partition_id, [upper], writable=True).id
    with pytest.raises(OSDError) as caught:
        target.put_name(ref(view), "a", b"new", replace=True)
    assert refusal(caught) == (CONTRACT, NO_INVERSE)
    assert whole(target, target.lookup(ref(view), "a").object) == b"OLD"


def test_what_a_directory_of_a_view_has(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Times, version and members of the base's, and none of its other attributes: they may be keys."""
    directory = target.make_directory(zone, "d").object
    gzipped = functions.put_stock("gzip").id
    functions.attach(directory, [FunctionStage(gzipped, parameters="level=1")])
    own = AttributeValue(Page.COLLECTION_DIRECTORY | Page.APPLICATION, 1, b"secret")
    target.set_attributes(directory, [own])
    made = target.put_name(zone, "d/a", b"x").object
    view = functions.view_create(zone.partition_id, [], writable=True).id
    shown = in_view(view, directory)
    for page, number in ((Page.MEMBERS_VERSION, 1), (Page.COLLECTION_TIMESTAMPS, 4)):
        value = target.get_attribute(shown, page, number)
        assert value == target.get_attribute(directory, page, number) != b""
    assert not target.get_attribute(shown, own.page, own.number)
    assert functions.attached(shown) == []
    with pytest.raises(OSDError) as caught:
        target.set_attributes(shown, [own])
    assert refusal(caught) == (CONTRACT, DIRECTORY)
    mine = AttributeValue(Page.APPLICATION, 1, b"mine")
    found = target.lookup(ref(view), "d/a")
    target.set_attributes(found.object, [mine])
    assert not target.get_attribute(made, mine.page, mine.number)
    target.put_name(ref(view), "d/a", b"y", replace=True, attributes=[mine])
    again = target.lookup(ref(view), "d/a").object
    assert bytes(target.get_attribute(again, mine.page, mine.number)) == b"mine"
    target.unlink(zone, "d/a")
    target.remove_directory(zone, "d")
    with pytest.raises(OSDError):
        target.get_attribute(shown, Page.MEMBERS_VERSION, 1)


def test_collections_of_the_views_own(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """They are no directories, also if the base has one with the id."""
    directory = target.make_directory(zone, "d").object
    made = target.put_name(zone, "d/a", b"x").object
    view = functions.view_create(zone.partition_id, []).id
    own = [target.create_collection(view), target.create_collection(view, directory.object_id)]
    for each in own:
        target.add_member(each, in_view(view, made))
        with pytest.raises(NotADirectory):
            target.list_names(each)
    assert target.list_members(own[1]) == [in_view(view, made)]
    assert target.lookup(ref(view), "d/a").object == in_view(view, made)
    for each in own:
        target.remove_collection(each, with_members=True)
    assert target.list_members(in_view(view, directory)) == [in_view(view, made)]


def test_checks_of_the_base_are_not_passed_over(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    permits = functions.put("def main(args): return None", name="permits").id
    target.put_name(zone, "a", b"x")
    view = functions.view_create(zone.partition_id, [], writable=True).id
    functions.hook(zone, Hook(permits, HookEvent.CREATE | HookEvent.REMOVE | HookEvent.SET))
    changes: list[Callable[[], object]] = [
        lambda: target.put_name(ref(view), "b", b"x"),
        lambda: target.unlink(ref(view), "a"),
        lambda: target.rename(ref(view), "a", "b"),
    ]
    for change in changes:
        with pytest.raises(ChangeRefused):
            change()
    assert names(target, zone).keys() == {"a"}
    functions.unhook(zone)


def test_a_view_whose_base_was_removed_has_no_names(
    target: pyosd.Target, functions: Functions
) -> None:
    base = target.create_partition()
    target.make_directory(ref(base), "d")
    target.put_name(ref(base), "d/a", b"x")
    view = functions.view_create(base, [], writable=True).id
    target.remove_partition(base, contents=True)
    target.create_partition(base)
    target.put_name(ref(base), "later", b"x")
    assert names(target, ref(view)) == {}
    with pytest.raises(NoSuchName):
        target.lookup(ref(view), "d/a")
    target.remove_partition(base, contents=True)


def test_an_object_that_the_view_lacks_has_no_name(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Its objects from before the view was made are not there yet."""
    target.put_name(zone, "a", b"x")
    view = target.create_partition()
    value = zone.partition_id.to_bytes(8)
    target.set_attributes(ref(view), [AttributeValue(Page.PARTITION_STACK, SOURCE, value)])
    assert names(target, ref(view)).keys() == {"a"}
    with pytest.raises(NoSuchName):
        target.lookup(ref(view), "a")
    functions.view_refresh(view)
    assert whole(target, target.lookup(ref(view), "a").object) == b"x"


def test_paths_and_zones_of_scripts(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run, upper: FunctionStage
) -> None:
    """A script finds, opens and lists files of a view, whole or below a directory."""
    directory = target.make_directory(zone, "d").object
    target.put_name(zone, "d/a.txt", b"text")
    target.put_name(zone, "b.txt", b"other")
    view = functions.view_create(zone.partition_id, [upper]).id
    script = """
        import osd
        osd.result({path: osd.open(path, "rb").read().decode() for path in osd.glob("**/*.txt")})
    """
    for where, found in (
        (ref(view), {"b.txt": "OTHER", "d/a.txt": "TEXT"}),
        (in_view(view, directory), {"a.txt": "TEXT"}),
    ):
        status = run(script, zone=where)
        assert status.state is JobState.COMPLETED, target.job(status.id).stderr()
        assert target.job(status.id).result() == found
    status = run("import osd; osd.open('../b.txt')", zone=in_view(view, directory))
    assert status.state is JobState.FAILED


def test_readers_beside_renames_and_removals(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, serving: Serving
) -> None:
    """A name in the view always leads to an object with whole data, or is not there."""
    target.make_directory(zone, "x")
    target.put_name(zone, "x/0", b"0" * 100)
    view = functions.view_create(zone.partition_id, [], writable=True).id
    ended = threading.Event()

    def change() -> None:
        with serving.connect() as client:
            for turn in range(40):
                where = ref(view) if turn % 2 else zone
                client.put_name(where, "x/a", bytes([turn]) * 100, replace=True)
                client.rename(zone if turn % 2 else ref(view), "x", "y")
                client.rename(where, "y", "x")
                client.unlink(where, "x/a")

    def read() -> int:
        seen = 0
        with serving.connect() as client:
            last = False
            while not last:
                last = ended.is_set()  # there is one turn beside no change
                for path in ("x/a", "y/a", "x/0", "y/0"):
                    with contextlib.suppress(NoSuchName, pyosd.NotFound):
                        data = whole(client, client.lookup(ref(view), path).object)
                        assert len(set(data)) == 1 and len(data) == 100
                        seen += 1
                top = client.list_names(ref(view), details=True).entries
                assert [each.name in (b"x", b"y") for each in top] == [True]
        return seen

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(2)]
        changes = [threads.submit(change)]
        try:
            changes[0].result()
        finally:
            ended.set()
        assert all(each.result() for each in readers)
    assert names(target, ref(view), "x").keys() == names(target, zone, "x").keys() == {"0"}
    assert len(target.list_objects(view)) == len(target.list_objects(zone.partition_id)) == 1


def test_both_or_neither_after_a_kill(own_serving: Serving) -> None:
    """Names and objects on both sides agree after a kill, and the view goes on."""
    with own_serving.connect() as target:
        base = ref(target.create_partition())
        view = ref(Functions(target).view_create(base.partition_id, [], writable=True).id)
        killed = threading.Event()

        def change() -> None:
            with contextlib.suppress(OSDError):
                for turn in itertools.takewhile(lambda _: not killed.is_set(), itertools.count()):
                    one, other = (view, base) if turn % 2 else (base, view)
                    target.make_directory(one, f"{turn}")
                    target.put_name(other, f"{turn}/a", b"x")
                    target.rename(one, f"{turn}/a", f"{turn}/b")
                    if turn % 3 == 0:
                        target.unlink(other, f"{turn}/b")
                        target.remove_directory(one, f"{turn}")

        thread = threading.Thread(target=change)
        thread.start()
        until(lambda: len(names(target, base)) > 1, "nothing is made")
        time.sleep(0.3)  # any moment will do
        own_serving.kill("tgtd")
        killed.set()
        thread.join()
        own_serving.restarted()
    with own_serving.connect() as target:
        tree = names(target, base)
        assert tree and names(target, view) == {
            name: in_view(view.partition_id, each) for name, each in tree.items()
        }
        for name in tree:
            assert names(target, base, name).keys() == names(target, view, name).keys()
        base_ids = [each.object_id for each in target.list_objects(base.partition_id)]
        assert [each.object_id for each in target.list_objects(view.partition_id)] == base_ids
        named = sum(len(names(target, base, name)) for name in tree)
        assert named == len(base_ids)
        target.put_name(view, "later", b"x")
        assert whole(target, target.lookup(base, "later").object) == b"x"
