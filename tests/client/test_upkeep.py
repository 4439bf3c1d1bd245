# SPDX-License-Identifier: GPL-2.0-or-later
"""The upkeep of copies on targets in memory: decisions, damage, kills, and two clients at once."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyosd.cluster import survey as survey_module
from pyosd.cluster import upkeep as upkeep_module
from pyosd.cluster.many import Many
from pyosd.cluster.map_object import MAP, MEMBERS, ClusterMap, MapConflict, write_map
from pyosd.cluster.placement import COPIES, SEAL, UNFINISHED, Seal, encode_copies, place
from pyosd.cluster.survey import CopyFault, Prefer, survey
from pyosd.cluster.upkeep import ClusterReport, Upkeep
from pyosd.errors import NoSpace, StorageError
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from tests.client.fake_cluster import FakeCluster, FakeTarget, Killed, Stored, failure, one_by_one

PARTITION = PartitionId(0x10000)
NAMES = ("a", "b", "c", "d", "e")
OWN = AttributeId(0x10000, 7)


def store(cluster: FakeCluster, number: int, data: bytes, names: tuple[str, ...]) -> ObjectRef:
    """What put() writes."""
    obj = ref(PARTITION, number)
    for name in names:
        made = Stored(bytearray(data))
        made.changed()
        made.set([encode_copies(names), Seal.of(data).encode(), AttributeValue(*OWN, b"own")])
        cluster.targets[name].stored[obj] = made
    return obj


def filled(names: tuple[str, ...], count: int, copies: int) -> tuple[FakeCluster, dict[Any, bytes]]:
    whole = FakeCluster()
    cluster = whole.among(names)
    contents = {}
    for number in range(FIRST, FIRST + count):
        data = str(number).encode() * (number % 4)
        chosen = place(ref(PARTITION, number), names, copies)
        contents[store(cluster, number, data, chosen)] = data
    return whole, contents


FIRST = 0x10000


def assert_placed(cluster: FakeCluster, contents: dict[Any, bytes], copies: int) -> None:
    """Each object has its copies where it belongs, with its attributes, and nowhere else."""
    for obj, data in contents.items():
        wanted = place(obj, cluster.names, copies)
        has = {
            name: each.stored[obj] for name, each in cluster.targets.items() if obj in each.stored
        }
        assert {*has} == {*wanted}
        for each in has.values():
            assert bytes(each.data) == data and each.get(OWN) == b"own"
            assert each.get(COPIES) == encode_copies(wanted).value
            assert each.get(SEAL) == Seal.of(data).encode().value


def kept(whole: FakeCluster, contents: dict[Any, bytes]) -> None:
    """Each object still has a whole copy somewhere."""
    for obj, data in contents.items():
        has = [each.stored[obj] for each in whole.targets.values() if obj in each.stored]
        whole_ones = [each for each in has if not each.get(UNFINISHED)]
        assert any(bytes(each.data) == data for each in whole_ones)


@given(st.data())
def test_rebalancing_that_is_killed_loses_nothing_and_goes_on(data: Any) -> None:
    """From any targets to any others, killed at any command, again and again."""
    before = tuple(data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)))
    after = tuple(data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)))
    leaving = {*before} - {*after}
    copies = data.draw(st.integers(1, len(before)))
    then = data.draw(st.integers(1, len(after)))
    whole, contents = filled(before, data.draw(st.integers(0, 6)), copies)
    view = whole.among((*after, *leaving))
    with mock.patch.object(upkeep_module, "_PIECE", data.draw(st.sampled_from([4, 1 << 20]))):
        for limit in data.draw(st.lists(st.integers(1, 60), max_size=8)):
            whole.steps, whole.kill_at = 0, limit
            with contextlib.suppress(Killed):
                run(view).rebalance(copies=then, leaving=leaving)
            kept(whole, contents)
        whole.kill_at = 0
        report = run(view).rebalance(copies=then, leaving=leaving)
    assert report.ok, report.findings
    only = whole.among(after)
    assert run(only).check().ok
    assert_placed(only, contents, then)
    for name in leaving:
        assert {*whole.targets[name].stored} <= {ref(PARTITION, MAP)}


@given(st.data())
def test_two_clients_that_rebalance_at_once_remove_no_last_copy(data: Any) -> None:
    """One of them works between two commands of the other one, and each has targets of its own."""
    before = tuple(data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)))
    lists = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
    mine, theirs = (tuple(data.draw(lists)) for _ in range(2))
    copies = data.draw(st.integers(1, min(2, len(before))))
    whole, contents = filled(before, data.draw(st.integers(1, 4)), copies)
    every = tuple(sorted({*before, *mine, *theirs}))
    view = whole.among(every)
    for obj, content in contents.items():  # a client was killed while it wrote these
        for name in data.draw(st.lists(st.sampled_from(every), max_size=2, unique=True)):
            if obj not in whole.targets[name].stored:
                store(whole, obj.object_id, content, (name,))
                whole.targets[name].stored[obj].set([AttributeValue(*UNFINISHED, b"1")])

    def rebalance(members: tuple[str, ...]) -> None:
        with contextlib.suppress(MapConflict):
            run(view).rebalance(copies=1, leaving={*every} - {*members})

    whole.meanwhile, whole.meanwhile_at = lambda: rebalance(theirs), data.draw(st.integers(1, 80))
    with (
        mock.patch.object(upkeep_module, "_PIECE", data.draw(st.sampled_from([1, 1 << 20]))),
        mock.patch.object(upkeep_module, "at_once", one_by_one),
        mock.patch.object(survey_module, "at_once", one_by_one),
    ):
        rebalance(mine)
        whole.meanwhile_at = 0
        kept(whole, contents)
        assert run(view).rebalance(copies=1).ok
    assert_placed(view, contents, 1)


def run(cluster: FakeCluster, **options: Any) -> Upkeep:
    return Upkeep(cluster.as_many(), PARTITION, at_once=1, **options)


def faults(report: ClusterReport) -> set[tuple[str, CopyFault]]:
    return {(each.target, each.fault) for each in report.findings}


def test_each_fault_is_found_and_repaired() -> None:
    whole, contents = filled(("a", "b", "c"), 1, 2)
    cluster = whole.among(("a", "b", "c"))
    (obj,) = contents
    first, second = place(obj, cluster.names, 2)
    (other,) = {*cluster.names} - {first, second}
    assert run(cluster).check().ok

    del cluster.targets[second].stored[obj]
    assert faults(run(cluster).check()) == {(second, CopyFault.MISSING)}
    told = list[tuple[str, int, int]]()
    report = run(cluster, progress=lambda *step: told.append(step)).repair()
    assert report.ok and report.written == 1 and told[-1] == ("restored", 1, 1)
    assert_placed(cluster, contents, 2)

    cluster.targets[second].stored[obj].set([AttributeValue(*UNFINISHED, b"1")])
    assert faults(run(cluster).check()) == {(second, CopyFault.UNFINISHED)}
    assert run(cluster).repair().ok
    assert_placed(cluster, contents, 2)

    store(cluster, obj.object_id, contents[obj], (first, other))
    found = faults(run(cluster).check())
    assert found == {
        (first, CopyFault.UNNAMED),
        (other, CopyFault.UNNAMED),
        (other, CopyFault.MISPLACED),
    }
    assert faults(run(cluster).repair()) == {(other, CopyFault.MISPLACED)}
    assert run(cluster).rebalance().removed == 1
    assert_placed(cluster, contents, 2)


def test_copies_that_differ_are_reported_and_only_a_choice_changes_them() -> None:
    whole, contents = filled(("a", "b", "c"), 1, 2)
    cluster = whole.among(("a", "b", "c"))
    (obj,) = contents
    first, second = place(obj, cluster.names, 2)
    assert run(cluster).repair().ok
    cluster.targets[second].write(obj, 0, b"changed")
    report = run(cluster).repair()
    assert faults(report) == {(first, CopyFault.DIFFERS), (second, CopyFault.DIFFERS)}
    assert {"as written", "changed since it was written"} == {
        each.detail.rpartition(", ")[2] for each in report.findings
    }
    assert bytes(cluster.targets[second].stored[obj].data)[:7] == b"changed" and not report.written
    assert run(cluster).repair(prefer=Prefer.UNCHANGED).written == 1
    assert run(cluster).check().ok
    assert_placed(cluster, contents, 2)

    for name in (first, second):  # the same change of all copies is no fault
        cluster.targets[name].write(obj, 0, b"changed")
    assert run(cluster).check().ok
    assert run(cluster).repair().ok and not run(cluster).repair().written
    seal = Seal.decode(cluster.targets[first].stored[obj].get(SEAL))
    assert seal == Seal.of(bytes(cluster.targets[first].stored[obj].data))


def test_a_copy_is_replaced_if_storage_fails_and_left_alone_if_nothing_is_known() -> None:
    whole, contents = filled(("a", "b", "c"), 1, 2)
    cluster = whole.among(("a", "b", "c"))
    (obj,) = contents
    first = place(obj, cluster.names, 2)[0]
    cluster.targets[first].stored[obj].data[:] = b"rotten"
    cluster.errors = {first: "JobTimeout: it took too long"}
    report = run(cluster).repair()
    assert faults(report) == {(first, CopyFault.FAILED)} and not report.written
    cluster.errors = {first: "StorageError: a checksum is wrong"}
    assert faults(run(cluster).check()) == {(first, CopyFault.UNREADABLE)}
    assert run(cluster).repair().written == 1
    cluster.errors = {}
    assert run(cluster).check().ok
    assert_placed(cluster, contents, 2)


def test_data_that_change_without_a_command_are_damaged() -> None:
    """Repair took them for a change by a client, and recorded their hash as the right one."""
    whole, contents = filled(("a", "b"), 2, 2)
    cluster = whole.among(("a", "b"))
    _, obj = contents
    assert run(cluster).repair().ok
    cluster.targets["a"].stored[obj].data[0] ^= 1  # the version stays
    assert run(cluster).repair().ok  # nothing was read
    assert faults(run(cluster, all_data=True).check()) == {("a", CopyFault.UNREADABLE)}
    copy = cluster.targets["b"].stored.pop(obj)
    for all_data in (False, True):
        report = run(cluster, all_data=all_data).repair()
        assert ("a", CopyFault.UNREADABLE) in faults(report) and not report.written
    cluster.targets["b"].stored[obj] = copy
    assert run(cluster, all_data=True).repair().written == 1
    assert run(cluster, all_data=True).check().ok
    assert_placed(cluster, contents, 2)


def test_a_source_that_cannot_be_read_is_the_one_at_fault() -> None:
    whole, contents = filled(("a", "b", "c"), 1, 3)
    cluster = whole.among(("a", "b", "c"))
    assert run(cluster).repair().ok
    cluster.targets["c"].stored.clear()
    with mock.patch.object(FakeTarget, "read", side_effect=failure(StorageError)):
        assert faults(run(cluster).repair()) == {("a", CopyFault.UNREADABLE)}
    cluster.errors = {"a": "StorageError: a checksum is wrong"}
    assert run(cluster, all_data=True).repair().written == 2
    cluster.errors = {}
    assert run(cluster, all_data=True).check().ok
    assert_placed(cluster, contents, 3)


@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_a_copy_is_replaced_only_after_its_source_was_read(piece: int) -> None:
    """Both copies were lost if the preferred one could not be read."""
    whole, _ = filled(("a", "b"), 2, 2)
    cluster = whole.among(("a", "b"))
    obj = ref(PARTITION, FIRST + 1)
    assert run(cluster).repair().ok
    cluster.targets["a"].write(obj, 0, b"changed")
    with mock.patch.object(upkeep_module, "_PIECE", piece):
        with mock.patch.object(FakeTarget, "read", side_effect=failure(StorageError)):
            report = run(cluster).repair(prefer=Prefer.UNCHANGED)
        assert faults(report) == {("b", CopyFault.UNREADABLE)}
        assert bytes(cluster.targets["a"].stored[obj].data)[:7] == b"changed"
        assert run(cluster).repair(prefer=Prefer.UNCHANGED).written == 1
    assert run(cluster).check().ok


@pytest.mark.parametrize("data", [b"", b"changed"])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_two_clients_that_prefer_different_copies_remove_one_at_most(
    piece: int, data: bytes
) -> None:
    """Each has compared the copies and removes the other one's source: in between, neither has both."""
    whole, contents = filled(("a", "b"), 2, 2)
    cluster = whole.among(("a", "b"))
    obj = ref(PARTITION, FIRST + 1)
    assert run(cluster).repair().ok
    changed = cluster.targets["a"].stored[obj]
    changed.data[:] = data
    changed.changed()
    arrived, go_on, remove = threading.Event(), threading.Event(), FakeTarget.remove

    def removed(self: FakeTarget, obj: ObjectRef, **how: Any) -> None:
        if self is cluster.targets["b"]:  # by the second client
            arrived.set()
            go_on.wait()
            remove(self, obj, **how)
            return
        try:
            remove(self, obj, **how)
        finally:
            go_on.set()
            second.result()

    with (
        ThreadPoolExecutor(1) as pool,
        mock.patch.object(upkeep_module, "_PIECE", piece),
        mock.patch.object(FakeTarget, "remove", removed),
    ):
        second = pool.submit(run(cluster).repair, prefer=Prefer.NEWEST)
        assert arrived.wait(60)
        report = run(cluster).repair(prefer=Prefer.UNCHANGED)
    assert report.ok and faults(second.result()) == {("b", CopyFault.FAILED)}
    has = [each.stored[obj] for each in cluster.targets.values() if obj in each.stored]
    assert any(
        bytes(each.data) in (data, contents[obj]) for each in has if not each.get(UNFINISHED)
    )
    assert run(cluster).repair(prefer=Prefer.UNCHANGED).ok
    assert_placed(cluster, contents, 2)


