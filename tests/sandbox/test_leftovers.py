# SPDX-License-Identifier: GPL-2.0-or-later
"""What a job can leave in an interpreter that another job gets: every object that can be reached.

test_reuse.py tries the usual tricks one by one; this looks at all objects there are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from proxy import FINISH_EXCEPTION, FINISH_OK, Daemon

if TYPE_CHECKING:
    from proxy import Sandbox

# Plants a marker in one reachable object after the other, in every way that the object
# permits, and asks the
# clean-up whether it sees that.
PLANT = r"""
import abc, collections, contextvars, functools, gc, io, itertools, json, sys, types, weakref
hygiene = sys.modules["osd._engine.hygiene"]
core, baseline = hygiene.core, hygiene.baseline
MARKER = "planted by a job"
DICT, LIST, SET = dict, list, set

def reach():
    # Not from our own names; what is made afterwards is not in the way.
    fresh = [vars(m) for n, m in list(sys.modules.items()) if n != "__main__"]
    found = {id(each): each for each in fresh}
    own = {id(globals()), id(fresh), id(found), id(sys._getframe())}
    while fresh:
        near = {id(e): e for e in gc.get_referents(*fresh) if id(e) not in found and id(e) not in own}
        fresh = list(near.values())
        found.update(near)
    return list(found.values())

def noticed():
    seen = bool(core.changed(baseline.dicts, baseline.stamps))
    seen |= bool(core.changed(baseline.builtins[:1], baseline.builtins_stamp))
    for number in (0, 1):
        if core.altered(number):
            seen = True
            core.watch(number, baseline.watched[number])
    return seen

def by_attribute(each, name):
    had = name in ("__name__", "__doc__", "__module__", "__qualname__")
    before = getattr(each, name, None) if had else None
    def undo():
        if had:
            setattr(each, name, before)
        else:
            delattr(each, name)
    setattr(each, name, MARKER)
    return undo

def by_item(each):
    each[MARKER] = MARKER
    return lambda: DICT.__delitem__(each, MARKER)

def by_append(each):
    LIST.append(each, MARKER)
    return lambda: LIST.pop(each)

def by_replacing(each):
    was = each[0]
    each[0] = MARKER
    def undo():
        each[0] = was
    return undo

def by_adding(each):
    SET.add(each, MARKER)
    return lambda: SET.discard(each, MARKER)

def by_defaults(each):
    was = each.__defaults__
    each.__defaults__ = (MARKER,)
    def undo():
        each.__defaults__ = was
    return undo

def by_cell(each):
    was = each.cell_contents
    each.cell_contents = MARKER
    def undo():
        each.cell_contents = was
    return undo

def by_descriptor(each, name, value):
    # As setattr() does, but without it.
    descriptor = next(vars(c)[name] for c in type(each).__mro__ if name in vars(c))
    was = descriptor.__get__(each)
    descriptor.__set__(each, value)
    return lambda: descriptor.__set__(each, was)

def by_dict_of_function(each):
    vars(each)[MARKER] = MARKER
    return lambda: vars(each).pop(MARKER)

def other_code(): pass

OF_FUNCTIONS = {"__name__": MARKER, "__qualname__": MARKER, "__doc__": MARKER + " too",
    "__module__": MARKER, "__code__": other_code.__code__, "__defaults__": (MARKER,),
    "__kwdefaults__": {MARKER: 1}, "__annotations__": {MARKER: 1}, "__dict__": {MARKER: 1}}

turns = itertools.cycle(["osd_marker", "dict of a function", "__dict__"])

