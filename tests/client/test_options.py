# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of jobs: how exec() and its relatives spell them, and executors that differ in them."""

from __future__ import annotations

import inspect

import pytest

import pyosd
from pyosd import Limits, ObjectRef, Target, aio, jobs, osd
from pyosd.jobs import Submission
from pyosd.types import ref

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


def read_length(obj: object) -> int:
    return obj.length()  # type: ignore[attr-defined, no-any-return]


def type_names(things: list[object]) -> list[str]:
    return [type(each).__name__ for each in things]


def test_exec_spells_its_parameters() -> None:
    options = {name: each.__forward_arg__ for name, each in Submission.__annotations__.items()}
    for function in (Target.exec, Target.exec_array, aio.AsyncTarget.exec, jobs.submit):
        first, code, *named = inspect.signature(function).parameters.values()
        assert first.name in ("self", "commands") and code.name == "code"
        assert all(each.kind is each.KEYWORD_ONLY for each in named)
        assert {each.name: each.annotation for each in named} == {**options, "zone": "ObjectRef"}
        text = inspect.getdoc(function) or ""
        assert all(f"\n    {name}: " in text for name in ("code", "zone", *options))


def test_functions_are_handed_objects_of_the_package_osd(target: Target, zone: ObjectRef) -> None:
    text = target.create_and_write(zone.partition_id, b"xxx")
    group = target.create_collection(zone.partition_id)
    handles: list[object] = [
        osd.userobject(text.partition_id, text.object_id),
        osd.collection(group.partition_id, group.object_id),
        osd.partition(zone.partition_id),
        osd.root(),
    ]
    kinds = ["userobject", "collection", "partition", "root"]
    with pyosd.Executor(target, zone=zone) as executor:
        assert executor.submit(type_names, handles).result(60) == kinds
        assert list(executor.map(read_length, handles[:1] * 2, timeout=60)) == [3, 3]


def test_two_executors_side_by_side(target: Target, zone: ObjectRef) -> None:
    places = [ref(target.create_partition()) for _ in range(2)]
    objects = [target.create_and_write(zone.partition_id, b"x" * n) for n in (3, 5, 7)]
    with (
        pyosd.Executor(
            target, zone, partition=places[0], priority=7, retries=0, tags={"team": "blue"}
        ) as blue,
        pyosd.Executor(
            target, zone, partition=places[1], name="red", limits=Limits(wall="20s")
        ) as red,
    ):
        mapped = [each.map(read_length, objects, timeout=60) for each in (blue, red)]
        assert [list(each) for each in mapped] == [[3, 5, 7]] * 2
        assert [each.submit(pow, 2, 3).result(60) for each in (blue, red)] == [8, 8]
    blues, reds = (target.jobs(place.partition_id) for place in places)
    assert len(blues) == len(reds) == 2, "an array and a call"
    assert {each.name for each in blues} == {"read_length", "pow"}
    assert {each.tags.get("team") for each in blues} == {"blue"}
    assert {each.name for each in reds} == {"red"} and not any(each.tags for each in reds)
    assert {each.limits.wall for each in reds} != {each.limits.wall for each in blues}