def with_stray() -> tuple[FakeCluster, ObjectRef, str]:
    """Three targets, an object with two copies, and the name of the target that has a third one."""
    whole, contents = filled(("a", "b", "c"), 1, 2)
    cluster = whole.among(("a", "b", "c"))
    (obj,) = contents
    (other,) = {*cluster.names} - {*place(obj, cluster.names, 2)}
    store(whole.among((other,)), obj.object_id, contents[obj], (other,))
    return cluster, obj, other


def test_a_copy_that_changes_after_it_was_compared_is_not_removed() -> None:
    cluster, obj, other = with_stray()

    def changed_after(*words: Any, **how: Any) -> Any:
        found = survey(*words, **how)
        cluster.targets[other].write(obj, 0, b"news")
        return found

    with mock.patch.object(upkeep_module, "survey", changed_after):
        report = run(cluster).rebalance()
    assert faults(report) == {(other, CopyFault.FAILED)} and not report.removed
    assert bytes(cluster.targets[other].stored[obj].data)[:4] == b"news"


def test_a_copy_that_changes_as_it_is_removed_stays() -> None:
    cluster, obj, other = with_stray()
    remove = FakeTarget.remove

    def overtaken(self: FakeTarget, obj: ObjectRef, **how: Any) -> None:
        self.write(obj, 0, b"news")
        remove(self, obj, **how)

    with mock.patch.object(FakeTarget, "remove", overtaken):
        report = run(cluster).rebalance()
    assert faults(report) == {(other, CopyFault.FAILED)} and not report.removed
    assert bytes(cluster.targets[other].stored[obj].data)[:4] == b"news"


