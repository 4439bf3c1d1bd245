# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues: what a method asks of a target and makes of the answers, without I/O.

A dialogue is a generator.  It yields steps, gets what they brought, and returns the method's value.
Caller carries dialogues for threads and AsyncCaller for coroutines, so each method is written once.
Functions of this file make the steps: `reply = yield from call(request)`.

A table is a class with lines as `create = Method(objects.create)`.  A class that inherits from it, and
from Blocking or Awaiting, gets a method in place of each.  A method that fails because an argument has
the wrong type names the argument.
"""

from __future__ import annotations

import functools
import inspect
import struct
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from pyosd.security.credentials import Credential
from pyosd.types import (
    check_attribute_ids,
    check_attribute_values,
    check_buffer,
    check_bytes,
    check_dict,
    check_file,
    check_number,
    check_ref,
    check_refs,
    check_str,
)
from pyosd.wire.capability import check_permission
from pyosd.wire.cdb import Encoded, Request
from pyosd.wire.reply import Reply
from pyosd.wire.transport import Command, Response

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


# ---- steps: not frozen, which would cost more than all else of a step; nobody compares them ----------


@dataclass(slots=True, eq=False, repr=False)
class Ask:
    """Send a request and wait.  Brings: Reply."""

    request: Request
    timeout: float | None = None
    credential: Credential | None = None
    refusals: bool = True  # are raised in the dialogue


@dataclass(slots=True, eq=False, repr=False)
class Start:
    """Send a request without waiting.  Brings: what Finish takes."""

    request: Request


@dataclass(slots=True, eq=False, repr=False)
class Finish:
    """Wait for the answer to a started request.  Brings: Reply; a refusal is in Reply.error."""

    started: Any


@dataclass(slots=True, eq=False, repr=False)
class Sleep:
    """Wait so many seconds."""

    seconds: float


@dataclass(slots=True, eq=False, repr=False)
class Block:
    """Call a function that may block.  Brings: its value."""

    function: Callable[[], Any]


@dataclass(slots=True, eq=False, repr=False)
class Own:
    """Call a function of the same face; coroutines await it.  Brings: its value."""

    function: Callable[[], Any]


@dataclass(slots=True, eq=False, repr=False)
class StreamItem(Generic[T]):
    """A value of a stream, for the caller of the method."""

    value: T


Step: TypeAlias = Request | Ask | Encoded | Command | Start | Finish | Sleep | Block | Own
Dialogue: TypeAlias = Generator[Step, Any, R]
Stream: TypeAlias = Generator[Step | StreamItem[R], Any, None]


def call(
    request: Request, timeout: float | None = None, credential: Credential | None = None
) -> Dialogue[Reply]:
    """Send a request and wait for the answer; a refusal is raised."""
    plain = timeout is None and credential is None  # as nearly all are: a Request is a step, too
    reply: Reply = yield request if plain else Ask(request, timeout, credential)
    return reply


def answer(request: Request, timeout: float | None = None) -> Dialogue[Reply]:
    """Send a request and wait for the answer; a refusal is in Reply.error."""
    reply: Reply = yield Ask(request, timeout, refusals=False)
    return reply


def call_again(encoded: Encoded) -> Dialogue[Reply]:
    """call() of a request that was encoded before."""
    reply: Reply = yield encoded
    return reply


def execute(command: Command) -> Dialogue[Response]:
    """Send a CDB of one's own; nothing is interpreted."""
    response: Response = yield command
    return response


def items(values: Iterable[T]) -> Stream[T]:
    """Hand values to the caller of a stream."""
    for each in values:
        yield StreamItem(each)


def collected(stream: Stream[T]) -> Dialogue[list[T]]:
    """All items of a stream."""
    found = list[T]()
    answer: object = None
    go_on: Callable[[Any], Step | StreamItem[T]] = stream.send
    while True:
        try:
            step = go_on(answer)
        except StopIteration:
            return found
        answer, go_on = None, stream.send
        if isinstance(step, StreamItem):
            found.append(step.value)
            continue
        try:
            answer = yield step
        except BaseException as error:
            answer, go_on = error, stream.throw


