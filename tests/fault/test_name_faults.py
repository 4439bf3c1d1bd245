# SPDX-License-Identifier: GPL-2.0-or-later
"""The target is killed in its n-th call of the store while each verb of CHANGE NAMES is at work: the tree
is as before the command or as after it, and names, members and objects agree.

A run of the gate tries a part of the n, which the seed chooses; --all-faults tries all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd.commands import Commands
from pyosd.types import ObjectRef, PartitionId, ref
from tests.conftest import MakeHarness
from tests.fault.killed import cut_at_nth_call

PARTITION = PartitionId(0x1_0000)
ROOT = ref(PARTITION)
STRIDE = 23

FILES = (b"first " * 500, b"second " * 300)
Tree = dict[str, str]
"""Paths, and the first name of what each names."""

Act = Callable[[Commands], object]
STEPS: list[tuple[str, Act, Tree]] = [
    (
        "create",
        lambda osd: osd.create_name(ROOT, "d/a"),
        {"d": "d", "e": "e", "f": "f", "d/a": "a"},
    ),
    (
        "put",
        lambda osd: osd.put_name(ROOT, "d/p", FILES[0]),
        {"d": "d", "e": "e", "f": "f", "d/a": "a", "d/p": "p"},
    ),
    (
        "put in place of another",
        lambda osd: osd.put_name(ROOT, "d/p", FILES[1], replace=True),
        {"d": "d", "e": "e", "f": "f", "d/a": "a", "d/p": "q"},
    ),
    (
        "unlink what was put",
        lambda osd: osd.unlink(ROOT, "d/p"),
        {"d": "d", "e": "e", "f": "f", "d/a": "a"},
    ),
    (
        "mkdir",
        lambda osd: osd.make_directory(ROOT, "d/g"),
        {"d": "d", "e": "e", "f": "f", "d/a": "a", "d/g": "g"},
    ),
    (
        "link",
        lambda osd: osd.link(ROOT, "e/b", "d/a"),
        {"d": "d", "e": "e", "f": "f", "d/a": "a", "d/g": "g", "e/b": "a"},
    ),
    (
        "rename",
        lambda osd: osd.rename(ROOT, "d/a", "d/g/c"),
        {"d": "d", "e": "e", "f": "f", "d/g": "g", "d/g/c": "a", "e/b": "a"},
    ),
    (
        "exchange",
        lambda osd: osd.rename(ROOT, "d/g", "f", exchange=True),
        {"d": "d", "e": "e", "f": "g", "f/c": "a", "d/g": "f", "e/b": "a"},
    ),
    (
        "rename a directory",
        lambda osd: osd.rename(ROOT, "f", "e/h"),
        {"d": "d", "e": "e", "e/h": "g", "e/h/c": "a", "d/g": "f", "e/b": "a"},
    ),
    (
        "replace",
        lambda osd: osd.rename(ROOT, "d/g", "e/b", replace=True),
        {"d": "d", "e": "e", "e/h": "g", "e/h/c": "a", "e/b": "f"},
    ),
    (
        "link in place of another",
        lambda osd: osd.link(ROOT, "e/b", "e/h/c", replace=True),
        {"d": "d", "e": "e", "e/h": "g", "e/h/c": "a", "e/b": "a"},
    ),
    (
        "unlink",
        lambda osd: osd.unlink(ROOT, "e/b"),
        {"d": "d", "e": "e", "e/h": "g", "e/h/c": "a"},
    ),
    (
        "unlink the last name",
        lambda osd: osd.unlink(ROOT, "e/h/c"),
        {"d": "d", "e": "e", "e/h": "g"},
    ),
    (
        "rmdir",
        lambda osd: osd.remove_directory(ROOT, "e/h"),
        {"d": "d", "e": "e"},
    ),
]
"""Commands, and the tree after each."""
BEFORE: Tree = {"d": "d", "e": "e", "f": "f"}


@pytest.fixture
def template(make_harness: MakeHarness, tmp_path: Path) -> Path:
    """A store with two directories and an object."""
    harness = make_harness(dir=tmp_path / "template")
    harness.osd.create_partition(PARTITION)
    for name in ("d", "e"):
        harness.osd.make_directory(ROOT, name)
    harness.osd.create_name(ROOT, "f")
    harness.finish()
    return tmp_path / "template"


def walk(osd: Commands, directory: ObjectRef, above: str = "") -> dict[str, ObjectRef]:
    found = {}
    for each in osd.list_names(directory).entries:
        path = above + each.name.decode()
        found[path] = each.object
        assert osd.lookup(ROOT, path).object == each.object
        if each.is_directory:
            found |= walk(osd, each.object, path + "/")
    return found


def same_tree(found: dict[str, ObjectRef], wanted: Tree) -> bool:
    """Equal paths, and two of them name one object where they should."""
    if found.keys() != wanted.keys():
        return False
    return all(
        (found[a] == found[b]) == (wanted[a] == wanted[b])
        for a, b in itertools.combinations(found, 2)
    )


def agree(osd: Commands, found: dict[str, ObjectRef]) -> None:
    """Each object has as many names as the tree gives it, is a member where it has a name, and no
    object is without a name."""
    directories = {each.object_id for each in osd.list_collections(PARTITION)}
    objects = {each.object_id for each in osd.list_objects(PARTITION)}
    assert {each.object_id for each in found.values()} == directories | objects
    if "d/p" in found:
        assert bytes(osd.read_range(found["d/p"])) in FILES
    for path, each in found.items():
        assert osd.lookup(ROOT, path).names == list(found.values()).count(each)
        if each.object_id in directories:
            inside = {
                member.object_id
                for below, member in found.items()
                if below.rpartition("/")[0] == path and member.object_id in objects
            }
            assert {m.object_id for m in osd.list_members(each)} == inside


def test_killed_at_nth_call(
    make_harness: MakeHarness, template: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    stride = 1 if request.config.getoption("--all-faults") else STRIDE
    outcomes = {"before": 0, "after": 0}
    acts = [act for _, act, _ in STEPS]
    for n, done, osd in cut_at_nth_call(make_harness, template, acts, 1 + seed % stride, stride):
        found = walk(osd, ROOT)
        before = STEPS[done - 1][2] if done else BEFORE
        after = STEPS[done][2] if done < len(STEPS) else before
        step = STEPS[min(done, len(STEPS) - 1)][0]
        assert same_tree(found, before) or same_tree(found, after), f"killed at call {n}, in {step}"
        outcomes["before" if same_tree(found, before) else "after"] += 1
        agree(osd, found)
    assert n > 100, "hardly a call was made to fail"
    assert outcomes["before"] > len(STEPS) // 2, "the phase of the stride decides how many"
