# SPDX-License-Identifier: GPL-2.0-or-later
"""Making a sandbox's interpreter ready for another job of the same principal.

Hygiene, not a boundary: what a job leaves behind by accident or by the usual tricks is undone, what a
determined script hides is not.  If a change cannot be undone, the sandbox exits.  Loaded in the
zygote only, where remember() notes how everything is before any job.

Three steps:

1. Things that jobs often change are restored: modules, their dicts, lists and sets, and their
   classes.  Dicts are compared by their versions, so only changed ones cost time.
2. All other objects that can be reached are compared with their former contents
   (sandbox/python/osdcore_watch.c): one that differs makes the sandbox unfit.  Functions and classes
   are compared only if the job has set something in one of them
   (sandbox/python/osdcore_barrier.c).
3. An object that the job made and that still exists makes it unfit, too.  All objects from before
   the first job are in the garbage collector's permanent generation, so its list has only later
   objects.

Step 2 costs time because it reads memory through the processor's caches.  So what is noted here
is kept in tuples, which need no comparison: a tuple cannot be changed.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _locale
import _random
import _struct
import _thread
import atexit
import builtins
import gc
import importlib
import itertools
import os
import random
import signal
import sys
import threading
import time
import types
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from .. import _archive
from .._errors import ANSWERS
from .._sandbox import core
from . import host, packages, reach

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["clean", "remember"]

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its attributes can be set
LIST, GUARDED_LIST, STREAMS_LIST = range(3)  # of core.watch()
GUARDED = (types.FunctionType, types.BuiltinFunctionType, type)
PASSES = 3  # destructors may change what was restored before them

Items = tuple[Any, ...]  # keys and values of a dict in turn


class Unfit(Exception):
    """Something is not as before and cannot be made so."""


class Baseline:
    """The state of the interpreter before its first job."""

    def __init__(self) -> None:
        self.builtins: tuple[dict[str, Any], Items] = ({}, ())
        self.builtins_stamp = bytearray(8)
        self.versioned: tuple[dict[Any, Any] | type, ...] = ()
        self.dicts: tuple[dict[Any, Any], ...] = ()  # those themselves, or of the classes
        self.were: tuple[Items, ...] = ()
        self.stamps = bytearray()
        # by id: lists and sets, which have no versions, and what was in them
        self.containers: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self.lru_caches: tuple[Any, ...] = ()
        self.abstract: tuple[type, ...] = ()
        self.watched: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self.environment: dict[str, str] = {}
        self.raw_environment: dict[bytes, bytes] = {}
        self.settings: tuple[tuple[Callable[[], Any], Callable[[Any], Any], Any], ...] = ()
        self.handlers: tuple[tuple[int, Any], ...] = ()


baseline = Baseline()
audited = bytearray(1)  # an audit hook was added: it stays, and would see the next job
reopened = bytearray(1)  # the standard streams are not those noted
add_audit_hook = sys.addaudithook
_signal = importlib.import_module("_signal")  # makes no enumerations
get_handler = _signal.getsignal


def _note_audit_hook(hook: Callable[[str, tuple[Any, ...]], None], /) -> None:
    """sys.addaudithook() of a sandbox."""
    audited[0] = True
    add_audit_hook(hook)


def _ignore(**_: object) -> None:
    """os.register_at_fork() of a sandbox."""


def remember() -> None:
    """Note how everything is now: of all objects there are, found once."""
    sys.addaudithook = _note_audit_hook  # type: ignore[assignment]
    os.register_at_fork = _ignore  # a sandbox cannot fork, and what was registered would stay
    repr([[]])  # makes the list of what is being printed
    gc.collect()
    kinds = reach.reach(gc.get_objects())
    gc.freeze()  # collections from here on look at less
    hidden = reach.dicts_of(kinds)
    baseline.lru_caches = reach.lru_caches(kinds)
    baseline.abstract = reach.abstract_classes(kinds)
    _note_modules(reach.caches(kinds))
    _note_surroundings()
    core.changed(baseline.dicts, baseline.stamps)
    core.changed(baseline.builtins[:1], baseline.builtins_stamp)
    ours = reach.reach([vars(baseline)])  # made since
    reach.add(kinds, [*hidden, *itertools.chain.from_iterable(ours.values())])
    _watch(kinds)


def _note_modules(caches: list[dict[Any, Any]]) -> None:
    """Restored are modules, their contents, and these."""
    things: dict[int, Any] = {}
    containers: dict[int, Any] = {}
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue  # typing puts classes there
        namespace = vars(module)
        things[id(namespace)] = namespace
        for name, value in namespace.items():
            if type(value) is dict or (isinstance(value, type) and value.__flags__ & HEAP_TYPE):
                things[id(value)] = value
            elif type(value) in (list, set) and name != "__all__":
                containers[id(value)] = value
    for more in caches:
        things[id(more)] = more
    own = {id(vars(baseline)), id(globals())}
    baseline.builtins = (vars(builtins), _items(vars(builtins)))
    baseline.versioned = tuple(thing for key, thing in things.items() if key not in own)
    baseline.dicts = tuple(_dict_of(thing) for thing in baseline.versioned)
    baseline.were = tuple(_items(thing) for thing in baseline.dicts)
    baseline.stamps = bytearray(8 * len(baseline.dicts))
    baseline.containers = {key: (now, tuple(now)) for key, now in containers.items()}


def _set_threshold(values: tuple[int, int, int]) -> None:
    gc.set_threshold(*values)


def _enable(_: bool) -> None:
    gc.enable()


def _get_locale() -> str:
    return str(_locale.setlocale(_locale.LC_ALL))


def _set_locale(name: str) -> None:
    _locale.setlocale(_locale.LC_ALL, name)


def _note_surroundings() -> None:
    baseline.environment = dict(os.environ)
    baseline.raw_environment = dict(os.environ._data)  # type: ignore[attr-defined]
    baseline.handlers = tuple((n, get_handler(n)) for n in range(1, 32))
    baseline.settings = tuple(
        (get, put, get())
        for get, put in (
            (sys.getrecursionlimit, sys.setrecursionlimit),
            (sys.getswitchinterval, sys.setswitchinterval),
            (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
            (gc.get_threshold, _set_threshold),
            (gc.get_debug, gc.set_debug),
            (gc.isenabled, _enable),
            (_get_locale, _set_locale),
        )
    )


def _watch(kinds: reach.ByType) -> None:
    """Note how everything else is, functions and classes as a list of their own."""
    chosen = reach.changeable(kinds, [*baseline.dicts, host.reserve])
    baseline.watched = (
        tuple(each for each in chosen if type(each) not in GUARDED),
        tuple(each for each in chosen if type(each) in GUARDED),
    )
    core.watch(GUARDED_LIST, baseline.watched[1])  # changes dicts of types, so it is first
    core.watch(LIST, baseline.watched[0])
    core.watch(STREAMS_LIST, reach.parts_of_streams([sys.stdin, sys.stdout, sys.stderr]))


def _dict_of(thing: dict[Any, Any] | type) -> dict[Any, Any]:
    found: dict[Any, Any] = thing if isinstance(thing, dict) else gc.get_referents(vars(thing))[0]
    return found


def _items(thing: dict[Any, Any]) -> Items:
    return tuple(itertools.chain.from_iterable(thing.items()))


def clean(lightly: bool) -> bool:
    """Undo what the last job did; False: this interpreter is not fit for another.

    Args: lightly: the next job is a call of the same function.  What only step 2 notices may wait for the
        next clean-up, which compares with the same former contents.
    """
    try:
        if core.changed(baseline.builtins[:1], baseline.builtins_stamp):  # what follows uses them
            core.restore(*baseline.builtins)
        _stop_watching()
        _archive.leave()
        vars(sys.modules["__main__"]).clear()
        if not lightly:
            _restore()
        _check()
        _restore_surroundings()
        gc.collect()
        for _ in range(1 if lightly else PASSES):
            if not _restore():
                break
        if not lightly or gc.get_objects():
            _compare()
        _renew()
        gc.freeze()
    except BaseException:
        return False
    return True


def _check() -> None:
    """Refuse what cannot be undone: other threads, or that there were some, and audit hooks."""
    main = threading.main_thread()
    if _thread._count() or threading.active_count() != 1 or main._is_stopped or audited[0]:  # type: ignore[attr-defined]
        raise Unfit


def _stop_watching() -> None:
    sys.settrace(None)
    sys.setprofile(None)
    sys.set_asyncgen_hooks(None, None)
    sys.set_coroutine_origin_tracking_depth(0)
    atexit._clear()
    _signal.set_wakeup_fd(-1)


def _restore() -> bool:
    """Restore modules, their containers and classes; whether anything but the expected had changed."""
    changed = core.changed(baseline.dicts, baseline.stamps)
    for index in changed:
        thing, was = baseline.versioned[index], baseline.were[index]
        if isinstance(thing, dict):
            core.restore(thing, was)
        else:
            _restore_type(thing, was)
    if changed:
        core.changed(baseline.dicts, baseline.stamps, changed)  # as they are now
    return bool(changed)


def _restore_container(now: list[Any] | set[Any], before: tuple[Any, ...]) -> None:
    now.clear()
    if isinstance(now, list):
        now += before
    else:
        now.update(before)


def _compare() -> None:
    """Refuse what else is not as it was, or was not there.

    Caches of the interpreter and of the library are emptied first if there is something.
    """
    if not _differs():
        return
    for cache in baseline.lru_caches:
        cache.cache_clear()
    for abstract in baseline.abstract:
        _abc._reset_caches(abstract)
    _struct._clearcache()  # type: ignore[attr-defined]
    ZoneInfo.clear_cache()
    gc.collect()
    _restore()
    reach.freeze_empty_sets(baseline.abstract)
    if _differs():
        raise Unfit


def _differs() -> bool:
    found = False
    for each in core.altered(LIST):
        if id(each) in baseline.containers:
            _restore_container(*baseline.containers[id(each)])
        else:
            found = True
    return found or bool(core.altered(GUARDED_LIST) or gc.get_objects())


def _restore_type(now: type, items: Items) -> None:
    was = dict(zip(items[::2], items[1::2], strict=True))
    for name, value in list(vars(now).items()):
        if name not in was:
            type.__delattr__(now, name)
        elif value is not was[name]:
            type.__setattr__(now, name, was[name])
    for name in was.keys() - vars(now).keys():
        type.__setattr__(now, name, was[name])


def _restore_surroundings() -> None:
    """State that is in no dictionary."""
    if os.environ._data != baseline.raw_environment:  # type: ignore[attr-defined]
        os.environ.clear()
        os.environ.update(baseline.environment)
        time.tzset()
    for get, put, value in baseline.settings:
        if get() != value:
            put(value)
    for number, handler in baseline.handlers:
        if get_handler(number) is not handler:
            signal.signal(number, handler)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    warnings._filters_mutated()  # type: ignore[attr-defined]
    core.register(ANSWERS)


def _reseed() -> None:
    """As random.seed() does, but with no more than is needed: 256 bits."""
    _random.Random.seed(random._inst, int.from_bytes(os.urandom(32)))
    random._inst.gauss_next = None  # type: ignore[attr-defined]


def _renew() -> None:
    """Every job gets new random numbers, a new reserve, and new standard streams if one was
    used."""
    _reseed()
    packages.reseed()
    if reopened[0] or core.altered(STREAMS_LIST):
        reopened[0] = True
        host.open_streams()
    host.open_reserve()
