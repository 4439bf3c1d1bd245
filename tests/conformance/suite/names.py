# SPDX-License-Identifier: GPL-2.0-or-later
"""A vendor extension: names (docs/names.md)."""

from __future__ import annotations

import struct

from tests.conformance import sense as s
from tests.conformance.cells import cell
from tests.conformance.lu import GOOD, Answer, LogicalUnit
from tests.conformance.suite.instances import CHANGE_NAMES, READ_NAMES, naming
from tests.conformance.wire import CURRENT_COMMAND

LOOKUP, LIST, CREATE, MKDIR, LINK, UNLINK, RMDIR, RENAME = 1, 2, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16
REPLACE, EXCHANGE = 0x02, 0x04
USER_OBJECT, DIRECTORY = 0x80, 0x40
NO_NAME, EXISTS, NOT_DIRECTORY, IS_DIRECTORY = 0x8030, 0x8031, 0x8032, 0x8033
PUT, CHECKSUM = 0x17, 0x10
LOOP, CHANGED, TARGET = 0x8034, 0x8035, 0x8036
COMMON = 0x1_0000
PARTITION_STACK, SOURCE, CONTRACT = 0x5000_0020, 17, 0x802C


def entry(answer: Answer) -> tuple[int, int, int, int, int]:
    """Object id, type, outcome, number of names, partition id."""
    found: tuple[int, int, int, int, int] = struct.unpack(">QBB2xIQ", answer.data[:24])
    return found


def listed(answer: Answer) -> list[bytes]:
    (count,), at, found = struct.unpack(">I", answer.data[:4]), 8, []
    for _ in range(count):
        (length,) = struct.unpack(">H", answer.data[at + 14 : at + 16])
        found.append(answer.data[at + 56 : at + 56 + length])
        at += 56 + length + -length % 8
    return found


def refused_in_data(
    t: LogicalUnit,
    verb: int,
    path: bytes,
    at: int,
    *,
    flags: int = 0,
    expected: int = 0,
    action: int = 0,
) -> None:
    request = naming(t, verb, path, flags=flags, expected=expected, action=action)
    answer = t.refused(request, s.INVALID_FIELD_IN_LIST)
    found = answer.sense
    t.check(found is not None and found.data_pointer == at, answer, f"Data-Out byte {at}")


@cell("CHANGE NAMES", "ok", "docs/names.md Commands")
def each_verb_changes_the_tree(t: LogicalUnit) -> None:
    made = entry(t.good(naming(t, CREATE, b"a")))
    t.same(made[1:], (USER_OBJECT, 1, 1, t.pid), "type, outcome, names and partition of CREATE")
    t.same(entry(t.good(naming(t, MKDIR, b"d")))[1:3], (DIRECTORY, 1), "type and outcome of MKDIR")
    t.same(entry(t.good(naming(t, LINK, b"d/b", b"a")))[3], 2, "names after LINK")
    t.good(naming(t, RENAME, b"a", b"d/c"))
    t.same(listed(t.good(naming(t, LIST, b"d"))), [b"b", b"c"], "names in the directory")
    t.same(entry(t.good(naming(t, UNLINK, b"d/b")))[2], 0, "outcome while there is a name")
    t.same(entry(t.good(naming(t, UNLINK, b"d/c")))[2], 2, "outcome of the last UNLINK")
    t.check(not t.exists(made[0]), None, "the object is gone with its last name")
    t.good(naming(t, RMDIR, b"d"))


@cell("CHANGE NAMES", "ok", "docs/names.md RENAME: REPLACE, EXCHANGE")
def renames_onto_names(t: LogicalUnit) -> None:
    first, second = (entry(t.good(naming(t, CREATE, name)))[0] for name in (b"one", b"two"))
    t.good(naming(t, RENAME, b"one", b"two", flags=EXCHANGE))
    t.same(entry(t.good(naming(t, LOOKUP, b"one")))[0], second, "the object of the first name")
    t.good(naming(t, RENAME, b"one", b"two", flags=REPLACE))
    t.same(entry(t.good(naming(t, LOOKUP, b"two")))[0], second, "the object of the second name")
    t.check(not t.exists(first), None, "what was replaced is gone")
    t.good(naming(t, UNLINK, b"two"))


@cell("CHANGE NAMES", "ok", "docs/names.md PUT")
def stores_a_file(t: LogicalUnit) -> None:
    made = entry(t.good(naming(t, PUT, b"put", data=b"hello")))
    t.same(made[1:], (USER_OBJECT, 1, 1, t.pid), "type, outcome, names and partition of PUT")
    found = t.good(naming(t, LOOKUP, b"put", most=4, room=52)).data
    t.same(found[9], 4, "outcome of a LOOKUP with data")
    t.same(
        (found[24:32], found[44:48], found[48:]), (b"\0" * 7 + b"\5", b"\0\0\0\4", b"hell"), "data"
    )
    t.refused(naming(t, PUT, b"put", data=b"x"), EXISTS)
    t.refused(naming(t, PUT, b"x", data=b"x", flags=CHECKSUM), s.INVALID_FIELD_IN_LIST)
    again = entry(t.good(naming(t, PUT, b"put", data=b"new", flags=REPLACE)))
    t.same(again[2], 3, "outcome: made, and an object removed")
    t.check(not t.exists(made[0]), None, "what was replaced is gone")
    t.good(naming(t, UNLINK, b"put"))


