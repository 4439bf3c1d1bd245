# SPDX-License-Identifier: GPL-2.0-or-later
"""The objects that can be reached in an interpreter, and which of them a script could change.

Used in the zygote, before the first job; what is done with them is hygiene.py's.
"""

from __future__ import annotations

import _random
import _thread
import abc
import codecs
import decimal
import enum
import functools
import gc
import io
import itertools
import json.scanner
import random
import sys
import types
import weakref
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "abstract_classes",
    "caches",
    "changeable",
    "freeze_empty_sets",
    "lru_caches",
    "parts_of_streams",
    "reach",
]

HAVE_GC = 1 << 14  # Py_TPFLAGS_HAVE_GC
PLAIN = (
    bytearray,
    decimal.Context,
    _thread.LockType,
)  # not known to the garbage collector, and no constants
# A script cannot change these, or not so that another could find it.
CONSTANT = (
    *(object, type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes),
    *(tuple, frozenset, range, slice, types.CodeType, types.MethodType, types.GenericAlias),
    *(types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodWrapperType),
    *(types.MappingProxyType, weakref.ReferenceType, weakref.ProxyType, weakref.CallableProxyType),
)
IS_CONSTANT = frozenset(map(id, CONSTANT))  # asked of each object there is
ABSTRACT = type(abc.ABC._abc_impl)  # type: ignore[attr-defined]


def lru_table(function: Any) -> dict[Any, Any]:
    """The cache of a function with an LRU cache."""
    parts = gc.get_referents(function)
    return next(each for each in parts if type(each) is dict and each is not vars(function))


def lru_entry() -> type:
    """The type of the entries of such a table; it has no name of its own."""
    function = functools.lru_cache(maxsize=2)(abs)
    function(1)
    return type(next(iter(lru_table(function).values())))


STREAMS = (
    io.TextIOWrapper,
    io.BufferedReader,
    io.BufferedWriter,
    io.FileIO,
)  # each job gets its own
# These change by being used.  Objects in them are found when they outlive the job.
CHANGING = (
    *(types.FrameType, types.GeneratorType, types.CoroutineType, types.TracebackType),
    *(Context, ContextVar, functools._lru_cache_wrapper, _random.Random, random.Random),
    _thread.RLock,
    *STREAMS,
    *(ABSTRACT, lru_entry()),
)


def reach(fresh: list[Any]) -> list[Any]:
    """These objects, and all that they refer to."""
    found = {id(each): each for each in fresh}
    while fresh:
        near = [
            each
            for each in gc.get_referents(*fresh)
            if id(type(each)) not in IS_CONSTANT and id(each) not in found
        ]
        fresh = list({id(each): each for each in near}.values())
        found.update((id(each), each) for each in fresh)
    return list(found.values())


def changeable(objects: tuple[Any, ...], restored: Iterable[object]) -> list[Any]:
    """Those that a script could leave something in, type by type, in the order of their addresses.

    Args: restored: not these.
    """
    left_out = {id(each) for each in restored}
    kinds = {id(type(each)): type(each) for each in objects}  # a type need not have a hash
    of_kind: dict[int, list[Any]] = {key: [] for key in kinds}
    for each in objects:
        of_kind[id(type(each))].append(each)
    special = {id(functools._lru_cache_wrapper), id(ABSTRACT), id(dict)}
    odd = [key for key, kind in kinds.items() if key in special or issubclass(kind, STREAMS)]
    for each in itertools.chain.from_iterable(of_kind[key] for key in odd):
        if type(each) is functools._lru_cache_wrapper:
            left_out.add(id(lru_table(each)))
        elif isinstance(each, STREAMS):
            left_out.add(id(each.__dict__))
        elif type(each) is ABSTRACT:
            left_out.update(id(part) for part in gc.get_referents(each) if type(part) is set)
        elif type(each) is dict and is_of_subclasses(each):
            left_out.add(id(each))
    watched = sorted(key for key, kind in kinds.items() if is_watched(kind))
    chosen = itertools.chain.from_iterable(sorted(of_kind[key], key=id) for key in watched)
    return [each for each in chosen if id(each) not in left_out]


def dicts_of(objects: Iterable[Any]) -> list[dict[str, Any]]:
    """The attributes of instances, as dicts: made when they are asked for, so from now on they can be
    compared, and in some types unknown to the garbage collector."""
    others = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, *STREAMS)
    return [
        each.__dict__
        for each in objects
        if type(each).__dictoffset__ and not isinstance(each, others) and hasattr(each, "__dict__")
    ]


def parts_of_streams(streams: Iterable[Any]) -> tuple[Any, ...]:
    """All that changes when one of these is used, or closed."""
    parts = [part for text in streams for part in (text, text.buffer, text.buffer.raw)]
    return (*parts, *(vars(part) for part in parts))


def is_watched(kind: type) -> bool:
    """Objects that the garbage collector does not know are constant, mostly, and their size need not be
    their type's (datetime.time)."""
    known = kind.__flags__ & HAVE_GC or kind in PLAIN
    return bool(known and kind not in CONSTANT and kind not in CHANGING)


def is_of_subclasses(table: dict[Any, Any]) -> bool:
    """Whether it is what type.__subclasses__() reads: weak references, by address."""
    return type(next(iter(table), None)) is int and all(
        type(key) is int and type(value) is weakref.ReferenceType and key == id(value())
        for key, value in table.items()
    )


def lru_caches(objects: Iterable[Any]) -> tuple[Any, ...]:
    """Functions that remember what they were called with."""
    return tuple(each for each in objects if type(each) is functools._lru_cache_wrapper)


def abstract_classes(objects: Iterable[Any]) -> tuple[type, ...]:
    """Classes that remember which others are their subclasses."""
    return tuple(each for each in objects if isinstance(each, abc.ABCMeta))


def freeze_empty_sets(classes: Iterable[type]) -> None:
    """Empty sets of these abstract classes are none of a job's things: the classes make them when they are
    first asked about a subclass, and keep them.  If there is nothing else, there is nothing of a job's."""
    there = gc.get_objects()  # before we make anything ourselves
    own = {
        id(part)
        for each in classes
        for part in gc.get_referents(each._abc_impl)  # type: ignore[attr-defined]
        if type(part) is set and not part
    }
    if {id(each) for each in there} <= own:
        gc.freeze()


def are_codecs(table: dict[Any, Any]) -> bool:
    """Whether it is the interpreter's table of codecs."""
    return type(next(iter(table.values()), None)) is codecs.CodecInfo and all(
        type(each) is codecs.CodecInfo for each in table.values()
    )


def caches(objects: Iterable[Any]) -> list[dict[Any, Any]]:
    """Dicts that the interpreter or the library fills by the way, and that no module has."""
    found = [vars(each) for each in sys.path_importer_cache.values() if each is not None]
    for each in objects:
        if type(each) is dict:
            if are_codecs(each):
                found.append(each)
        elif type(each) is weakref.WeakValueDictionary:
            found.append(each.data)  # type: ignore[attr-defined]
        elif isinstance(each, enum.EnumType):
            found.append(each._value2member_map_)  # values of flags that were combined
        elif type(each) is json.scanner.make_scanner:
            found += [more for more in gc.get_referents(each) if type(more) is dict]  # keys it read
    return found
