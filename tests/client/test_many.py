# SPDX-License-Identifier: GPL-2.0-or-later
"""Many targets: four real ones, one of which is killed -9 in the middle of a run; no target needed for
placement, combining and the board."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from fractions import Fraction
from operator import add
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyosd
from pyosd.cluster import near
from pyosd.cluster.board import Board, Slice
from pyosd.cluster.placement import COPIES, decode_copies, encode_copies, place
from pyosd.cluster.run import Run
from pyosd.target import Target
from pyosd.types import PartitionId
from tests.client.conftest import FOUR
from tests.machine import unavailable
from tests.relay import Gate
from tests.serving import Serving, arguments, missing
from tests.waiting import until

NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8, unique=True)
IDS = st.integers(0, (1 << 64) - 1)
PARTITION = PartitionId(0x10000)

# ---- placement -------------------------------------------------------------------------------------


@given(NAMES, IDS, st.data())
def test_one_target_more_moves_only_its_own_copies(
    names: list[str], number: int, data: Any
) -> None:
    copies = data.draw(st.integers(1, len(names)))
    obj = pyosd.ref(PARTITION, number)
    before = place(obj, names, copies)
    assert len({*before}) == copies and place(obj, names[::-1], copies) == before
    after = place(obj, [*names, "the ninth one"], copies)
    assert {*after} <= {*before, "the ninth one"}
    assert len({*before} - {*after}) == ("the ninth one" in after)


def test_copies_spread_evenly() -> None:
    counts = dict.fromkeys(FOUR, 0)
    for number in range(4000):
        for name in place(pyosd.ref(PARTITION, number), FOUR, 2):
            counts[name] += 1
    assert all(1850 < each < 2150 for each in counts.values()), counts


def test_impossible_placements_are_refused() -> None:
    for names, copies in ((("a", "b"), 3), (("a", "b"), 0), (("a", "a"), 1), ((), 1)):
        with pytest.raises(ValueError):
            place(pyosd.ref(PARTITION, 1), names, copies)


@given(NAMES)
def test_the_attribute_keeps_the_names(names: list[str]) -> None:
    assert decode_copies(encode_copies(names).value) == (*names,)


@pytest.mark.parametrize("value", [b"{}", b"[1]", b"\xff", b"[", b"[" * 60000, b'"a"'])
def test_a_foreign_attribute_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        decode_copies(value)


# ---- combining -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.fractions(), st.integers(1, 9)), min_size=1), st.data())
def test_means_of_parts_are_the_mean(pairs: list[tuple[Fraction, int]], data: Any) -> None:
    cut = data.draw(st.integers(0, len(pairs)))
    parts = [near.merged([*part], near.mean, True) for part in (pairs[:cut], pairs[cut:])]
    (found, weight) = near.merged([*parts[0], *parts[1]], near.mean, True)[0]
    assert weight == sum(each for _, each in pairs)
    assert found == sum(value * each for value, each in pairs) / weight


@given(st.lists(st.integers()))
def test_sums_of_parts_are_the_sum(values: list[int]) -> None:
    found = near.merged([(each, 1) for each in values], add, False)
    assert [value for value, _ in found] == ([sum(values)] if values else [])


# ---- the board against a model: every object ends once, whatever fails ----------------------------


@given(st.data())
def test_each_object_ends_once(data: Any) -> None:
    count = data.draw(st.integers(0, 30))
    copies = [
        pyosd.Copies(pyosd.ref(PARTITION, number), place(pyosd.ref(PARTITION, number), FOUR, 2))
        for number in range(1, count + 1)
    ]
    board = Board(copies, FOUR, 3, 2)
    alive = {*FOUR}
    running: list[tuple[Slice, str]] = []
    while not board.over:
        able = [name for name in sorted(alive) if board._waiting[name]]
        if able and (not running or data.draw(st.booleans())):
            name = data.draw(st.sampled_from(able))
            running += [(piece, name) for piece in board.take(name, 2)]
            continue
        piece, name = running.pop(data.draw(st.integers(0, len(running) - 1)))
        how = data.draw(st.sampled_from(["ends", "ends twice", "fails", "storage", "lost"]))
        numbers = [item.copies.object.object_id for item in piece.items]
        good = {"failed": [], "values": [[at, each] for at, each in enumerate(numbers)]}
        if how.startswith("ends"):
            board.ended(piece, name, good, False)
            if how == "ends twice":
                board.ended(piece, name, good, False)
        elif how == "fails":
            board.failed([piece], name, "it failed")
        elif how == "storage":
            failed = [[at, "NotFound", "gone", True] for at in range(len(numbers))]
            board.ended(piece, name, {"failed": failed, "values": []}, False)
        else:
            lost = [each for each, at in running if at == name]
            running = [(each, at) for each, at in running if at != name]
            alive.discard(name)
            board.lose(name, [piece, *lost], "it is gone")
    found = [*board.outcomes()]
    assert sorted(each.object for each in found) == sorted(each.object for each in copies)
    assert all(each.error or each.value == each.object.object_id for each in found)
    if len(alive) == len(FOUR):
        assert not board.lost


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "failed",
        {"failed": []},
        {"failed": [], "values": None},
        {"failed": [], "values": []},
        {"failed": [], "values": [[1, 7]]},
        {"failed": [], "values": [[0, 7], [0, 7]]},
        {"failed": [], "values": [[0.0, 7]]},
        {"failed": [], "values": [[[], 7]]},
        {"failed": [[0]], "values": []},
        {"failed": [[0, "a", "b", 1]], "values": []},
        {"failed": [[9, "a", "b", True]], "values": [[0, 7]]},
        {"failed": [[{}, "a", "b", True]], "values": []},
    ],
)
def test_an_answer_that_the_code_does_not_give_goes_to_another_target(answer: Any) -> None:
    only = pyosd.Copies(pyosd.ref(PARTITION, 1), ("a", "b"))
    board = Board([only], FOUR, 1, 2)
    (piece,) = board.take("a", 8)
    board.ended(piece, "a", answer, False)
    (piece,) = board.take("b", 8)
    board.ended(piece, "b", {"failed": [], "values": [[0, 7]]}, False)
    (found,) = board.outcomes()
    assert found.ok and found.value == 7 and found.target == "b"


@pytest.mark.parametrize("values", [[], [[1]], [[1, "a"]], [[1, 1], [1, 1]], [1]])
def test_a_combined_answer_is_one_value_and_its_weight(values: Any) -> None:
    only = pyosd.Copies(pyosd.ref(PARTITION, 1), ("a",))
    board = Board([only], FOUR, 1, 0)
    (piece,) = board.take("a", 8)
    board.ended(piece, "a", {"failed": [], "values": values}, True)
    (found,) = board.outcomes()
    assert "not that of the code" in found.error and not board.combined


def test_the_last_slice_gets_a_second_copy() -> None:
    only = pyosd.Copies(pyosd.ref(PARTITION, 1), ("a", "b"))
    board = Board([only], FOUR, 1, 0)
    (first,) = board.take("a", 8)
    (second,) = board.take("b", 8)
    assert first is second
    answer = {"failed": [], "values": [[7, 1]]}
    board.ended(second, "b", answer, True)
    board.ended(first, "a", answer, True)
    assert board.combined == [[7, 1]]
    (found,) = board.outcomes()
    assert found.ok and found.target == "b" and found.attempts == 2


# ---- real targets ----------------------------------------------------------------------------------


def size_of(obj: Any) -> Any:
    return obj.length()


def odd_ones_fail(obj: Any) -> int:
    number = int(obj.data.read())
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def number_in(obj: Any) -> int:
    import time

    time.sleep(0.005)
    return int(obj.data.read())


HOLD = 0x20000


def number_in_but_held(obj: Any) -> int:
    """Most objects wait where there is another one."""
    import time

    import osd  # type: ignore[import-not-found]

    number = int(obj.data.read())
    while number > 40 and osd.userobject(obj.partition_id, 0x20000).exists():
        time.sleep(0.01)
    return number


def handle(four: dict[str, Serving]) -> pyosd.Many:
    urls = {name: served.url for name, served in four.items()}
    return pyosd.many(urls, local=False, reconnect_timeout=1.0, timeout=20.0)


@pytest.mark.tgtd
@pytest.mark.sandbox
@pytest.mark.slow
def test_four_targets_one_killed(four: dict[str, Serving], request: pytest.FixtureRequest) -> None:
    """Values, errors, a copy that is missing, coroutines; then a kill -9 in the middle."""
    count = request.config.getoption("--many-objects")
    with handle(four) as cluster:
        for name in FOUR:
            cluster.target(name).create_partition(PARTITION)
        copies = [cluster.put(PARTITION, str(n).encode()) for n in range(count)]
        listed = cluster.objects(PARTITION)
        assert {each.object: {*each.targets} for each in listed} == {
            each.object: {*each.targets} for each in copies
        }

        few = copies[:20]
        assert cluster.map_objects(size_of, few).result() == [len(str(n)) for n in range(20)]
        run = cluster.map_objects(odd_ones_fail, few, "sum")
        with pytest.raises(pyosd.IncompleteError, match="is odd") as caught:
            run.result()
        assert len(caught.value.failed) == 10 and run.partial() == sum(range(0, 20, 2))
        mean = cluster.map_objects(number_in, few, "mean", weights=size_of).result()
        weighted = sum(n * len(str(n)) for n in range(20)) / sum(len(str(n)) for n in range(20))
        assert mean == pytest.approx(weighted)

        cluster.target(few[3].targets[0]).remove(few[3].object)
        outcomes = cluster.map_objects(number_in, few, speculate=False).outcomes()
        assert [each.value for each in outcomes] == [*range(20)]
        assert outcomes[3].target == few[3].targets[1] and outcomes[3].attempts == 2
        copies.pop(3)

        async def streamed() -> set[int]:
            return {each.value async for each in cluster.map_objects(number_in, few)}

        assert asyncio.run(streamed()) == {*range(20)}

        cluster.target("c").create(PARTITION, HOLD)  # nobody ends there before the kill
        run = cluster.map_objects(number_in_but_held, copies, "sum", at_once=1, speculate=False)
        next(iter(run))
        four["c"].kill_all()
        found = run.outcomes()
        places = {each.object: {*each.targets} for each in copies}
        unfit = [each for each in found if not each.ok and not places[each.object] <= {*run.lost}]
        assert len(found) == len(copies) and not unfit, (unfit, run.lost)
        assert [*run.lost] == ["c"], run.lost
        assert run.result() == sum(range(count)) - 3
        moved = [each for each in found if each.attempts > 1]
        assert moved and all(each.target != "c" for each in moved)

        again = cluster.map_objects(number_in, copies).result()
        assert again == [n for n in range(count) if n != 3]
        with pytest.raises(pyosd.Unreachable):
            cluster.objects(PARTITION)
        left = {each.object for each in cluster.objects(PARTITION, without=["c"])}
        assert left >= {each.object for each in copies}

        alone = [pyosd.Copies(each.object, ("c",)) for each in copies if "c" in each.targets]
        other = next(each for each in copies if "c" not in each.targets)
        lonely = cluster.map_objects(number_in, [other, *alone])
        with pytest.raises(pyosd.IncompleteError) as caught:
            lonely.result()
        assert [each.object for each in caught.value.failed] == [each.object for each in alone]
        assert "c" in caught.value.lost


@pytest.mark.tgtd
@pytest.mark.sandbox
@pytest.mark.slow
def test_every_object_counts_once_over_kills(
    four: dict[str, Serving], request: pytest.FixtureRequest
) -> None:
    """Each round kills one target in the middle of a run; --history-seconds makes more rounds."""
    count, victims = 96, random.Random(22)
    end, rounds = time.monotonic() + request.config.getoption("--history-seconds"), 0
    with handle(four) as cluster:
        for name in FOUR:
            cluster.target(name).create_partition(PARTITION)
        copies = [cluster.put(PARTITION, str(n).encode()) for n in range(count)]
        while not rounds or time.monotonic() < end:
            rounds += 1
            victim = four[victims.choice(FOUR)]
            run = cluster.map_objects(number_in, copies, "sum", at_once=1)
            next(iter(run))
            victim.kill("tgtd")
            found = run.outcomes()
            assert {each.object for each in found} == {each.object for each in copies}
            assert run.result() == sum(range(count)), (rounds, run.lost)
            victim.restarted()


@pytest.mark.tgtd
def test_an_interrupted_write_leaves_no_copies(
    four: dict[str, Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, calls = Target.create_and_write, itertools.count(1)

    def interrupted(*args: Any, **how: Any) -> Any:
        made = known(*args, **how)
        if next(calls) == 3:
            raise KeyboardInterrupt
        return made

    with handle(four) as cluster:
        for name in FOUR:
            cluster.target(name).create_partition(PARTITION)
        monkeypatch.setattr(Target, "create_and_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cluster.put(PARTITION, b"data", copies=4)
        for name in FOUR:
            assert cluster.target(name).list_objects(PARTITION) == []


@pytest.mark.tgtd
def test_a_write_goes_to_all_or_fails(four: dict[str, Serving]) -> None:
    with handle(four) as cluster:
        for name in FOUR[:3]:
            cluster.target(name).create_partition(PARTITION)
        with pytest.raises(pyosd.NotFound):
            cluster.put(PARTITION, b"data", copies=4)
        for name in FOUR[:3]:
            assert cluster.target(name).list_objects(PARTITION) == []  # none is left
        cluster.target("d").create_partition(PARTITION)
        made = cluster.put(PARTITION, b"data", copies=4)
        for name in FOUR:
            target = cluster.target(name)
            assert bytes(target.read(made.object, 0, 4)) == b"data"
            assert decode_copies(target.get_attribute(made.object, *COPIES)) == made.targets


class Counted(pyosd.Many):
    """Counts how often a target was asked whether it still answers.

    patience: for longer than a test is paused.
    """

    asked, patience = 0, 60.0

    def gone(self, name: str) -> str:
        self.asked += 1
        return super().gone(name)


LAST = 23


def number_in_but_the_last_is_held(obj: Any) -> int:
    """The last object waits where there is another one."""
    import time

    import osd

    time.sleep(0.02)
    number = int(obj.data.read())
    while number == 23 and osd.userobject(obj.partition_id, 0x20000).exists():
        time.sleep(0.01)
    return number


def some_never_end(obj: Any) -> int:
    import time

    number = int(obj.data.read())
    while number > 12:
        time.sleep(1)
    return number


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_a_target_that_stays_away_for_a_moment_is_not_lost() -> None:
    """Refused at the first login; cut during jobs; silent for longer than a command may take."""
    if why := missing():
        unavailable("tgtd", why)
    with Serving(*arguments()) as served, Gate(served.url) as gate, served.connect() as beside:
        with Counted({"a": served.url}, local=False) as cluster:
            cluster.target("a").create_partition(PARTITION)
            copies = [cluster.put(PARTITION, str(n).encode(), copies=1) for n in range(LAST + 1)]
        held = beside.create(PARTITION, HOLD)  # the run goes on until the target was silent
        with Counted({"a": gate.url}, local=False, reconnect_timeout=5.0, timeout=2.0) as cluster:
            gate.shut()
            run = cluster.map_objects(number_in_but_the_last_is_held, copies, at_once=1)
            until(lambda: cluster.asked)
            gate.open()
            found = iter(run)
            for _ in range(3):
                next(found)
                gate.cut()
            gate.hold()
            before = cluster.asked
            until(lambda: cluster.asked > before)
            gate.release()
            beside.remove(held)
            assert run.result() == [*range(LAST + 1)] and not run.lost
        with Counted({"a": gate.url}, local=False, reconnect_timeout=0.5) as cluster:
            cluster.patience = 0.5
            run = cluster.map_objects(some_never_end, copies, at_once=1)
            next(iter(run))
            gate.shut()
            outcomes = run.outcomes()
            assert [*run.lost] == ["a"] and len(outcomes) == len(copies)
            assert any(each.ok for each in outcomes) and not all(each.ok for each in outcomes)


class Idle:
    """A target, and the array that waits there for ever, with this reason."""

    names, patience, reason, killed = ("a",), 0.0, 102, 0

    def target(self, _: str) -> Idle:
        return self

    def exec_array(self, *_: Any, **__: Any) -> Idle:
        return self

    status = member = exec_array
    id = pyosd.ref(1, 1)

    def as_completed(self, _: float) -> list[pyosd.Job]:
        raise TimeoutError

    def kill(self) -> None:
        self.killed += 1

    def gone(self, _: str) -> str:
        raise AssertionError("its sessions work")


def test_a_target_without_its_sandbox_service_is_lost() -> None:
    copies, idle = [pyosd.Copies(pyosd.ref(PARTITION, 1), ("a",))], Idle()
    board = Board(copies, idle.names, 1, 1)
    options = {"size": 1, "sources": (), "job": {}}
    run = Run(cast(Any, idle), board, [copies[0].object], None, options)
    assert not run.outcomes()[0].ok and "sandbox service" in run.lost["a"] and idle.killed == 1


def test_wrong_calls_are_refused() -> None:
    for wrong, why in (([], "no targets"), (["iscsi://h/t/1", "iscsi://u%p@h/t/1"], "twice")):
        with pytest.raises(ValueError, match=why):
            pyosd.many(wrong)
    with pytest.raises(TypeError, match="not one URL"):
        pyosd.many("iscsi://h/t/1")
    cluster = pyosd.many(["iscsi://user%secret@h:1/t/1"])
    assert cluster.names == ("iscsi://h:1/t/1",)
    one = pyosd.Copies(pyosd.ref(PARTITION, 1), cluster.names)
    for options, why in (
        ({"combine": "median"}, "one of sum"),
        ({"weights": size_of}, "weights need"),
        ({"retries": -1}, "negative"),
    ):
        with pytest.raises(ValueError, match=why):
            cluster.map_objects(size_of, [one], **options)
    with pytest.raises(ValueError, match="named twice"):
        cluster.map_objects(size_of, [one, one])
    given: Any = one.object
    with pytest.raises(TypeError, match=r"is pyosd\.Copies, as of objects\(\) or put\(\), not"):
        cluster.map_objects(size_of, [given])
    with pytest.raises(TypeError, match="targets are URLs, not ObjectRef: give its url"):
        pyosd.many([given])
    assert cluster.map_objects(size_of, []).result() == []
