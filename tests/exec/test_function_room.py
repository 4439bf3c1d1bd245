# SPDX-License-Identifier: GPL-2.0-or-later
"""Engines, and the room for functions (docs/functions.md, "Engines and room")."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import pyosd
from pyosd.errors import NoSpace, OSDError
from pyosd.functions import Functions
from pyosd.types import AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import Limits
from tests import warm
from tests.exec.test_functions import FUNCTIONS, NO_ENGINE, be
from tests.serving import Serving, arguments

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

MIB = 1 << 20
USUAL = 256 * MIB  # a manifest without a limit
ABI = 3
CODE = "def main(args):\n    return args\n"


def test_engines_and_active_functions(target: pyosd.Target) -> None:
    functions = Functions(target, FUNCTIONS)
    before = functions.capacity()
    assert {each.name: each.abi for each in before.engines}["python"] == (1, 1)
    assert before.most_active == 4096 and before.most_code == 16 * MIB
    functions.put(CODE, name="usual")
    functions.put(CODE + "#", name="small", limits=Limits(mem="32MiB"))
    try:
        after = functions.capacity()
        assert after.active == before.active + 2
        assert after.reserved == before.reserved + USUAL + 32 * MIB
        (python,) = (each for each in after.engines if each.name == "python")
        assert (python.active, python.pool) == (after.active, "default")
        assert python.limits["memory"][0] == USUAL
        functions.call("small")
        assert before.kept < functions.capacity().kept <= after.most_kept
    finally:
        target.remove_partition(FUNCTIONS, contents=True)
    assert functions.capacity().active == before.active


def test_a_version_of_the_interface_that_there_is_not(target: pyosd.Target) -> None:
    target.create_partition(FUNCTIONS)
    try:
        for abi, works in ((1, True), (2, False), (0xFFFF_FFFF, False)):
            obj = target.create_and_write(FUNCTIONS, CODE.encode())
            value = AttributeValue(Page.FUNCTION, ABI, abi.to_bytes(4, "big"))
            target.set_attributes(obj, [value])
            if works:
                target.activate_function(obj)
                continue
            with pytest.raises(OSDError) as caught:
                target.activate_function(obj)
            assert (caught.value.asc << 8 | caught.value.ascq) == NO_ENGINE
    finally:
        target.remove_partition(FUNCTIONS, contents=True)


def put(functions: Functions, name: str, mem: str, code: str = CODE) -> None:
    functions.put(f"{code}# {name}\n", name=name, limits=Limits(mem=mem))


def test_the_bound_of_reserved_memory(folder: Path) -> None:
    store = folder / "store"
    words = [*arguments(), "--function-memory"]
    with Serving(*words, "300MiB", data=store) as serving, serving.connect() as target:
        functions = Functions(target, FUNCTIONS)
        put(functions, "a", "100MiB")
        put(functions, "b", "100MiB")
        with pytest.raises(NoSpace):
            functions.put(CODE, name="usual")
        with pytest.raises(NoSpace):
            put(functions, "c", "101MiB")
        assert {each.name for each in functions.ls()} == {"a", "b"}, "nothing stays of them"
        put(functions, "c", "100MiB")
        # A replacement gives back what it replaces.
        put(functions, "c", "100MiB", code=CODE + "\n")
        with pytest.raises(NoSpace):
            put(functions, "c", "101MiB")
        functions.activate("a")
        room = functions.capacity()
        assert (room.active, room.reserved, room.most_reserved) == (3, 300 * MIB, 300 * MIB)
        functions.deactivate("a")
        put(functions, "d", "100MiB")
        with pytest.raises(NoSpace):
            functions.activate("a")
        functions.remove("d")
        functions.activate("a")
        environment = {**os.environ, "IOSD_TARGET": serving.url}
        command = ["osd", "fn", "engines"]
        shown = warm.run(command, env=environment, capture_output=True, text=True, check=True)
        assert "3 of 4096 functions are active; they reserve 300.0 MiB of 300.0 MiB" in shown.stdout
        told = warm.run(
            [*command, "-o", "json"], env=environment, capture_output=True, text=True, check=True
        )
        assert json.loads(told.stdout)["most_reserved"] == 300 * MIB
    # Active functions stay active under a lower bound.
    with Serving(*words, "150MiB", data=store) as serving, serving.connect() as target:
        functions = Functions(target, FUNCTIONS)
        assert functions.capacity().active == 3
        assert "more than" in serving.text()
        with pytest.raises(NoSpace):
            put(functions, "e", "1MiB")
        assert functions.call("a", 7) == 7


def test_limits_that_overflow(target: pyosd.Target) -> None:
    """Two limits of nearly all memory there can be."""
    functions = Functions(target, FUNCTIONS)
    target.create_partition(FUNCTIONS)
    try:
        for name in (b"a", b"b"):
            obj = target.create_and_write(FUNCTIONS, CODE.encode())
            limit = AttributeValue(Page.FUNCTION, 12, be((1 << 64) - 1))
            target.set_attributes(obj, [limit, AttributeValue(Page.FUNCTION, 6, name)])
            target.activate_function(obj)
        assert functions.capacity().reserved == (1 << 64) - 1
    finally:
        target.remove_partition(FUNCTIONS, contents=True)
