# SPDX-License-Identifier: GPL-2.0-or-later
"""Long commands and restarts: what was accepted goes on, whatever kills the target when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import NotFound, Unreachable
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from tests.command.held import (
    BLUE,
    CREATE,
    IMMED_TR,
    MANY,
    QUERY,
    RED,
    REMOVE,
    REMOVE_MEMBERS,
    SET_MEMBERS,
    STEP,
    Held,
    abort,
    check_aborted,
    create_tracking,
    ended,
    replace_collection,
    set_red,
)
from tests.command.test_collection import membership
from tests.conftest import MakeHarness
from tests.expect import (
    OK,
    check,
)
from tests.waiting import until


@pytest.mark.parametrize("action", [SET_MEMBERS, REMOVE_MEMBERS, REMOVE, QUERY, CREATE])
def test_goes_on_after_kill(kept: Held, action: int) -> None:
    """GOOD was said: after a restart it goes on where it was, and ends well."""
    collection = kept.populate()
    pid = collection.partition_id
    tracker = ref(pid, 0x5_0000)
    if action == QUERY:
        kept.osd.create_tracking_collection(pid, tracker.object_id)
    request = {
        SET_MEMBERS: set_red(collection, True),
        REMOVE_MEMBERS: rq.remove_member_objects(collection, True),
        REMOVE: replace(rq.remove_collection(collection, with_members=True), bits11=IMMED_TR | 1),
        QUERY: rq.query_into(collection, [], tracker.object_id, immediate=True),
        CREATE: replace(create_tracking(pid, 0x5_0000, collection.object_id), bits11=IMMED_TR),
    }[action]
    if action not in (QUERY, CREATE):
        tracker = collection
    check(kept.osd.reply(request), OK)
    assert kept.osd.tracking(tracker).active == action
    kept.harness.kill()
    kept.harness.restart()
    page = kept.osd.tracking(tracker)
    assert (page.active, page.ended) == (action, 0xFFFF)
    kept.let_go()
    if action == REMOVE:
        until(lambda: kept.osd.list_collections(pid) == [])
        assert len(kept.osd.list_objects(pid)) == MANY
        return
    page = ended(kept.osd, tracker)
    assert page.ended_well
    assert (page.percent, page.done, page.missing_skipped) == (100, MANY, 0)
    if action == SET_MEMBERS:
        assert kept.red(collection) == MANY
    elif action == REMOVE_MEMBERS:
        assert kept.osd.list_objects(pid) == []
    else:
        assert kept.osd.list_members(tracker) == kept.osd.list_members(collection)


def test_killed_between_steps(kept: Held) -> None:
    """Wherever it is hit: every member is set once all is said and done, none counts twice."""
    kept.let_go()
    collection = kept.populate(12 * STEP)
    check(kept.osd.reply(set_red(collection, True)), OK)
    until(lambda: (kept.osd.tracking(collection).done or 0) >= STEP)
    kept.harness.kill()
    kept.harness.restart()
    page = ended(kept.osd, collection)
    assert page.ended_well
    assert page.done == kept.red(collection) == 12 * STEP


def is_active(osd: Commands, collection: ObjectRef) -> bool:
    """Whether a command runs on a listed collection.  One that is gone has been removed since."""
    try:
        return osd.tracking(collection).active != 0
    except NotFound:
        return False


def call_until_killed(osd: Commands) -> None:
    """Raises: Unreachable: the store call came that was the last."""
    until(lambda: osd.reply(rq.list_objects()).error is not None, pause=0)


@pytest.mark.parametrize("at", [60, 90, 130, 200, 1500, 3000, 5000])
def test_killed_at_a_store_call(make_harness: MakeHarness, at: int) -> None:
    """Before, in and after the acceptance, in a step, between two, after the end (the last): if it was
    accepted, it is done."""
    first = make_harness()
    held = Held(first, Path())
    collection = held.populate(STEP + 100)
    first.finish()
    second = make_harness(fault=at, fault_kill=1)
    accepted = False
    try:
        accepted = second.osd.reply(set_red(collection, True)).error is None
        ended(second.osd, collection)
        call_until_killed(second.osd)
    except Unreachable:
        second.killed = True
    assert second.killed, "the call came"
    second.transport.close()
    first.start()
    page = ended(first.osd, collection)
    assert page.ended == 0
    red = Held(first, Path()).red(collection)
    assert red == (page.done or 0)
    assert red in ((STEP + 100,) if accepted else (0, STEP + 100))


def test_ends_in_good_order(kept: Held) -> None:
    """A target that is told to end leaves the rest for the next start."""
    collection = kept.populate()
    check(kept.osd.reply(set_red(collection, True)), OK)
    kept.harness.restart()
    assert kept.osd.tracking(collection).active == SET_MEMBERS
    kept.let_go()
    assert ended(kept.osd, collection).done == MANY


def test_unanswered_command_after_kill(kept: Held) -> None:
    """Nobody waits for it any more: the page says that it did not finish."""
    collection = kept.populate()
    command = kept.start(set_red(collection))
    kept.first_step(collection, SET_MEMBERS)
    kept.harness.kill()
    with pytest.raises(Unreachable):
        command.reply()
    kept.harness.restart()
    check_aborted(kept, collection)
    kept.let_go()
    assert kept.red(collection) == STEP
    kept.osd.set_member_attributes(collection, [RED])
    assert kept.red(collection) == MANY


def test_unanswered_creation_after_kill(kept: Held) -> None:
    """The collection was never acknowledged: it is removed, and its id is free."""
    collection = kept.populate()
    request = create_tracking(collection.partition_id, 0x5_0000, collection.object_id)
    command = kept.start(request)
    until(lambda: len(kept.osd.list_collections(collection.partition_id)) == 2)
    kept.first_step(ref(collection.partition_id, 0x5_0000), CREATE)
    kept.harness.kill()
    with pytest.raises(Unreachable):
        command.reply()
    for _ in range(2):  # its removal outlives another one
        kept.harness.restart()
        assert len(kept.osd.list_collections(collection.partition_id)) == 2
        assert kept.osd.tracking(ref(collection.partition_id, 0x5_0000)).active == REMOVE
        kept.harness.kill()
    kept.harness.restart()
    kept.let_go()
    until(lambda: kept.osd.list_collections(collection.partition_id) == [collection])
    check(kept.osd.reply(request), OK)
    assert kept.osd.tracking(ref(collection.partition_id, 0x5_0000)).members == MANY


@pytest.mark.parametrize("at", [2000, 6000, 9000])
@pytest.mark.parametrize("aborted", [False, True])
def test_creation_killed_at_a_store_call(
    make_harness: MakeHarness, tmp_path: Path, at: int, aborted: bool
) -> None:
    """In a step, between two, while it is undone, after its end (the last): all of it is there, or
    nothing."""
    first = make_harness()
    collection = Held(first, Path()).populate(2 * STEP + 100)
    pid = collection.partition_id
    first.finish()
    gate = tmp_path / "hold"
    if aborted:
        gate.touch()
    second = Held(make_harness(fault=at, fault_kill=1, hold=gate), gate)
    answered = False
    try:
        command = second.start(create_tracking(pid, 0x5_0000, collection.object_id))
        if aborted:
            until(lambda: len(second.osd.list_collections(pid)) == 2)
            second.first_step(ref(pid, 0x5_0000), CREATE)
            abort(second, command)
        else:
            answered = command.reply().error is None
        call_until_killed(second.osd)
    except Unreachable:
        second.harness.killed = True
    assert second.harness.killed, "the call came"
    second.harness.transport.close()
    first.start()
    osd = first.osd
    until(lambda: not any(is_active(osd, each) for each in osd.list_collections(pid)))
    if answered or len(osd.list_collections(pid)) == 2:
        assert not aborted
        assert osd.tracking(ref(pid, 0x5_0000)).members == 2 * STEP + 100
        assert osd.tracking(ref(pid, 0x5_0000)).ended_well
    check(osd.reply(rq.object_structure_check(pid)), OK)


@pytest.mark.parametrize("killed", [False, True])
def test_successor_of_its_partition(kept: Held, killed: bool) -> None:
    """A command touches no collection of the same ids in a partition that came after its own."""
    collection = kept.populate(5)
    pid, members = collection.partition_id, kept.osd.list_members(collection)
    green = AttributeValue(Page.APPLICATION, 2, b"green")
    kept.osd.set_member_attributes(collection, [green], immediate=True)
    kept.osd.remove_partition(pid, contents=True)
    check(kept.osd.reply(rq.create_partition(pid)), OK)
    assert kept.osd.create_collection(pid, collection.object_id) == collection
    for member in members:
        kept.osd.create(pid, member.object_id, attributes=[membership(collection)])
    kept.osd.set_member_attributes(collection, [BLUE], immediate=True)
    if killed:
        kept.harness.kill()
        kept.harness.restart()
    assert kept.osd.tracking(collection).active == SET_MEMBERS
    kept.let_go()
    page = ended(kept.osd, collection)
    assert (page.ended_well, page.done) == (True, 5)
    found = kept.osd.get_member_attributes(collection, [BLUE.id, green.id])
    assert [[each.value for each in one.attributes] for one in found] == [[b"blue", b""]] * 5


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("action", [QUERY, CREATE])
def test_source_is_replaced(kept: Held, action: int, killed: bool) -> None:
    """A command that reads a collection does not go on in another one with the same id."""
    collection = kept.populate(5)
    tracker = kept.begin_copy(collection, action)
    replace_collection(kept, collection)
    if killed:
        kept.harness.kill()
        kept.harness.restart()
    kept.let_go()
    kept.check_source_gone(tracker, action)
    assert kept.osd.list_members(tracker) == []


def files_of_data(folder: Path) -> set[Path]:
    return {each for each in (folder / "store" / "data").rglob("*") if each.is_file()}


def spoil(file: Path) -> None:
    """Put something in its place that cannot be removed as a file."""
    file.unlink()
    (file / "inside").mkdir(parents=True)


def mend(file: Path) -> None:
    (file / "inside").rmdir()
    file.rmdir()


def test_draft_that_cannot_be_removed(kept: Held, tmp_path: Path) -> None:
    """The file of a copy that a kill has ended: the target starts, and tries again at the next start."""
    pid = kept.osd.create_partition()
    source = kept.osd.create_and_write(pid, b"data" * 1000)
    before = files_of_data(tmp_path)
    kept.start(rq.copy_user_object(source, pid, 0x7_0000))
    until(lambda: files_of_data(tmp_path) - before)
    kept.harness.kill()
    (draft,) = files_of_data(tmp_path) - before
    spoil(draft)
    kept.harness.restart()
    assert bytes(kept.osd.read(source, 0, 4)) == b"data"
    assert draft.exists()
    kept.harness.finish()
    mend(draft)
    draft.touch()
    kept.harness.start()
    assert not draft.exists()


def test_file_that_cannot_be_removed(kept: Held, tmp_path: Path) -> None:
    """It keeps no others of removed objects."""
    kept.let_go()
    pid = kept.osd.create_partition()
    none = files_of_data(tmp_path)
    first = kept.osd.create_and_write(pid, b"first")
    (bad,) = files_of_data(tmp_path) - none
    others = [kept.osd.create_and_write(pid, b"other") for _ in range(300)]
    kept.harness.restart()  # no file is open
    spoil(bad)
    for each in (first, *others):
        kept.osd.remove(each)
    until(lambda: files_of_data(tmp_path) == none)
    assert bad.exists()
    kept.harness.finish()
    mend(bad)
    bad.touch()
    kept.harness.start()
    until(lambda: not bad.exists())


def test_store_of_the_previous_release(kept: Held, tmp_path: Path) -> None:
    """It has no commands.db: it is made."""
    collection = kept.populate(5)
    kept.harness.finish()
    (tmp_path / "store" / "db" / "commands.db").unlink()
    kept.harness.start()
    kept.let_go()
    kept.osd.set_member_attributes(collection, [RED], immediate=True)
    assert ended(kept.osd, collection).done == 5
