# SPDX-License-Identifier: GPL-2.0-or-later
"""@pyosd.function: functions of a program that targets store and run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyosd
import pyosd.aio
from pyosd import osd
from pyosd.commands import execute
from pyosd.commands.dialogue import Dialogue
from pyosd.errors import Invalid, NotFound, ScriptError, SessionLost, StorageError, TaskAborted
from pyosd.functions import Access, Functions, FunctionStage, Hook, HookEvent, calling, dialogues
from pyosd.functions.stored import StoredFunction, stored_first
from pyosd.jobs.source import stored_source
from pyosd.types import ObjectRef
from pyosd.wire.exec_params import Limits
from tests.exec.conftest import WAIT_S
from tests.exec.test_functions import FUNCTIONS

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pyosd.function(partition=FUNCTIONS, access=Access.READ, description="counts a word")
def count(word: str, *, least: int = 0) -> dict[str, int]:
    zone: Any = osd.zone
    return {"found": max(least, zone.data.read().count(word.encode()))}


@pyosd.function(partition=FUNCTIONS)
def root(number: float) -> float:
    return math.sqrt(number)


@pyosd.function(partition=FUNCTIONS, access=Access.WRITE, name="store.text")
def main(text: str) -> None:
    zone: Any = osd.zone
    zone.data.write(text.encode())


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    """The partition is made by the first call."""
    yield Functions(target, FUNCTIONS)
    target.remove_partition(FUNCTIONS, contents=True)


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create_and_write(zone.partition_id, b"a b a")


@pyosd.function
def half(number: float) -> float:
    return number / 2


def test_the_decorator_without_parentheses(target: pyosd.Target, functions: Functions) -> None:
    assert isinstance(half, StoredFunction) and half(3) == 1.5
    functions.put(half.source, name="half")
    assert functions.show("half").sha256 == half.sha256
    with pytest.raises(TypeError, match=r"one of pyosd\.functions\.Access, not 'read'"):
        functions.put("def main(args): pass", access="read")  # type: ignore[arg-type]
    before = functions.ls()
    with pytest.raises(SyntaxError, match=r"\(half, line 2\)"):
        functions.put("def main(args):\n    return (", name="half")
    assert functions.ls() == before


@pytest.mark.parametrize(
    "error",
    [SessionLost("the connection ended"), TaskAborted(0xB, 0, 0, ""), StorageError(4, 0, 0, "")],
    ids=lambda each: type(each).__name__,
)
def test_a_new_function_that_may_be_active_stays(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The answer to its activation is lost: the old one is no longer active."""
    activate = execute.activate_function

    def lost(*args: Any, **kwargs: Any) -> Dialogue[None]:
        yield from activate(*args, **kwargs)
        raise error

    old, new = ("def main(args): return 1", "def main(args): return 2")
    functions.put(old, name="number")
    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(dialogues, "activate_function", lost)
        functions.put(new, name="number")
    assert [functions.code(each) for each in functions.ls() if each.active] == [new.encode()]
    functions.put(new, name="number")
    assert [each.active for each in functions.ls()] == [True]


