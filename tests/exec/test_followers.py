# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that follow changes, and the attributes that they derive (docs/hooks.md)."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import OSDError
from pyosd.functions import Access, Functions, Hook, HookEvent
from pyosd.osd._query import attr
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.serving import Serving, arguments
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

PAGE = 0x10000
VERSION_OF, SIZE, LINES, LEAST, GREATEST, RUNS = 1, 2, 3, 4, 5, 6

LENGTH = """
import osd

def main(args):
    c = osd.change(args)
    data = osd.zone.data.read()
    assert len(data) == c.old_length
    return c.derive({2: len(data), 3: data[:8]})

def fails(args):
    c = osd.change(args)
    if osd.zone.data.read().startswith(b"bad"):
        raise ValueError("this is bad")
    return c.derive({2: c.old_length})

def elsewhere(args):
    c = osd.change(args)
    entries = c.derive({2: 1})
    return (0x20000).to_bytes(4) + entries[4:]

def odd(args):
    return {"lines": 3}

def writes(args):
    osd.zone.data[0:1] = b"!"
"""


def put(functions: Functions, *methods: str) -> ObjectRef:
    names = methods or ("main",)
    return functions.put(LENGTH, name="length", methods=names, access=Access.READ).id


def derived(target: pyosd.Target, obj: ObjectRef) -> dict[int, bytes]:
    ids = [AttributeId(PAGE, number) for number in range(1, 8)]
    return {each.number: each.value for each in target.get_attributes(obj, ids) if each.value}


def number(values: dict[int, bytes], which: int) -> int:
    return int.from_bytes(values.get(which, b""))