def test_only_changed_data_are_read_again() -> None:
    whole, contents = filled(("a", "b"), 3, 2)
    cluster = whole.among(("a", "b"))
    read: list[ObjectRef] = []
    original = cluster.map_objects

    def watched(fn: Any, objects: Any, **how: Any) -> Any:
        wanted = [*objects]
        read.extend(each.object for each in wanted)
        return original(fn, wanted, **how)

    cluster.map_objects = watched  # type: ignore[method-assign]
    assert run(cluster).repair().ok
    assert len(read) == 6
    read.clear()
    assert run(cluster).check().ok and not read
    one = next(iter(contents))
    cluster.targets["a"].stored[one].changed()  # as after a power failure: same data, other version
    assert run(cluster).check().ok and read == [one]
    read.clear()
    assert run(cluster, all_data=True).check().ok and len(read) == 6


def test_a_target_that_is_away_and_comes_back() -> None:
    whole, contents = filled(("a", "b", "c"), 8, 2)
    cluster = whole.among(("a", "b", "c"))
    assert run(cluster).rebalance().ok
    away = cluster.targets["c"].stored
    cluster.targets["c"].stored = {}
    report = run(cluster, without=["c"]).repair()
    assert report.ok and report.written
    cluster.targets["c"].stored = away
    assert {each.fault for each in run(cluster).check().findings} == {
        CopyFault.UNNAMED,
        CopyFault.MISPLACED,
    }
    assert run(cluster).rebalance().ok
    assert_placed(cluster, contents, 2)