def test_the_first_call_stores_the_function(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    counted = count.on(target, zone=obj)
    assert counted("a") == {"found": 2}
    assert counted("a", least=5) == {"found": 5}
    (found,) = functions.ls()
    assert (found.name, found.manifest.access, found.active) == ("count", Access.READ, True)
    assert found.sha256 == count.sha256
    assert count.on(target, zone=obj)("b") == {"found": 1}
    assert root.on(target)(9) == 3.0
    assert {each.name for each in functions.ls()} == {"count", "root"}


def test_it_still_is_a_function_here() -> None:
    assert root(16) == 4.0
    assert root.name == "root" and isinstance(root, StoredFunction)


def test_a_function_that_writes_has_a_record(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    main.on(target, zone=obj)("longer text")
    assert bytes(target.read(obj, 0, 100)) == b"longer text"
    assert [each.name for each in functions.ls()] == ["store.text"]
    job = main.on(target, zone=obj).submit("LONGER")
    job.wait(WAIT_S)
    assert bytes(target.read(obj, 0, 100)) == b"LONGER text"
    assert job.status().function == functions.show("store.text").id


@pyosd.function(partition=FUNCTIONS)
def divided(number: int, by: int) -> float:
    return number / by


def test_an_error_has_the_name_of_the_function(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    with pytest.raises(ScriptError, match=r"^function divided: .*ZeroDivisionError"):
        divided.on(target, zone=obj)(1, 0)
    with pytest.raises(TypeError, match=r"zone is an ObjectRef.*resolve\('/logs'\) finds it"):
        divided.on(target, zone="/logs")(1, 1)  # type: ignore[call-overload]


def test_it_is_called_by_name_with_a_list(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """As osd fn call does."""
    functions.put(divided.source, name="divided")
    assert functions.call("divided", [6, 3], zone=obj) == 2
    with pytest.raises(ScriptError, match="missing 2 required positional arguments"):
        functions.call("divided", zone=obj)


def test_other_things_than_stages_and_hooks(functions: Functions, obj: ObjectRef) -> None:
    found = functions.put_stock("gzip")
    given: Any
    for given in (found, [found], [found.id], "gzip"):
        with pytest.raises(TypeError, match=r"a stage is .*FunctionStage\(function\.id\)"):
            functions.attach(obj, given)
    given = found
    with pytest.raises(TypeError, match=r"not <class .*Function'>: give its id"):
        functions.attach(obj, [FunctionStage(given)])
    for given in (found, [], Hook(found.id, 2)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"a hook is .*Hook\(function\.id, HookEvent"):
            functions.hook(obj, given)
    with pytest.raises(Invalid, match="a stage needs an active function"):
        functions.attach(obj, [FunctionStage(obj)])
    with pytest.raises(Invalid, match="a hook needs an active function"):
        functions.hook(obj, Hook(obj, HookEvent.WRITE))


def version(number: int, **options: Any) -> StoredFunction[[], int]:
    """Functions of one name with other source or options."""

    @pyosd.function(partition=FUNCTIONS, name="f", **options)
    def one() -> int:
        return 1

    @pyosd.function(partition=FUNCTIONS, name="f", **options)
    def two() -> int:
        return 2

    return one if number == 1 else two


def test_another_version_replaces_it(target: pyosd.Target, functions: Functions) -> None:
    first, second = version(1), version(2)
    assert first.on(target)() == 1
    assert second.on(target)() == 2
    assert [each.sha256 for each in functions.ls()] == [second.sha256]
    assert first.on(target)() == 1, "a client with the old source stores it again"
    limited = version(1, limits=Limits(wall=5))
    assert limited.sha256 != first.sha256 and limited.on(target)() == 1
    assert functions.show("f").manifest.limits.wall == 5


def test_clients_with_other_versions_at_a_time(target: pyosd.Target, functions: Functions) -> None:
    """Each call runs the caller's own version, whoever stores last."""
    versions = [version(1), version(2)]

    def work(number: int) -> None:
        with pyosd.connect(target.url) as own:
            assert versions[number % 2].on(own)() == number % 2 + 1

    versions[0].on(target)()
    for _ in range(5):
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(work, (0, 1)))


def test_it_is_stored_between_a_call_and_the_look_at_it(
    target: pyosd.Target, functions: Functions
) -> None:
    function = version(1)

    def late() -> Dialogue[Any]:
        try:
            return (yield from calling.call(functions, function.sha256))
        except NotFound:
            with pyosd.connect(target.url) as other:
                function.on(other)()
            raise

    assert functions.carry(stored_first(function, functions, late)) == 1


def test_failures_are_raised(target: pyosd.Target, functions: Functions) -> None:
    with pytest.raises(ScriptError, match="math domain error"):
        root.on(target)(-1)
    with pytest.raises(NotFound):
        root.on(target, zone=pyosd.ref(0x7777000000, 0x10000))(1)
    with pytest.raises(TypeError, match="JSON"):
        root.on(target)(object())  # type: ignore[arg-type]
    assert len(functions.ls()) == 1


def test_coroutines(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    async def run() -> None:
        async with pyosd.aio.connect(target.url) as own:
            counted = count.on(own, zone=obj)
            both = await asyncio.gather(counted("a"), counted("b"))
            assert [*both] == [{"found": 2}, {"found": 1}]
            job = await main.on(own, zone=obj).submit("x")
            await job.wait(WAIT_S)

    asyncio.run(run())
    assert bytes(target.read(obj, 0, 100)) == b"x b a"


def test_what_cannot_travel_is_refused_when_it_is_decorated() -> None:
    outer = 1
    decorate: Callable[..., Any] = pyosd.function()

    def closure() -> int:
        return outer

    with pytest.raises(ValueError, match="outer function"):
        decorate(closure)
    with pytest.raises(ValueError, match="decorators"):
        stored_source(plain, "")

    with pytest.raises(ValueError, match="globals of its module"):

        @pyosd.function()
        def uses() -> str:
            return str(FUNCTIONS)


def plain() -> None:
    pass
