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

from .._sandbox import core

if TYPE_CHECKING:
    from collections.abc import Iterable

ByType = dict[int, list[Any]]  # objects by the ids of their types, which need not have a hash

__all__ = [
    "ByType",
    "abstract_classes",
    "add",
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


def reach(roots: list[Any]) -> ByType:
    """These objects, and all that they refer to but for constants."""
    return core.reach(roots, CONSTANT)


def add(kinds: ByType, more: Iterable[Any]) -> None:
    """Add these objects, where they are not there."""
    fresh: ByType = {}
    for each in more:
        fresh.setdefault(id(type(each)), []).append(each)
    for key, objects in fresh.items():
        kinds[key] = list({id(each): each for each in (*kinds.get(key, ()), *objects)}.values())


def of_kind(kinds: ByType, *wanted: type) -> list[Any]:
    """The objects whose types are these or derived from them."""
    found = [objects for objects in kinds.values() if issubclass(type(objects[0]), wanted)]
    return list(itertools.chain.from_iterable(found))


def changeable(kinds: ByType, restored: Iterable[object]) -> list[Any]:
    """Those that a script could leave something in, type by type, in the order of their addresses.

    Args: restored: not these.
    """
    left_out = {id(each) for each in restored}
    left_out.update(id(lru_table(each)) for each in lru_caches(kinds))
    left_out.update(id(each.__dict__) for each in of_kind(kinds, *STREAMS))
    for each in of_kind(kinds, ABSTRACT):
        left_out.update(id(part) for part in gc.get_referents(each) if type(part) is set)
    left_out.update(id(each) for each in kinds[id(dict)] if is_of_subclasses(each))
    watched = sorted(key for key, objects in kinds.items() if is_watched(type(objects[0])))
    chosen = itertools.chain.from_iterable(sorted(kinds[key], key=id) for key in watched)
    return [each for each in chosen if id(each) not in left_out]


def dicts_of(kinds: ByType) -> list[dict[str, Any]]:
    """The attributes of instances, as dicts: made when they are asked for, so from now on they can be
    compared, and in some types unknown to the garbage collector."""
    others = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, *STREAMS)
    having = [
        objects
        for objects in kinds.values()
        if type(objects[0]).__dictoffset__ and not issubclass(type(objects[0]), others)
    ]
    instances = itertools.chain.from_iterable(having)
    return [each.__dict__ for each in instances if hasattr(each, "__dict__")]


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


def lru_caches(kinds: ByType) -> tuple[Any, ...]:
    """Functions that remember what they were called with."""
    return tuple(kinds.get(id(functools._lru_cache_wrapper), ()))


def abstract_classes(kinds: ByType) -> tuple[type, ...]:
    """Classes that remember which others are their subclasses."""
    return tuple(of_kind(kinds, abc.ABCMeta))


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


def caches(kinds: ByType) -> list[dict[Any, Any]]:
    """Dicts that the interpreter or the library fills by the way, and that no module has."""
    found = [vars(each) for each in sys.path_importer_cache.values() if each is not None]
    found += filter(are_codecs, kinds[id(dict)])
    found += [each.data for each in kinds.get(id(weakref.WeakValueDictionary), ())]
    # values of flags that were combined
    found += [each._value2member_map_ for each in of_kind(kinds, enum.EnumType)]
    for scanner in kinds.get(id(json.scanner.make_scanner), ()):  # keys it read
        found += [more for more in gc.get_referents(scanner) if type(more) is dict]
    return found