def settled(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> dict[int, bytes]:
    """The derived attributes, once they are of the present data."""
    until(lambda: functions.is_current(obj), "nothing has followed the change", pause=0.02)
    found = derived(target, obj)
    assert found[VERSION_OF] == bytes(target.get_attribute(obj, Page.VERSION, 1))
    return found


def is_due(target: pyosd.Target, obj: ObjectRef) -> bool:
    return bool(target.get_attribute(obj, Page.HOOKS, 9))


def test_each_change_is_followed(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    functions.hook(zone, Hook(put(functions), HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    assert number(settled(target, functions, obj), SIZE) == 0
    target.write(obj, 0, b"hello")
    found = settled(target, functions, obj)
    assert (number(found, SIZE), found[3]) == (5, b"hello")
    target.append(obj, b"!")
    assert number(settled(target, functions, obj), SIZE) == 6
    target.punch(obj, 0, 1)
    assert settled(target, functions, obj)[3] == b"ello!"
    target.clear(obj, 0, 2)
    assert settled(target, functions, obj)[3] == b"\0\0lo!"
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, (2).to_bytes(8))])
    assert number(settled(target, functions, obj), SIZE) == 2
    made = target.create_and_write(zone.partition_id, b"made")
    assert settled(target, functions, made)[3] == b"made"
    copy = target.copy(made, zone.partition_id)
    assert settled(target, functions, copy)[3] == b"made"
    assert not is_due(target, obj)
    target.remove(made)


def test_a_script_changes_the_data(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    functions.hook(zone, Hook(put(functions), HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    code = f"import osd\nosd.userobject({obj.partition_id}, {obj.object_id}).data.append(b'abc')\n"
    target.exec(code, zone=zone).result()
    assert number(settled(target, functions, obj), SIZE) == 3


def test_a_query_finds_present_values_alone(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """A function that is not active leaves what it has derived.  A query knows that it is of other data."""
    length = put(functions)
    functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"hello")
    settled(target, functions, obj)
    five = attr(PAGE, SIZE) == 5
    current = attr(Page.HOOKS, 10) == b"\1"
    assert [*target.query(zone, five & current)] == [obj]
    functions.deactivate(length)
    target.write(obj, 0, b"hello again")
    assert [*target.query(zone, five)] == [obj], "of the old data"
    assert [*target.query(zone, five & current)] == []
    assert is_due(target, obj)
    functions.activate(length)
    assert number(settled(target, functions, obj), SIZE) == 11
    assert [*target.query(zone, (attr(PAGE, SIZE) == 11) & current)] == [obj]


def test_a_function_that_fails(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    """Its attributes stay, and their version says that they are of other data."""
    functions.hook(zone, Hook(put(functions, "fails"), HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"good")
    good = settled(target, functions, obj)
    target.write(obj, 0, b"bad data")
    until(lambda: not is_due(target, obj), "it is tried for ever")
    assert derived(target, obj) == good
    assert not functions.is_current(obj)
    target.write(obj, 0, b"fine")
    assert number(settled(target, functions, obj), SIZE) == 8


@pytest.mark.parametrize("method", ["elsewhere", "odd", "writes"])
def test_a_function_that_says_other_things(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, method: str
) -> None:
    functions.hook(zone, Hook(put(functions, method), HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"data")
    until(lambda: not is_due(target, obj), "it is tried for ever")
    assert derived(target, obj) == {} and not functions.is_current(obj)
    assert bytes(target.get_attribute(obj, 0x20000, 2)) == b""
    assert bytes(target.read(obj, 0, 4)) == b"data"


def test_objects_from_before_the_hook(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"old")
    functions.hook(zone, Hook(put(functions), HookEvent.AFTER, page=PAGE))
    assert not functions.is_current(obj) and not is_due(target, obj)
    functions.follow(obj)
    assert number(settled(target, functions, obj), SIZE) == 3


def test_a_thousand_writes_are_few_runs(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """The writer never waits for the function, which sees some states and the last one."""
    length = put(functions)
    functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    before = functions.calls(length).plain
    for each in range(1000):
        target.write(obj, each, b"x")
    assert number(settled(target, functions, obj), SIZE) == 1000
    assert 0 < functions.calls(length).plain - before < 500


def test_detached_while_due(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    length = put(functions)
    functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
    objects = [target.create(zone.partition_id) for _ in range(20)]
    for each in objects:
        target.write(each, 0, b"x")
    functions.unhook(zone)
    until(lambda: not any(is_due(target, each) for each in objects), "they stay due")
    functions.remove(length, force=True)
    for each in objects:
        target.write(each, 0, b"y")
        target.remove(each)


def test_two_clients_at_once(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, serving: Serving
) -> None:
    functions.hook(zone, Hook(put(functions), HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)

    def write(letter: int) -> None:
        with serving.connect() as own:
            for each in range(100):
                own.write(obj, each % 7, bytes((letter,)) * (each % 50 + 1))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, b"ab"))
    found = settled(target, functions, obj)
    data = bytes(target.read(obj, 0, 1 << 16))
    assert (number(found, SIZE), found[3]) == (len(data), data[:8])


WAITS = """
import time

def main(args):
    import osd
    while osd.zone.data.read() == b"wait":
        time.sleep(0.01)
    return osd.change(args).derive({2: 1})
"""


def test_slow_functions_of_a_partition_do_not_hold_up_others() -> None:
    """It has half of the runs: the other half is there for the objects of other partitions."""
    with (
        Serving(*arguments(["--slots", "2", "--pool", "slow:max=1"])) as served,
        served.connect() as target,
    ):
        functions = target.functions
        mine, slow = ref(target.create_partition()), ref(target.create_partition())
        waits = functions.put(WAITS, name="waits", access=Access.READ, pool="slow").id
        functions.hook(slow, Hook(waits, HookEvent.AFTER, page=PAGE))
        functions.hook(mine, Hook(put(functions), HookEvent.AFTER, page=PAGE))
        many = [target.create_and_write(slow.partition_id, b"wait") for _ in range(10)]
        until(lambda: len(functions.calls(waits).under_way) == 4, "no functions wait")
        for turn in range(3):
            obj = target.create_and_write(mine.partition_id, b"x" * turn)
            assert number(settled(target, functions, obj), SIZE) == turn
        assert not any(functions.is_current(each) for each in many)
        for each in many:
            target.write(each, 0, b"done")
        for each in many:
            settled(target, functions, each)


def test_the_function_is_replaced(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """A hook names the function's object: another object is another function."""
    length = put(functions)
    functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
    obj = target.create(zone.partition_id)
    settled(target, functions, obj)
    code = LENGTH.replace("data[:8]", "b'new'")
    again = functions.put(code, name="length", access=Access.READ).id
    functions.unhook(zone)
    functions.hook(zone, Hook(again, HookEvent.AFTER, page=PAGE))
    target.write(obj, 0, b"hello")
    assert settled(target, functions, obj)[3] == b"new"


def test_stock_count(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    count = functions.put_stock("count").id
    functions.hook(zone, Hook(count, HookEvent.AFTER, parameters="column=2", page=PAGE))
    obj = target.create_and_write(zone.partition_id, b"name,age\nann,7\nbob,30\neve,-1")
    found = settled(target, functions, obj)
    shown = [number(found, each) for each in (SIZE, LINES, LEAST, GREATEST)]
    assert shown == [28, 4, 7, 30]
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
    assert sorted(settled(target, functions, obj)) == [VERSION_OF, SIZE, LINES]


def test_what_was_followed_before_a_kill_is_current_after_it(own_serving: Serving) -> None:
    """The kill gives the object another version: its data might have changed."""
    with own_serving.connect() as target:
        functions = Functions(target)
        length = functions.put(LENGTH, name="length", access=Access.READ).id
        zone = ref(target.create_partition())
        functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
        obj = target.create_and_write(zone.partition_id, b"before")
        target.write(obj, 0, b"followed")
        settled(target, functions, obj)
    own_serving.kill("tgtd")
    own_serving.restarted()
    with own_serving.connect() as target:
        assert number(settled(target, Functions(target), obj), SIZE) == len(b"followed")


def test_no_change_is_lost_by_a_kill(
    own_serving: Serving, seed: int, request: pytest.FixtureRequest
) -> None:
    """The target dies between changes and the runs that follow them, several times."""
    chance = random.Random(seed)
    rounds = max(2, request.config.getoption("--crash-rounds") // 2)
    with own_serving.connect() as target:
        functions = Functions(target)
        length = functions.put(LENGTH, name="length", access=Access.READ).id
        zone = ref(target.create_partition())
        functions.hook(zone, Hook(length, HookEvent.AFTER, page=PAGE))
        objects = [target.create(zone.partition_id) for _ in range(8)]
    for _ in range(rounds):
        with own_serving.connect() as target:
            stop = threading.Event()

            def change(target: pyosd.Target = target, stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    obj = chance.choice(objects)
                    try:
                        if chance.random() < 0.1:
                            target.punch(obj, 0, 1)
                        target.write(obj, 0, b"x" * chance.randrange(1, 5000))
                    except (OSDError, OSError):
                        return

            writer = threading.Thread(target=change)
            writer.start()
            stop.wait(chance.random() * 0.5)
            own_serving.kill("tgtd")
            stop.set()
            own_serving.restarted()
            writer.join()
    with own_serving.connect() as target:
        functions = Functions(target)
        for each in objects:
            found = settled(target, functions, each)
            data = bytes(target.read(each, 0, 1 << 16))
            begin = found.get(3, b"")  # a busy machine may not let the writer come to each object
            assert (number(found, SIZE), begin) == (len(data), data[:8])