def transformed(stream: Stream[T], hand: Callable[[T], Iterable[R]]) -> Stream[R]:
    """A stream of what a function makes of each item of another: none, one or several."""
    answer: object = None
    go_on: Callable[[Any], Step | StreamItem[T]] = stream.send
    while True:
        try:
            step = go_on(answer)
        except StopIteration:
            return
        answer, go_on = None, stream.send
        try:
            if isinstance(step, StreamItem):
                yield from items(hand(step.value))
            else:
                answer = yield step
        except BaseException as error:
            answer, go_on = error, stream.throw


def start(request: Request) -> Dialogue[Any]:
    """Send a request without waiting; for finish()."""
    started = yield Start(request)
    return started


def finish(started: Any) -> Dialogue[Reply]:
    """Wait for the answer to a started request; a refusal is in Reply.error."""
    reply: Reply = yield Finish(started)
    return reply


def blocking_call(function: Callable[[], R]) -> Dialogue[R]:
    """Call a function that may block; coroutines run it in a thread."""
    value: R = yield Block(function)
    return value


def own_way(function: Callable[[], Any]) -> Dialogue[None]:
    """Call a function that each face has in its own way."""
    yield Own(function)


def sleep(seconds: float, deadline: float | None, what: object) -> Dialogue[None]:
    """Sleep, but not past the deadline.  Raises: TimeoutError: the deadline has come."""
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"not ended in time: {what}")
        seconds = min(seconds, left)
    yield Sleep(seconds)


# ---- faces ----------------------------------------------------------------------------------------


class Blocking:
    """A class whose methods return values: the face for threads."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _make_methods(cls, "for_threads")

    def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        raise NotImplementedError

    def carry_stream(self, stream: Stream[R]) -> Iterator[R]:
        """Carry a stream: yield its items."""
        raise NotImplementedError


class Awaiting:
    """A class whose methods are coroutines: the face for an event loop."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _make_methods(cls, "for_coroutines")

    async def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        raise NotImplementedError

    def carry_stream(self, stream: Stream[R]) -> AsyncIterator[R]:
        """Carry a stream: yield its items."""
        raise NotImplementedError


MISTAKES = (AttributeError, BufferError, TypeError, ValueError, struct.error)
"""Exceptions for an argument of the wrong type.  A check of each call would slow all calls."""
CHECKS: dict[str, Callable[[str, object], None]] = {
    "ObjectRef": check_ref,
    "PartitionId": check_number,
    "int": check_number,
    "str": check_str,
    "Buffer": check_bytes,
    "MutableBuffer": check_buffer,
    "BinaryIO": check_file,
    "Mapping[str, str]": check_dict,
    "Iterable[ObjectRef]": check_refs,
    "Iterable[AttributeId]": check_attribute_ids,
    "Iterable[AttributeValue]": check_attribute_values,
    "Permission": check_permission,
}
"""The check of an argument, by the annotation of its parameter, which can also permit None."""