def ways(each):
    # A function has a dict from the first of these on, and only that is to be noticed: one of them.
    first = next(turns) if type(each) is types.FunctionType else "osd_marker"
    if first == "osd_marker":
        yield first, lambda: by_attribute(each, first)
    elif first == "dict of a function":
        yield first, lambda: by_dict_of_function(each)
    yield "__name__", lambda: by_attribute(each, "__name__")
    if type(each) is types.FunctionType:
        for name, value in OF_FUNCTIONS.items():
            if name != "__dict__" or first == name:
                yield f"{name} of a function", lambda name=name, value=value: (
                    by_descriptor(each, name, value))
    elif type(each) is types.BuiltinFunctionType:
        yield "__module__ of a built-in", lambda: by_descriptor(each, "__module__", MARKER)
    elif isinstance(each, type):
        for name in ("__name__", "__qualname__"):
            yield f"{name} of a class", lambda name=name: by_descriptor(each, name, MARKER)
    if type(each) is dict:
        yield "item", lambda: by_item(each)
    elif type(each) is list:
        yield "append", lambda: by_append(each)
        if each:
            yield "replace", lambda: by_replacing(each)
    elif type(each) is set:
        yield "add", lambda: by_adding(each)
    elif type(each) is types.FunctionType:
        yield "defaults", lambda: by_defaults(each)
    elif type(each) is types.CellType:
        yield "cell", lambda: by_cell(each)

def left_out(each):
    # Of this job, or made anew for each; or tables that only gc.get_referents() finds, and are emptied.
    if type(each) is functools._lru_cache_wrapper:
        yield from (e for e in gc.get_referents(each) if type(e) is dict and e is not vars(each))
    elif type(each) is type(abc.ABC._abc_impl):
        yield from (e for e in gc.get_referents(each) if type(e) is set)
    elif type(each) is dict and each and all(type(v) is weakref.ref for v in each.values()):
        yield each  # of type.__subclasses__()
    elif isinstance(each, (io.IOBase, type(transport), contextvars.Context, types.FrameType)):
        yield each
        yield getattr(each, "__dict__", None)

transport = sys.modules["osd._current"].current()
everything = reach()
out = {id(e) for each in everything for e in left_out(each)} | {id(sys.modules["__main__"])}
objects = [each for each in everything if id(each) not in out]
mine = {id(each) for each in gc.get_objects()}  # others are frozen
known = {id(each) for part in baseline.watched for each in part}
known.update(id(each) for each in baseline.dicts)
uncovered = [
    f"{type(each).__qualname__} {object.__repr__(each)} {str(each)[:99]}"
    for each in objects
    if type(each) in (dict, list, set, types.FunctionType, types.CellType, property)
    and id(each) not in known and id(each) not in mine
    and not (type(each) is set and all(type(e) is int for e in each))  # addresses that reach.py has made
]
noticed()
planted = collections.Counter()
missed = []
for each in objects[::STEP]:
    if id(each) in mine:
        continue
    for name, plant in ways(each):
        try:
            undo = plant()
        except Exception:
            continue
        planted[name] += 1
        if not noticed():
            missed.append(f"{name} {type(each).__qualname__} {object.__repr__(each)}")
        try:
            undo()
        except Exception:
            pass  # typing's aliases set attributes of what they stand for
        noticed()
