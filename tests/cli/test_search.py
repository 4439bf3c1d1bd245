# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd obj find`, `osd obj index`, `osd obj copy`, `osd obj map`, `osd col` and `osd part check`."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest

from pyosd import Criterion
from pyosd.cli.objects.criteria import CRITERION, condition_of, parse
from pyosd.commands import collections
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.osd._query import Query
from pyosd.types import AttributeValue, ObjectRef
from tests.cli.conftest import Run
from tests.client.fake_target import FakeTarget, Peer
from tests.serving import Serving


def be(number: int) -> bytes:
    return number.to_bytes(8, "big")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0x10000/1 >= 5", be(5), b""),
        ("0x10000/1<=0x10", b"", be(16)),
        ("0x10000/1 = red", b"red", b"red"),
        ('65536/0x1 == "42"', b"42", b"42"),
        ("0x10000/1 == 'a >= b'", b"a >= b", b"a >= b"),
        ("0x10000/1 >= hex:00ff", b"\x00\xff", b""),
        ("3 <= 0x10000/1 <= 9", be(3), be(9)),
        ("9 > 0x10000/1", b"", be(8)),
        ("0x10000/1 < 9", b"", be(8)),
        ("0x10000/1 > é", "é".encode() + b"\0", b""),
        ("0x10000/1", b"", b""),
        ("5 == 0x10000/1", be(5), be(5)),
    ],
)
def test_criteria(text: str, low: bytes, high: bytes) -> None:
    assert parse(text).queries() == [Query((Criterion(0x10000, 1, low, high),))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no PAGE/NUMBER"),
        ("5 >= 4", "no PAGE/NUMBER"),
        ("x/1 == 4", "no PAGE/NUMBER"),
        ("0x30000000/1 == 4", "no attribute of user objects"),
        ("10/1 >=", "is not PAGE/NUMBER OP VALUE"),
        ("10/1 => 4", "is not PAGE/NUMBER OP VALUE"),
        ("10/1 4", "is not PAGE/NUMBER OP VALUE"),
        ("10/1 4 5", "where an operator"),
        ("10/1 == ==", "where a value"),
        ("10/1 >= 12x", "unsigned number"),
        ("10/1 != red", "cannot look for what is not"),
        ("10/1 < red", "use <="),
        ('10/1 == ""', "empty value"),
        ("10/1 >= hex:0g", "hex"),
        ('10/1 == "a', "cannot read"),
    ],
)
def test_criteria_that_are_none(text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        CRITERION.convert(text, None, None)


def test_criteria_together() -> None:
    red, old = parse("10/2 == red"), parse("10/1 >= 5")
    both, either = condition_of((red, old), False), condition_of((red, old), True)
    assert both is not None and both.queries()[0].match_all
    assert either is not None and not either.queries()[0].match_all
    assert condition_of((), True) is None


@pytest.fixture
def herd(osd: Run, pid: str) -> list[str]:
    """Ten objects with a number and a word each."""
    made = osd("obj", "create", pid, "-n", 10).stdout.split()
    for n, each in enumerate(made):
        osd("obj", "attr", "set", each, "0x10000/1", n, "--int")
        osd("obj", "attr", "set", each, "0x10000/2", "odd" if n % 2 else "even")
    return made


@pytest.mark.tgtd
def test_find(osd: Run, pid: str, herd: list[str]) -> None:
    def found(*words: object) -> list[str]:
        return osd("obj", "find", *words, "-o", "id").stdout.split()

    assert found(pid) == herd
    assert found(pid, "0x10000/1 >= 7") == herd[7:]
    assert found(pid, "2 <= 0x10000/1 <= 5", "0x10000/2 = even") == [herd[2], herd[4]]
    assert found(pid, "0x10000/1 == 1", "0x10000/1 == 4", "--any") == [herd[1], herd[4]]
    assert found(pid, "0x10000/1 != 4", "--all") == herd[:4] + herd[5:]
    assert found(pid, "0x10000/1", "--limit", 3) == herd[:3]
    assert found(pid, "0x10000/1 > 100") == []
    whole = json.loads(osd("obj", "find", pid, "0x10000/1 = 3", "-o", "json").stdout)
    assert whole["schema"] == "iosd.objects/1" and whole["objects"][0]["id"] == herd[3]
    assert herd[3] in osd("obj", "find", pid, "0x10000/1 = 3").stdout
    osd("obj", "find", pid, "0x10000/2 < odd", code=2)
    osd("obj", "find", pid, "0x10000/1", "--any", "--all", code=2)
    osd("obj", "find", "root", "0x10000/1", code=2)
    osd("obj", "find", "0x7777777", "0x10000/1", code=66)


@pytest.mark.tgtd
def test_index(osd: Run, pid: str, herd: list[str]) -> None:
    assert osd("obj", "index", pid, "-o", "id").stdout == ""
    osd("obj", "index", pid, "--add", "0x10000", "--add", "0x10001")
    shown = json.loads(osd("obj", "index", pid, "-o", "json").stdout)
    assert [row["page"] for row in shown["pages"]] == [0x10000, 0x10001]
    assert {row["state"] for row in shown["pages"]} <= {"building", "ready"}
    assert osd("obj", "find", pid, "0x10000/1 >= 7", "-o", "id").stdout.split() == herd[7:]
    assert "0x10001" not in osd("obj", "index", pid, "--drop", "0x10001").stdout
    osd("obj", "index", herd[0], code=2)
    osd("obj", "index", pid, "--add", "0x100000000", code=2)
    osd("obj", "index", pid, "--add", "0x30000000", code=1)


@pytest.mark.tgtd
def test_copy(osd: Run, pid: str, obj: ObjectRef) -> None:
    osd("obj", "attr", "set", obj, "0x10000/1", "kept")
    made = osd("obj", "copy", obj, pid).stdout.strip()
    assert osd("obj", "read", made).stdout == "the quick brown fox\n"
    assert osd("obj", "attr", "get", made, "0x10000/1", "--raw").stdout == "kept"
    wanted = f"{pid}/0x50000"
    copied = osd("obj", "copy", obj, wanted, "--no-attributes", "--method", "bytes")
    assert copied.stdout.strip() == wanted
    osd("obj", "attr", "get", wanted, "0x10000/1", code=66)
    osd("obj", "copy", obj, wanted, code=1)
    osd("obj", "copy", f"{pid}/0x7777777", pid, code=66)
    osd("obj", "copy", pid, pid, code=2)
    osd("obj", "copy", obj, "root", code=2)


@pytest.mark.tgtd
def test_map(osd: Run, obj: ObjectRef) -> None:
    osd("obj", "write", obj, "--offset", "1MiB", data=b"x" * 4096)
    shown = json.loads(osd("obj", "map", obj, "-o", "json").stdout)["extents"]
    assert [each["type"] for each in shown] == ["data", "hole", "data"]
    assert shown[0]["offset"] == 0 and shown[-1]["offset"] + shown[-1]["length"] == (1 << 20) + 4096
    holes = json.loads(osd("obj", "map", obj, "--type", "hole", "-o", "json").stdout)["extents"]
    assert holes == shown[1:2]
    assert "hole" in osd("obj", "map", obj, "-o", "wide").stdout
    osd("obj", "map", obj, "--offset", "1GiB", code=1)


@pytest.mark.tgtd
def test_part_check(osd: Run, pid: str, herd: list[str]) -> None:
    shown = json.loads(osd("part", "check", pid, "root", "-o", "json").stdout)
    assert [(row["id"], row["damaged"]) for row in shown["checked"]] == [(pid, 0), ("root", 0)]
    table = osd("part", "check", pid).stdout.splitlines()
    assert table[0].split() == ["PARTITION", "DAMAGED", "OBJECTS"]
    assert table[1].split() == [pid, "0"]
    osd("part", "check", "0x7777777", code=66)
    osd("part", "check", herd[0], code=2)


def test_part_check_finds_damage(osd: Run) -> None:
    three = bytes.fromhex("72 04 44 00 00 00 00 0c 01 0a 80 00 0000000000000003")

    def damaged(peer: Peer) -> None:
        while (pdu := peer.receive()).opcode == 0x01:
            peer.status(pdu.tag, 2, three)
        peer.send(peer.header(0x26, 0x80, pdu.tag))

    with FakeTarget(damaged) as fake:
        done = osd("part", "check", "0x10000", "--target", fake.url, code=1)
    assert done.stdout.split()[-2:] == ["0x10000", "3"]


@pytest.mark.tgtd
def test_collections(osd: Run, pid: str, herd: list[str]) -> None:
    group = osd("col", "create", pid).stdout.strip()
    osd("col", "add", group, *herd[:2], herd[2].partition("/")[2])
    osd("col", "add", group, herd[0])
    assert osd("col", "members", group, "-o", "id").stdout.split() == herd[:3]
    osd("col", "drop", group, herd[1])
    osd("col", "drop", group, herd[1], code=66)
    assert osd("obj", "find", group, "0x10000/1 >= 1", "-o", "id").stdout.split() == [herd[2]]
    record = json.loads(osd("col", "stat", group, "-o", "json").stdout)
    assert (record["schema"], record["type"], record["members"]) == (
        "iosd.collection/1",
        "linked",
        2,
    )
    assert group in osd("col", "ls", pid, "-o", "id").stdout.split()
    osd("col", "set", group, "0x10000/3", "same")
    rows = json.loads(osd("col", "get", group, "0x10000/3", "-o", "json").stdout)["attributes"]
    assert [(row["object"], row["text"]) for row in rows] == [
        (herd[0], "same"),
        (herd[2], "same"),
    ]
    osd("col", "rm", group, code=1)
    osd("col", "rm", group, "--force")
    osd("col", "stat", group, code=66)
    assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 10
    osd("col", "add", pid, herd[0], code=2)
    osd("col", "add", f"{pid}/0x7777777", "0x1/0x2", code=2)


@pytest.mark.tgtd
def test_tracking_collections(osd: Run, pid: str, herd: list[str]) -> None:
    matches = osd("col", "create", pid, "--tracking").stdout.strip()
    osd("col", "query", matches, pid, "0x10000/1 >= 6")
    assert osd("col", "members", matches, "-o", "id").stdout.split() == herd[6:]
    record = json.loads(osd("col", "stat", matches, "-o", "json").stdout)
    assert (record["type"], record["members"], record["active"], record["ended"]) == (
        "tracking",
        4,
        "",
        "well",
    )
    assert "tracking" in osd("col", "stat", matches).stdout
    second = osd("col", "create", pid, "--tracking", "--from", matches).stdout.strip()
    assert osd("col", "members", second, "-o", "id").stdout.split() == herd[6:]
    either = ("(10/1)",)
    osd("col", "query", matches, pid, *either, code=2)
    osd("col", "query", matches, pid, "0x10000/1 < 0", code=2)
    linked = osd("col", "create", pid).stdout.strip()
    assert (
        "'osd col create --tracking'" in osd("col", "query", linked, pid, "1/9 = x", code=1).stderr
    )
    osd("col", "rm", second, "--objects", "--yes")
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == herd[:6]
    osd("col", "create", pid, "--from", matches, code=2)


def test_two_that_join_at_once_are_both_members(
    serving: Serving, obj: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes in between the first's look at the memberships and its own."""
    with serving.connect() as target:
        groups = [target.create_collection(obj.partition_id) for _ in range(2)]

        def slowly(*wanted: Any) -> Dialogue[tuple[AttributeValue, ...]]:
            found = yield from get_attributes(*wanted)
            monkeypatch.undo()
            target.add_member(groups[1], obj)
            return found

        monkeypatch.setattr(collections, "get_attributes", slowly)
        target.add_member(groups[0], obj)
        assert [target.list_members(group) for group in groups] == [[obj], [obj]]
        assert target.remove_member(groups[0], obj) and not target.remove_member(groups[0], obj)
        assert [target.list_members(group) for group in groups] == [[], [obj]]