def name_mistake(
    function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> None:
    """A call of a dialogue, or of another function, has failed with one of MISTAKES.

    Raises: TypeError: it names the first argument that has the wrong type, if there is one.
    """
    signature = inspect.signature(function)
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = str(signature.parameters[name].annotation)
        check = CHECKS.get(kind.removesuffix(" | None"))
        if check is not None and (value is not None or kind in CHECKS):
            try:
                check(name, value)
            except TypeError as error:
                raise error from None


def _mistakes_named(
    stream: Stream[T], dialogue: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> Stream[T]:
    """The same stream, which names an argument of the wrong type."""
    try:
        yield from stream
    except MISTAKES:
        name_mistake(dialogue, args, kwargs)
        raise


class _Later:
    """A dialogue of a module that is imported when a method of it is first used."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class DialoguesOf:
    """Stands for a module in a table of methods, so that the table does not import it."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return _Later(self.module, name)


class _Written:
    """A dialogue in a table of methods."""

    own = False

    def __init__(self, dialogue: Callable[..., Any] | _Later) -> None:
        self._dialogue = dialogue

    @property
    def dialogue(self) -> Callable[..., Any]:
        """The generator function."""
        found = self._dialogue
        if isinstance(found, _Later):
            found = self._dialogue = getattr(import_module(found.module), found.name)
        return found

    def for_threads(self) -> Callable[..., Any]:
        dialogue, own = self.dialogue, self.own

        def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            each = dialogue(self, *args, **kwargs) if own else dialogue(*args, **kwargs)
            try:
                return self.carry(each)
            except MISTAKES:
                name_mistake(dialogue, (self, *args) if own else args, kwargs)
                raise

        return method

    def for_coroutines(self) -> Callable[..., Any]:
        dialogue, own = self.dialogue, self.own

        async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            each = dialogue(self, *args, **kwargs) if own else dialogue(*args, **kwargs)
            try:
                return await self.carry(each)
            except MISTAKES:
                name_mistake(dialogue, (self, *args) if own else args, kwargs)
                raise

        return method

    def described(self, made: Callable[..., Any], name: str, owner: type) -> Callable[..., Any]:
        """Give a made method the name, parameters and text of its dialogue."""
        functools.update_wrapper(made, self.dialogue)
        made.__name__, made.__qualname__ = name, f"{owner.__qualname__}.{name}"
        made.__module__ = owner.__module__
        own = inspect.signature(self.dialogue)
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        others = [*own.parameters.values()][1 if self.own else 0 :]
        made.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[first, *others],
            return_annotation=_returned(str(own.return_annotation), issubclass(owner, Awaiting)),
        )
        return made


def _returned(annotation: str, awaits: bool) -> str:
    """The type that a method returns, by that of its dialogue."""
    kind, _, inside = annotation.partition("[")
    if kind == "Stream":
        return f"{'Async' * awaits}Iterator[{inside}"
    return inside.removesuffix("]") if kind == "Dialogue" else annotation


class Method(_Written, Generic[P, R_co]):
    """A method that is a dialogue."""

    def __init__(self, dialogue: Callable[P, Dialogue[R_co]]) -> None:
        super().__init__(dialogue)

    @overload
    def __get__(self, face: Blocking, owner: object = ...) -> Callable[P, R_co]: ...
    @overload
    def __get__(
        self, face: Awaiting, owner: object = ...
    ) -> Callable[P, Coroutine[Any, Any, R_co]]: ...
    @overload
    def __get__(self, face: None, owner: object = ...) -> Callable[..., Any]: ...
    def __get__(self, face: object, owner: object = None) -> Any:
        return self


class OwnMethod(Method[P, R_co]):
    """A method that is a dialogue whose first parameter is the object itself."""

    own = True

    def __init__(self, dialogue: Callable[Concatenate[Any, P], Dialogue[R_co]]) -> None:
        _Written.__init__(self, dialogue)


class StreamMethod(_Written, Generic[P, R_co]):
    """A method that is a stream: an iterator for threads, an asynchronous one for coroutines."""

    def __init__(self, dialogue: Callable[P, Stream[R_co]]) -> None:
        super().__init__(dialogue)

    @overload
    def __get__(self, face: Blocking, owner: object = ...) -> Callable[P, Iterator[R_co]]: ...
    @overload
    def __get__(self, face: Awaiting, owner: object = ...) -> Callable[P, AsyncIterator[R_co]]: ...
    @overload
    def __get__(self, face: None, owner: object = ...) -> Callable[..., Any]: ...
    def __get__(self, face: object, owner: object = None) -> Any:
        return self

    def for_threads(self) -> Callable[..., Any]:
        """The method: carry_stream() is a generator in both faces."""
        dialogue, own = self.dialogue, self.own

        def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            each = dialogue(self, *args, **kwargs) if own else dialogue(*args, **kwargs)
            given = (self, *args) if own else args
            return self.carry_stream(_mistakes_named(each, dialogue, given, kwargs))

        return method

    for_coroutines = for_threads


class OwnStreamMethod(StreamMethod[P, R_co]):
    """A stream whose first parameter is the object itself."""

    own = True

    def __init__(self, dialogue: Callable[Concatenate[Any, P], Stream[R_co]]) -> None:
        _Written.__init__(self, dialogue)


class _Unmade:
    """A method that takes its own place in the class when it is first used: few of a table are."""

    def __init__(self, written: _Written, face: str, name: str, owner: type) -> None:
        self.written, self.face, self.name, self.owner = written, face, name, owner

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self.written.described(getattr(self.written, self.face)(), self.name, self.owner)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, owner)


def _make_methods(cls: type, face: str) -> None:
    """Put a method in the place of each dialogue that a class inherits."""
    inherited: dict[str, object] = {}
    for base in cls.__mro__:
        # the first base that has a name counts
        inherited = {**inherited, **vars(base), **inherited}
    for name, each in inherited.items():
        if isinstance(each, _Written):
            setattr(cls, name, _Unmade(each, face, name, cls))
