# SPDX-License-Identifier: GPL-2.0-or-later
"""The target is killed in its n-th call of the store while functions are activated, replaced and
deactivated: each function is as before the command or as after it, and its alias has one owner.

A run of the gate tries a part of the n, which the seed chooses; --all-faults tries all.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest

from pyosd.commands import Commands
from pyosd.errors import Conflict
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from tests.conftest import MakeHarness
from tests.fault.killed import cut_at_nth_call

FUNCTIONS = PartitionId(0x11)
OLD, NEW, OTHER = (ref(FUNCTIONS, 0x1_0000 + n) for n in range(3))
CODES = {each: b"def main(args): return %d\n" % n for n, each in enumerate((OLD, NEW, OTHER))}
STATE, ALIAS, SHA256, ACTIVATED = 1, 6, 14, 15
SHARED = b"count"
STRIDE = 47

Active = frozenset[ObjectRef]
STEPS: list[tuple[ObjectRef, str, Active]] = [
    (OTHER, "activate", frozenset({OLD, OTHER})),
    (NEW, "replace", frozenset({NEW, OTHER})),
    (OTHER, "activate", frozenset({NEW, OTHER})),
    (OLD, "replace", frozenset({OLD, OTHER})),
    (OTHER, "deactivate", frozenset({OLD})),
    (OLD, "deactivate", frozenset()),
    (NEW, "replace", frozenset({NEW})),
    (NEW, "remove", frozenset()),
    (OLD, "activate", frozenset({OLD})),
]
"""Commands, and what is active after each."""


@pytest.fixture
def template(make_harness: MakeHarness, tmp_path: Path) -> Path:
    """A store with three functions; one of the two with the same alias is active."""
    harness = make_harness(dir=tmp_path / "template")
    harness.osd.create_partition(FUNCTIONS)
    for each, code in CODES.items():
        harness.osd.create(FUNCTIONS, each.object_id)
        harness.osd.write(each, 0, code)
    for each in (OLD, NEW):
        harness.osd.set_attributes(each, [AttributeValue(Page.FUNCTION, ALIAS, SHARED)])
    harness.osd.activate_function(OLD)
    harness.finish()
    return tmp_path / "template"


def take(osd: Commands, function: ObjectRef, name: str) -> None:
    if name == "remove":
        osd.remove(function)
    else:
        osd.activate_function(function, deactivate=name == "deactivate", replace=name == "replace")


def active(osd: Commands) -> Active:
    """The functions that are active; each has all that belongs to its state, or nothing of it."""
    found = set()
    for each in osd.list_objects(FUNCTIONS):
        state, digest, when = (
            bytes(osd.get_attribute(each, Page.FUNCTION, number))
            for number in (STATE, SHA256, ACTIVATED)
        )
        if state == b"\1":
            assert digest == hashlib.sha256(CODES[each]).digest()
            assert len(when) == 6
            found.add(each)
        else:
            assert (state, digest, when) == (b"\0", b"", b"")
    return frozenset(found)


def one_owner(osd: Commands, now: Active) -> None:
    """The target knows the owner of the alias as the store does."""
    assert not {OLD, NEW} <= now
    there = osd.list_objects(FUNCTIONS)
    for each, rival in ((OLD, NEW), (NEW, OLD)):
        if each in there and rival in now:
            with pytest.raises(Conflict):
                osd.activate_function(each)
        elif each in there and each not in now:
            osd.activate_function(each)
            osd.activate_function(each, deactivate=True)
    for each in now:
        osd.activate_function(each)


def test_killed_at_nth_call(
    make_harness: MakeHarness, template: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    stride = 1 if request.config.getoption("--all-faults") else STRIDE
    outcomes = {"before": 0, "after": 0}
    acts = [partial(take, function=function, name=name) for function, name, _ in STEPS]
    for n, done, osd in cut_at_nth_call(make_harness, template, acts, 1 + seed % stride, stride):
        now = active(osd)
        before = STEPS[done - 1][2] if done else frozenset({OLD})
        after = STEPS[done][2] if done < len(STEPS) else before
        assert now in (before, after), f"killed at call {n}, in {STEPS[done][:2]}"
        outcomes["before" if now == before else "after"] += 1
        one_owner(osd, now)
    assert n > 50, "hardly a call was made to fail"
    assert outcomes["before"] > len(STEPS)
