# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that come, go and move while other clients follow them: what the CDB addresses stays."""

from __future__ import annotations

import os
import random
from contextlib import suppress

import pytest

from pyosd import errors
from pyosd.types import ROOT, PartitionId, ref
from tests.jobs.conftest import Target
from tests.jobs.meeting import Meeting, Questions, Shelf

COMMANDS = 20_000 if os.environ.get("IOSD_LONG") else 300
"""Of each reader."""
GUEST = PartitionId(0x7_0000)

DOCUMENTED = {
    (0x26, 0x00): "there is no object with the id that LINK names",
    (0x2C, 0x0A): "the directory has names",
    (0x80, 0x30): "there is no such name",
    (0x80, 0x31): "the directory has the name",
    (0x80, 0x32): "a name of the path is no directory",
    (0x80, 0x33): "the name is a directory's",
    (0x80, 0x34): "a directory would move below itself",
    (0x80, 0x36): "another object got the id of the object, which cannot have the name",
}
"""24/00 is not among them: an object that is removed has no names."""


# ---- what comes and goes


def objects_go(target: Target, shelf: Shelf, number: int) -> None:
    """By their ids, or with their last name."""
    osd, top = target.commands, target.partition
    for name in ("a", "dir/a", "dir/below/a"):
        with suppress(errors.NameExists, errors.NoSuchName):
            made = osd.create_name(top, name).object
            osd.link(top, "b", made, replace=True)
            if number % 2:
                with suppress(errors.NotFound):  # another client took its last name
                    osd.remove(made)
            else:
                osd.unlink(top, name)


def directories_go(target: Target, shelf: Shelf, number: int) -> None:
    osd, top = target.commands, target.partition
    for name in ("dir", "dir/below"):
        with suppress(errors.OSDError):
            osd.make_directory(top, name)
    for name in ("dir/below/a", "dir/a", "dir/b"):
        with suppress(errors.OSDError):
            osd.unlink(top, name)
    for name in ("dir/below", "dir"):
        with suppress(errors.OSDError):
            osd.remove_directory(top, name)


def names_move(target: Target, shelf: Shelf, number: int) -> None:
    osd, top = target.commands, target.partition
    pairs = [("a", "dir/a"), ("b", "dir/b"), ("dir", "other"), ("other", "dir")]
    for path, new_path in pairs:
        with suppress(errors.OSDError):
            osd.rename(top, path, new_path, replace=number % 2 == 0)


def partitions_go(target: Target, shelf: Shelf, number: int) -> None:
    """That have a name; ids come again."""
    osd = target.commands
    osd.create_partition(GUEST)
    try:
        osd.link(ROOT, "guest", ref(GUEST))
        osd.create_name(ref(GUEST), "a")
    finally:
        osd.remove_partition(GUEST, contents=True)


MAKERS = (objects_go, directories_go, names_move, partitions_go)


# ---- what meets it


def questions(target: Target, shelf: Shelf, rng: random.Random) -> Questions:
    osd, top = target.commands, target.partition
    path = rng.choice(["a", "b", "dir", "dir/a", "dir/below", "dir/below/a", "other/a"])
    other = rng.choice(["a", "b", "dir/a", "dir/b", "dir/below/c"])
    return {
        "lookup": lambda: osd.lookup(top, path),
        "lookup from the root": lambda: osd.lookup(ROOT, rng.choice(["guest/a", "guest"])),
        "list": lambda: osd.list_names(top, details=True),
        "list a directory": lambda: osd.list_names(
            top, rng.choice(["dir", "dir/below"]), details=True
        ),
        "list the root": lambda: osd.list_names(ROOT, details=True),
        "list below the root": lambda: osd.list_names(ROOT, "guest", details=True),
        "create or open": lambda: osd.create_name(top, path, exclusive=False),
        "unlink": lambda: osd.unlink(top, path),
        "link by path": lambda: osd.link(top, other, path, replace=True),
        "rename": lambda: osd.rename(top, path, other, replace=rng.random() < 0.5),
        "exchange": lambda: osd.rename(top, path, other, exchange=True),
    }


@pytest.mark.sandbox
def test_names_that_go_meanwhile_are_there_or_are_not(target: Target, seed: int) -> None:
    meeting = Meeting(target, MAKERS, questions, DOCUMENTED)
    meeting.take_place(seed, COMMANDS)
    asked = questions(target, meeting.shelf, random.Random(seed)).keys()
    assert meeting.answered.keys() | meeting.refused.keys() == asked