@cell("CHANGE NAMES", "own fields", "docs/names.md Failures")
def what_names_refuse(t: LogicalUnit) -> None:
    obj = entry(t.good(naming(t, CREATE, b"f")))[0]
    t.good(naming(t, MKDIR, b"dir"))
    for verb, path, other, code in (
        (UNLINK, b"none", b"", NO_NAME),
        (CREATE, b"f", b"", EXISTS),
        (RENAME, b"f", b"dir", EXISTS),
        (CREATE, b"f/x", b"", NOT_DIRECTORY),
        (RMDIR, b"f", b"", NOT_DIRECTORY),
        (UNLINK, b"dir", b"", IS_DIRECTORY),
        (RENAME, b"dir", b"dir/x", LOOP),
        (LINK, b"again", b"dir", TARGET),
    ):
        t.refused(naming(t, verb, path, other), code)
    t.refused(naming(t, UNLINK, b"f", expected=obj + 1), CHANGED, key=s.MISCOMPARE)
    for verb, path in ((UNLINK, b"f"), (RMDIR, b"dir")):
        t.good(naming(t, verb, path))


@cell("CHANGE NAMES", "own fields", "docs/names.md Parameters in Data-Out")
def bytes_that_no_verb_has(t: LogicalUnit) -> None:
    t.good(naming(t, MKDIR, b"dir"))
    for path in (b"", b"/x", b"x/", b"dir//y", b".", b"..", b"dir/..", b"x\0", b"x" * 256):
        refused_in_data(t, CREATE, path, 32)
    t.good(naming(t, RMDIR, b"dir"))
    refused_in_data(t, LOOKUP, b"x", 0, action=CHANGE_NAMES)
    refused_in_data(t, 0x18, b"x", 0)
    refused_in_data(t, PUT, b"x", 1, flags=EXCHANGE)
    refused_in_data(t, CREATE, b"x", 1, flags=REPLACE)
    refused_in_data(t, RENAME, b"x", 1, flags=REPLACE | EXCHANGE)
    refused_in_data(t, CREATE, b"x", 24, expected=1)


@cell("CHANGE NAMES", "not empty", "docs/names.md Failures")
def directory_with_entries(t: LogicalUnit) -> None:
    t.good(naming(t, MKDIR, b"full"))
    t.good(naming(t, CREATE, b"full/f"))
    t.refused(naming(t, RMDIR, b"full"), s.NOT_EMPTY)
    t.good(naming(t, UNLINK, b"full/f"))
    t.good(naming(t, RMDIR, b"full"))


@cell("CHANGE NAMES", "concurrency", "docs/names.md Objects and directories")
def one_of_many_makes_the_name(t: LogicalUnit) -> None:
    answers = t.together([naming(t, CREATE, b"race")] * 8)
    won = [each for each in answers if each.status == GOOD]
    t.same(len(won), 1, "commands that have made the name")
    for each in answers:
        if each is not won[0]:
            t.is_refused(each, EXISTS)
    t.good(naming(t, UNLINK, b"race"))


@cell("CHANGE NAMES", "all or nothing", "docs/names.md Commands")
def refused_attribute_leaves_no_name(t: LogicalUnit) -> None:
    before = listed(t.good(naming(t, LIST, b"")))
    t.refused(
        naming(t, CREATE, b"half").but(sets=((COMMON, 1, b"x"), (0x1, 0x82, b"x"))),
        s.INVALID_FIELD_IN_LIST,
    )
    t.same(listed(t.good(naming(t, LIST, b""))), before, "names after a refused CREATE")


@cell("CHANGE NAMES", "list format", "docs/names.md Commands")
def attributes_of_what_is_made(t: LogicalUnit) -> None:
    request = naming(t, CREATE, b"with").but(sets=((COMMON, 1, b"x"),), gets=((COMMON, 1), (1, 9)))
    t.same(t.good(request).values, [b"x", b"with"], "its attribute and its username")
    t.good(naming(t, UNLINK, b"with"))