sys.__stdout__.write(json.dumps([len(objects), planted, missed, uncovered]))
"""


def test_a_marker_in_any_object_is_noticed(sandbox: Sandbox) -> None:
    """Every container, function, cell and property is compared with what it was; a sample of all objects
    is, in fact, when a marker is planted there."""
    sandbox.run_another("pass")  # what the dry runs have left is gone after it
    sandbox.wait_ready()
    outcome = sandbox.run_another(PLANT.replace("STEP", "23"))
    assert outcome.kind == FINISH_OK, outcome.traceback
    objects, planted, missed, uncovered = json.loads(outcome.stdout)
    assert objects > 10_000 and sum(planted.values()) > 300, planted
    assert set(planted) >= {"osd_marker", "__name__", "item", "append", "defaults"}
    assert {name for name in planted if " of a " in name} >= {
        "__name__ of a class",
        "__module__ of a built-in",
        "__code__ of a function",
        "__doc__ of a function",
        "__dict__ of a function",
        "dict of a function",
    }
    assert not uncovered, "\n".join(uncovered)
    assert not missed, "\n".join(missed)


HARMLESS = {
    "nothing": "pass",
    "values": "x = [i * 2 for i in range(1000)]; print(sum(x))",
    "a class": "class A:\n    x = 1\nprint(A().x)",
    "abstract": "import abc\nclass A(abc.ABC): pass\nprint(isinstance(A(), A), isinstance(1, A))",
    "subclass": "import json\nclass E(json.JSONEncoder): pass\nprint(json.dumps([1], cls=E))",
    "patterns": "import re; print(re.sub('x+', 'y', 'axx'), re.compile('(a)|b', re.S | re.X))",
    "types": "import typing; print(typing.Optional[typing.List[int]])",
    "dates": "import datetime; print(datetime.datetime.strptime('2020', '%Y'))",
    "zones": "import zoneinfo; print(zoneinfo.ZoneInfo('UTC'))",
    "encodings": "print('x'.encode('cp1252'), 'x'.encode('utf-16'))",
    "formats": "import struct; print(struct.pack('<IQ5s', 1, 2, b'a'))",
    "modules": "import colorsys, csv, logging; logging.warning(colorsys.rgb_to_hsv(1, 2, 3))",
    "cache": "import functools\nf = functools.lru_cache(abs)\nprint(f(1))",
    "an error": "1 / 0",
}


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_ordinary_jobs_leave_a_sandbox_fit(sandbox: Sandbox, code: str) -> None:
    for _ in range(2):
        outcome = sandbox.run_another(code)
        assert outcome.kind == (FINISH_EXCEPTION if "/ 0" in code else FINISH_OK), outcome.traceback
        sandbox.wait_ready()


LEAVING = {
    "thread object": "import threading; threading.current_thread().secret = 'xyzzy'",
    "function": "import json; json.dumps.secret = 'xyzzy'",
    "name of a function": "import json; json.dumps.__name__ = 'xyz' + 'zy'",
    "defaults of a function": "import json; json.dumps.__defaults__ = ('xyzzy',)",
    "built-in function": "import math; math.sin.__module__ = 'xyzzy'",
    "method": "import json; json.JSONEncoder.encode.secret = 'xyzzy'",
    "instance": "import json; json._default_encoder.secret = 'xyzzy'",
    "instance's dict": "import json; json._default_encoder.__dict__ = {'secret': 'xyzzy'}",
    "class of no module": "import sys; sys.modules['json'].scanner.NUMBER_RE.__class__\n"
    "import string; type(string.Formatter.format).__class__\n"
    "import random; random._inst.secret = 'xyzzy'",
    "nested container": "import sys; sys.modules['os'].__spec__.submodule_search_locations = ['xyzzy']",
    "class of an instance": "import json; json._default_decoder.__class__ = json.JSONEncoder",
    "class of a class": "import collections.abc, typing\n"
    "collections.abc.Hashable.__class__ = typing._ProtocolMeta",
    "bases of a class": "import json; json.JSONDecodeError.__bases__ = (ArithmeticError,)",
    "descriptor of a function": "import json\n"
    "type(json.dumps).__dict__['__doc__'].__set__(json.dumps, 'xyzzy')",
    "dict of a function": "import json; vars(json.dumps)['secret'] = 'xyzzy'",
    "name of a class": "import json; json.JSONEncoder.__name__ = 'xyzzy'",
    "clean-up's own state": "import sys; sys.modules['osd._engine.hygiene'].secret = 'xyzzy'",
    "signal's wake-up": "import threading; threading._shutdown_locks.add('xyzzy')\n"
    "threading.main_thread().secret = 1",
}


@pytest.mark.parametrize("code", LEAVING.values(), ids=LEAVING)
def test_a_job_that_leaves_something_ends_its_sandbox(daemon: Daemon, code: str) -> None:
    running = daemon.spawn()
    running.wait_ready()
    outcome = running.run_another(code)
    assert outcome.kind == FINISH_OK, outcome.traceback
    assert running.wait_exit().code == 0
    running.close()
