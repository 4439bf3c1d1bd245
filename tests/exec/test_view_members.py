# SPDX-License-Identifier: GPL-2.0-or-later
"""The objects of a view are those of its base, at every moment (docs/views.md, "Views")."""

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
from pyosd.errors import ChangeRefused, Exists, Invalid, NotFound, OSDError
from pyosd.functions import Functions, FunctionStage, Hook, HookEvent
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.exec.conftest import Run
from tests.exec.test_stacks import CONTRACT, NO_CHANGE, refusal, whole
from tests.exec.test_views import SOURCE, SOURCE_GONE, shows
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

MADE_IN_VIEW, MOST_VIEWS = 7, 16


def ids(target: pyosd.Target, partition: PartitionId) -> list[int]:
    return [each.object_id for each in target.list_objects(partition)]


def test_objects_come_and_go_with_the_base(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Each way to make an object, and to remove one; also in views of views."""
    base = zone.partition_id
    first = target.create(base)
    near = functions.view_create(base, [])
    far = functions.view_create(near.id, [])
    made = [
        target.create(base),
        *target.create_many(base, 5),
        target.create_and_write(base, b"with data"),
        target.copy(first, base),
        target.create_name(zone, "named").object,
    ]
    wanted = sorted(each.object_id for each in (first, *made))
    assert ids(target, base) == ids(target, near.id) == ids(target, far.id) == wanted
    assert whole(target, ref(far.id, made[6].object_id)) == b"with data"
    collection = target.create_collection(base)
    for each in made[:3]:
        target.add_member(collection, each)
    target.remove_member_objects(collection)
    target.remove(made[6])
    target.unlink(zone, "named")
    wanted = [each.object_id for each in (first, *made[3:6], made[7])]
    assert ids(target, base) == ids(target, near.id) == ids(target, far.id) == sorted(wanted)
    assert functions.view_refresh(near.id) == functions.view_refresh(far.id) == (0, 0)


def test_scripts_make_and_remove_objects_of_the_base(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run
) -> None:
    view = functions.view_create(zone.partition_id, [])
    script = f"""
        import osd
        kept, gone = (osd.userobject({zone.partition_id}).create() for _ in range(2))
        gone.remove()
    """
    assert run(script).state is JobState.COMPLETED
    assert len(ids(target, view.id)) == 1


def test_refusals_say_which_objects_have_views_and_hooks(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    obj, collection = target.create(zone.partition_id), target.create_collection(zone.partition_id)
    with pytest.raises(Invalid, match="a view shows a partition, a collection or a directory, not"):
        functions.view_create(obj, [])
    with pytest.raises(Invalid, match="is a collection or directory"):
        functions.hooks(collection)
    for name in ("two words", "deadbeef", "ü", "a" * 65):
        with pytest.raises(ValueError, match="is no name of a function"):
            functions.put("def main(): pass", name=name)


def test_a_view_leaves_out_the_objects_of_jobs(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Those of `osd exec --partition`: the surrogate, and the object of a long result."""
    base = zone.partition_id
    script = "import osd; osd.result('x' * 100_000)"
    job = target.exec(script, zone=ref(base), surrogate=ref(base))
    job.wait()
    assert len(ids(target, base)) == 2
    kept = target.create(base)
    view = functions.view_create(base, [])
    assert ids(target, view.id) == [kept.object_id]
    assert functions.view_refresh(view.id) == (0, 0)


def test_values_that_make_no_view(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """A partition with objects, circles, long chains, bases that are none, too many views."""
    base = zone.partition_id
    target.create(base)
    empty = target.create_partition()

    def becomes(partition: PartitionId, value: bytes) -> None:
        target.set_attributes(ref(partition), [AttributeValue(Page.PARTITION_STACK, SOURCE, value)])

    for value in (b"x", bytes(8), (0x14).to_bytes(8), empty.to_bytes(8), b"1" * 8, bytes(17)):
        with pytest.raises(Invalid):
            becomes(empty, value)
    with pytest.raises(Invalid):
        becomes(empty, base.to_bytes(8) + b"\2")
    with pytest.raises(Invalid):
        becomes(base, empty.to_bytes(8))
    chain = [base]
    for _ in range(4):
        chain.append(functions.view_create(chain[-1], []).id)
    assert ids(target, chain[-1]) == ids(target, base)
    with pytest.raises(Invalid):
        functions.view_create(chain[-1], [])
    for _ in range(MOST_VIEWS - 1):
        functions.view_create(base, [])
    with pytest.raises(Invalid):
        functions.view_create(base, [])
    target.create(base)
    assert all(ids(target, each.id) == ids(target, base) for each in functions.views())
    target.remove_partition(empty)


def test_what_a_view_cannot_have(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Objects that show others than the base's; its own collections have ids of their own."""
    source, other = (target.create(zone.partition_id) for _ in range(2))
    view = functions.view_create(zone.partition_id, [])
    shown = ref(view.id, source.object_id)
    with pytest.raises(Invalid):
        shows(target, shown, other)
    with pytest.raises(Invalid):
        target.set_attributes(shown, [AttributeValue(Page.STACK, SOURCE, b"")])
    shows(target, shown, source)
    collection = target.create_collection(view.id)
    assert collection.object_id >= 1 << 61
    target.add_member(collection, shown)
    target.remove(source)
    assert target.list_members(collection) == []


def test_the_base_does_not_wait_for_permission_of_its_views(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Quotas and checks of a view do not concern what is made in the base."""
    view = functions.view_create(zone.partition_id, [])
    limit = AttributeValue(Page.PARTITION_QUOTAS, 0x10002, bytes(8))
    never = functions.put("def main(args): return 'never'", name="never").id
    target.set_attributes(ref(view.id), [limit])
    functions.hook(ref(view.id), Hook(never, HookEvent.CREATE | HookEvent.REMOVE))
    made = target.create(zone.partition_id)
    assert ids(target, view.id) == [made.object_id]
    target.remove(made)
    assert ids(target, view.id) == []
    with pytest.raises(ChangeRefused):
        target.create(view.id)


def test_the_base_is_removed(target: pyosd.Target, functions: Functions) -> None:
    """The view keeps objects that cannot be read.  A later base with the id has other views."""
    base = target.create_partition()
    source = target.create(base)
    view = functions.view_create(base, [], writable=True)
    target.remove_partition(base, contents=True)
    target.create_partition(base)
    target.create(base, source.object_id)
    target.create(base)
    assert ids(target, view.id) == [source.object_id]
    with pytest.raises(OSDError) as caught:
        target.read(ref(view.id, source.object_id), 0, 1)
    assert refusal(caught) == (CONTRACT, SOURCE_GONE)
    with pytest.raises(OSDError) as caught:
        target.create(view.id)
    assert refusal(caught) == (CONTRACT, MADE_IN_VIEW)
    target.remove(ref(view.id, source.object_id))
    assert ids(target, view.id) == []
    target.remove_partition(base, contents=True)


def test_a_view_is_removed_and_made_again(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """A later partition with its id gets nothing from the base."""
    view = functions.view_create(zone.partition_id, [])
    functions.view_remove(view.id)
    plain = target.create_partition(view.id)
    target.create(zone.partition_id)
    assert ids(target, plain) == []
    target.remove_partition(plain)


# ---- through the view ----


def test_a_read_only_view_refuses(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run
) -> None:
    source = target.create(zone.partition_id)
    view = functions.view_create(zone.partition_id, [])
    shown = ref(view.id, source.object_id)
    for make in (
        lambda: target.create(view.id),
        lambda: target.create_and_write(view.id, b"x"),
        lambda: target.create_name(ref(view.id), "a"),
        lambda: target.copy(source, view.id),
    ):
        with pytest.raises(OSDError) as caught:
            make()
        assert refusal(caught) == (CONTRACT, MADE_IN_VIEW)
    collection = target.create_collection(view.id)
    target.add_member(collection, shown)
    removals: list[Callable[[], object]] = [
        lambda: target.remove(shown),
        lambda: target.remove_member_objects(collection),
    ]
    for remove in removals:
        with pytest.raises(OSDError) as caught:
            remove()
        assert refusal(caught) == (CONTRACT, NO_CHANGE)
    for call in (f"{view.id}).create()", f"{view.id}, {source.object_id}).remove()"):
        script = f"import osd; osd.userobject({call}"
        status = run(script, zone=ref(view.id))
        assert status.state is JobState.FAILED and b"read-only" in target.job(status.id).stderr()
    assert ids(target, view.id) == ids(target, zone.partition_id) == [source.object_id]


def test_objects_are_made_and_removed_through_a_view(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run
) -> None:
    """They are the base's.  The data pass the inverse functions of the view and of the base."""
    gzipped = functions.put_stock("gzip").id
    functions.attach(zone, [FunctionStage(gzipped)])
    near = functions.view_create(zone.partition_id, [], writable=True)
    far = functions.view_create(near.id, [FunctionStage(gzipped)], writable=True)
    attributes = [AttributeValue(Page.APPLICATION, 1, b"mine")]
    made = [
        target.create(far.id, attributes=attributes),
        target.create_and_write(far.id, b"text", attributes=attributes),
        target.create_name(ref(far.id), "name", attributes=attributes).object,
        *target.create_many(far.id, 2, attributes=attributes),
        target.create(far.id, 0x77777),
    ]
    wanted = sorted(each.object_id for each in made)
    assert all(ids(target, each) == wanted for each in (zone.partition_id, near.id, far.id))
    assert {each.partition_id for each in made} == {far.id}
    written = made[1].object_id
    assert whole(target, made[1]) == b"text"
    assert gzip.decompress(whole(target, ref(near.id, written))) == b"text"
    target.write(made[0], 0, b"later")
    assert gzip.decompress(whole(target, ref(zone.partition_id, made[0].object_id))) == b"later"
    for each in made[:5]:
        assert bytes(target.get_attribute(each, Page.APPLICATION, 1)) == b"mine"
        source = ref(zone.partition_id, each.object_id)
        assert not target.get_attribute(source, Page.APPLICATION, 1)
    with pytest.raises(Exists):
        target.create(far.id, 0x77777)
    script = f"import osd; osd.userobject({far.id}).create(); osd.userobject({far.id}, {0x77777}).remove()"
    assert run(script, zone=ref(far.id)).state is JobState.COMPLETED
    target.remove(made[0])
    target.unlink(ref(far.id), "name")
    left = [each.object_id for each in (made[1], made[3], made[4])]
    listed = ids(target, zone.partition_id)
    assert set(left) < set(listed) and 0x77777 not in listed
    assert (
        ids(target, near.id)
        == ids(target, far.id)
        == [each for each in listed if ref(zone.partition_id, each)]
    )
    with pytest.raises(NotFound):
        target.read(made[0], 0, 1)


def test_checks_of_the_base_are_not_passed_over(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    permits = functions.put("def main(args): return None", name="permits").id
    source = target.create(zone.partition_id)
    view = functions.view_create(zone.partition_id, [], writable=True)
    functions.hook(zone, Hook(permits, HookEvent.CREATE | HookEvent.REMOVE))
    for change in (
        lambda: target.create(view.id),
        lambda: target.create_and_write(view.id, b"x"),
        lambda: target.remove(ref(view.id, source.object_id)),
    ):
        with pytest.raises(ChangeRefused):
            change()
    assert ids(target, view.id) == [source.object_id]
    functions.unhook(zone)
    target.remove(ref(view.id, source.object_id))
    assert ids(target, zone.partition_id) == []


def test_two_clients_on_both_sides(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, serving: Serving
) -> None:
    """Views that are made meanwhile have all objects."""
    base = zone.partition_id
    view = functions.view_create(base, [], writable=True)

    def change(at: int) -> None:
        with serving.connect() as client:
            for turn in range(8):
                made = client.create(base if at % 2 else view.id)
                if turn % 2:
                    client.remove(ref(view.id if at % 3 else base, made.object_id))

    with ThreadPoolExecutor(4) as threads:
        changes = [threads.submit(change, each) for each in range(4)]
        late = [functions.view_create(base, []) for _ in range(3)]
        for each in changes:
            each.result()
    listed = ids(target, base)
    assert len(listed) == 16
    assert all(ids(target, each.id) == listed for each in (view, *late))


def test_both_or_neither_after_a_kill(own_serving: Serving) -> None:
    """An object is in the base and in its views, or nowhere; and the view goes on after a restart."""
    with own_serving.connect() as target:
        base = target.create_partition()
        view = Functions(target).view_create(base, [], writable=True)
        collection = target.create_collection(base)
        part = Functions(target).view_create(collection, [])
        killed = threading.Event()  # a client that loses no command goes on at the new tgtd

        def change() -> None:
            with contextlib.suppress(OSDError):
                for turn in itertools.takewhile(lambda _: not killed.is_set(), itertools.count()):
                    made = target.create(view.id if turn % 2 else base)
                    target.add_member(collection, ref(base, made.object_id))
                    if turn % 3 == 0:
                        target.remove(ref(base if turn % 2 else view.id, made.object_id))

        thread = threading.Thread(target=change)
        thread.start()
        until(lambda: len(ids(target, base)) > 1, "nothing is made")
        time.sleep(0.3)  # any moment will do
        own_serving.kill("tgtd")
        killed.set()
        thread.join()
        own_serving.restarted()
    with own_serving.connect() as target:
        listed = ids(target, base)
        assert listed and ids(target, view.id) == listed
        members = [each.object_id for each in target.list_members(collection)]
        assert members and ids(target, part.id) == members
        made = target.create(base)
        target.add_member(collection, made)
        assert ids(target, view.id) == [*listed, made.object_id]
        assert ids(target, part.id) == [*members, made.object_id]
        assert target.create_collection(view.id).object_id >= 1 << 61