@cell("READ NAMES", "ok", "docs/names.md Commands")
def finds_and_lists(t: LogicalUnit) -> None:
    t.good(naming(t, MKDIR, b"dir"))
    made = [entry(t.good(naming(t, CREATE, b"dir/" + name)))[0] for name in (b"b", b"a", b"ab")]
    t.same(entry(t.good(naming(t, LOOKUP, b"dir/a")))[0], made[1], "the object of a path")
    t.same(listed(t.good(naming(t, LIST, b"dir"))), [b"a", b"ab", b"b"], "names, in order")
    t.same(listed(t.good(naming(t, LIST, b"dir", b"a"))), [b"ab", b"b"], "names after one")
    t.same(listed(t.good(naming(t, LIST, b"dir", prefix=b"a"))), [b"a", b"ab"], "with a prefix")
    for name in (b"a", b"ab", b"b"):
        t.good(naming(t, UNLINK, b"dir/" + name))
    t.good(naming(t, RMDIR, b"dir"))


@cell("READ NAMES", "own fields", "docs/names.md Failures")
def paths_that_lead_nowhere(t: LogicalUnit) -> None:
    t.good(naming(t, CREATE, b"f"))
    t.refused(naming(t, LOOKUP, b"none"), NO_NAME)
    t.refused(naming(t, LOOKUP, b"f/x"), NOT_DIRECTORY)
    t.refused(naming(t, LIST, b"f"), NOT_DIRECTORY)
    refused_in_data(t, LOOKUP, b"f/", 32)
    refused_in_data(t, CREATE, b"x", 0, action=READ_NAMES)
    refused_in_data(t, LOOKUP, b"f", 1, flags=1)
    t.good(naming(t, UNLINK, b"f"))


@cell("READ NAMES", "truncated", "docs/names.md Answer of LIST")
def list_in_little_room(t: LogicalUnit) -> None:
    t.good(naming(t, MKDIR, b"dir"))
    for name in (b"a", b"b", b"c"):
        t.good(naming(t, CREATE, b"dir/" + name))
    answer = t.good(naming(t, LIST, b"dir", room=8 + 2 * 64 + 63))
    t.same((listed(answer), answer.data[4]), ([b"a", b"b"], 1), "whole entries, and more to come")
    t.bad_field(naming(t, LIST, b"dir", room=8), 40)
    for name in (b"a", b"b", b"c"):
        t.good(naming(t, UNLINK, b"dir/" + name))
    t.good(naming(t, RMDIR, b"dir"))


@cell("READ NAMES", "current command", "docs/names.md Commands")
def ids_of_what_was_found(t: LogicalUnit) -> None:
    made = entry(t.good(naming(t, CREATE, b"f")))[0]
    wanted = [each.to_bytes(8, "big") for each in (t.pid, made)]
    answer = t.good(naming(t, LOOKUP, b"f").but(gets=((CURRENT_COMMAND, 3), (CURRENT_COMMAND, 4))))
    t.same(answer.values, wanted, "ids on the Current Command page")
    t.good(naming(t, UNLINK, b"f"))


def view(t: LogicalUnit, flags: bytes = b"") -> int:
    """A partition that shows the suite's one."""
    t.need("READ NAMES")
    pid = t.partition()
    t.set(0, PARTITION_STACK, SOURCE, struct.pack(">Q", t.pid) + flags, pid)
    return pid


@cell("READ NAMES", "ok", "docs/views.md Names in a view")
def names_of_the_base(t: LogicalUnit) -> None:
    pid = view(t)
    directory = entry(t.good(naming(t, MKDIR, b"dir")))[0]
    made = entry(t.good(naming(t, CREATE, b"dir/a")))[0]
    found = entry(t.good(naming(t, LOOKUP, b"dir/a").but(pid=pid)))
    t.same((found[0], found[4]), (made, pid), "object and partition of a path in the view")
    for request in (naming(t, LIST, b"dir"), naming(t, LIST, b"").but(oid=directory)):
        t.same(listed(t.good(request.but(pid=pid))), [b"a"], "names in the view's directory")
    t.good(naming(t, UNLINK, b"dir/a"))
    t.good(naming(t, RMDIR, b"dir"))
    left = listed(t.good(naming(t, LIST, b"")))
    t.same(listed(t.good(naming(t, LIST, b"").but(pid=pid))), left, "names left in the view")


@cell("CHANGE NAMES", "own fields", "docs/views.md Names in a view")
def names_of_a_view(t: LogicalUnit) -> None:
    seen, used = view(t), view(t, b"\1")
    t.refused(naming(t, CREATE, b"a").but(pid=seen), CONTRACT)
    made = entry(t.good(naming(t, CREATE, b"a").but(pid=used)))
    t.same((made[1], made[4]), (USER_OBJECT, used), "type and partition of CREATE in the view")
    t.same(entry(t.good(naming(t, LOOKUP, b"a")))[0], made[0], "the same object of the base")
    t.refused(naming(t, RENAME, b"a", b"b").but(pid=seen), CONTRACT)
    t.good(naming(t, RENAME, b"a", b"b").but(pid=used))
    t.same(entry(t.good(naming(t, UNLINK, b"b").but(pid=used)))[2], 2, "outcome of the last UNLINK")
    t.check(not t.exists(made[0]), None, "the object of the base is gone")