def test_too_few_targets_do_not_make_the_number_of_copies_forgotten() -> None:
    """A lost target is left out, then another one takes its place: there are three copies again."""
    whole, contents = filled(("a", "b", "c"), 4, 3)
    cluster = whole.among(("a", "b", "c"))
    whole.targets["c"].stored.clear()
    for _ in range(2):  # a second call still reports it
        report = run(cluster, without=["c"]).repair()
        assert faults(report) == {("", CopyFault.TOO_FEW)} and not report.written
    assert faults(run(whole.among(("a", "b"))).rebalance()) == {("", CopyFault.TOO_FEW)}
    assert faults(run(whole.among(("a", "b"))).check()) == {("", CopyFault.TOO_FEW)}
    replaced = whole.among(("a", "b", "d"))
    assert run(replaced).rebalance().ok and run(replaced).check().ok
    assert_placed(replaced, contents, 3)
    assert run(whole.among(("a", "b"))).rebalance(copies=2).ok  # somebody wants fewer
    assert_placed(whole.among(("a", "b")), contents, 2)


def test_a_full_target_keeps_no_part_of_a_large_copy() -> None:
    """Each call filled it again with a part that is of no use."""
    whole, contents = filled(("a", "b"), 4, 2)
    cluster = whole.among(("a", "b"))
    cluster.targets["b"].stored.clear()
    write = FakeTarget.write

    def full(self: FakeTarget, obj: ObjectRef, start: int, data: bytes) -> None:
        if start:
            raise failure(NoSpace)
        write(self, obj, start, data)

    with mock.patch.object(upkeep_module, "_PIECE", 4):
        with mock.patch.object(FakeTarget, "write", full):
            assert faults(run(cluster).repair()) == {("b", CopyFault.FAILED)}
        assert not any(each.get(UNFINISHED) for each in cluster.targets["b"].stored.values())
        assert run(cluster).repair().ok
    assert_placed(cluster, contents, 2)


def test_an_interrupted_repair_does_not_finish_its_large_copies() -> None:
    """Ctrl-C waited for the copies under way, which --rate can make last for hours."""
    whole, contents = filled(("a", "b"), 1, 2)
    cluster = whole.among(("a", "b"))
    large = store(cluster, FIRST + 1, b"large" * 8, ("a", "b"))
    contents[large] = b"large" * 8
    cluster.targets["b"].stored.clear()

    def interrupt(step: str, done: int, total: int) -> None:
        if step == "restored":
            raise KeyboardInterrupt

    with mock.patch.object(upkeep_module, "_PIECE", 4):
        upkeep = Upkeep(cluster.as_many(), PARTITION, at_once=2, rate=0.01, progress=interrupt)
        with pytest.raises(KeyboardInterrupt):
            upkeep.repair()
        copy = cluster.targets["b"].stored.get(large)
        assert copy is None or copy.get(UNFINISHED)
        assert run(cluster).repair().ok
    assert_placed(cluster, contents, 2)


def test_a_list_of_targets_that_is_not_the_maps_is_refused() -> None:
    whole, _ = filled(("a", "b", "c"), 2, 2)
    assert run(whole.among(("a", "b", "c"))).rebalance().maps["a"] == ClusterMap(1, ("a", "b", "c"))
    assert run(whole.among(("a", "b", "c"))).check().other_targets == ""
    said = "names a, b, c; these targets are a, b"
    assert said in run(whole.among(("a", "b"))).check().other_targets
    with pytest.raises(MapConflict, match=said):
        run(whole.among(("a", "b"))).repair()
    assert run(whole.among(("a", "b"))).rebalance().maps["a"] == ClusterMap(2, ("a", "b"))
    assert run(whole.among(("a", "b"))).rebalance().maps["a"] == ClusterMap(2, ("a", "b"))
    wrong = AttributeValue(*MEMBERS, ClusterMap(2, ("x",)).encode())
    whole.targets["b"].stored[ref(PARTITION, MAP)].set([wrong])
    with pytest.raises(MapConflict, match="another client"):
        write_map(whole.targets["b"], PARTITION, ClusterMap(2, ("a", "b")))  # type: ignore[arg-type]
    maps = (
        run(whole.among(("a", "b"))).rebalance().maps
    )  # the other client is gone: this one counts
    assert maps == dict.fromkeys("ab", ClusterMap(3, ("a", "b")))


def test_two_names_of_one_target_are_refused_and_nothing_is_removed() -> None:
    """A URL that was copied and not changed: the only copy of an object looked like a surplus one."""
    whole, contents = filled(("a", "b", "c"), 6, 1)
    wrong = FakeCluster({**whole.targets, "b": whole.targets["a"]})
    for verb in ("check", "repair", "rebalance"):
        with pytest.raises(ValueError, match="a and b are the same target"):
            getattr(run(wrong), verb)()
    kept(whole, contents)


def test_an_attribute_that_is_no_list_of_copies_is_named() -> None:
    """Everybody who may write to the partition can set one, and no verb works then."""
    whole, contents = filled(("a", "b"), 1, 2)
    (obj,) = contents
    whole.targets["b"].stored[obj].set([AttributeValue(*COPIES, b"garbage")])
    with pytest.raises(
        ValueError, match="0x10000/0x10000 at b: an attribute of page 0x10001 is no JSON"
    ):
        run(whole.among(("a", "b"))).check()
    with pytest.raises(
        ValueError, match="0x10000/0x10000 at b: an attribute of page 0x10001 is no JSON"
    ):
        Many.objects(whole.among(("a", "b")).as_many(), PARTITION)


def test_impossible_upkeep_is_refused() -> None:
    cluster = FakeCluster().among(("a", "b"))
    for options, why in (
        ({"without": ["x"]}, "named x"),
        ({"without": ["a", "b"]}, "no target"),
        ({"at_once": 0}, "at_once"),
        ({"rate": -1}, "rate"),
    ):
        with pytest.raises(ValueError, match=why):
            Upkeep(cluster.as_many(), PARTITION, **options)
    with pytest.raises(ValueError, match="all targets"):
        run(cluster, without=["a"]).rebalance()
    with pytest.raises(ValueError, match="3 copies"):
        run(cluster).rebalance(copies=3)
