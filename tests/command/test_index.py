# SPDX-License-Identifier: GPL-2.0-or-later
"""Partition page 5000_0001h: which pages the value index covers (docs/attributes.md)."""

from __future__ import annotations

import time

import pytest

from pyosd import requests as rq
from pyosd.attributes import Page
from pyosd.cdb import AttributeLists
from pyosd.commands import Commands, Reply
from pyosd.types import AttributeValue, ObjectRef, ref
from tests.expect import LIST_FIELD, OK, check

INDEX = 0x5000_0001
BUILDING, READY = b"\1", b"\2"
PAGE = Page.APPLICATION
SECONDS = 20.0


def declare(osd: Commands, pid: int, page: int, value: bytes = BUILDING) -> Reply:
    lists = AttributeLists((), (AttributeValue(INDEX, page, value),))
    return osd.reply(rq.set_attributes(ref(pid), attributes=lists))


def state(osd: Commands, pid: int, page: int) -> bytes:
    return osd.get_attribute(ref(pid), INDEX, page)


def wait_until_ready(osd: Commands, pid: int, page: int) -> None:
    """Poll as a client does."""
    until = time.monotonic() + SECONDS
    while state(osd, pid, page) == BUILDING:
        assert time.monotonic() < until, "the index never became ready"
        time.sleep(0.002)
    assert state(osd, pid, page) == READY


def test_nothing_is_declared_at_first(osd: Commands, pid: int) -> None:
    assert state(osd, pid, PAGE) == b""


def test_declare_and_drop(osd: Commands, pid: int, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [AttributeValue(PAGE, 1, b"green")])
    check(declare(osd, pid, PAGE), OK)
    wait_until_ready(osd, pid, PAGE)
    check(declare(osd, pid, PAGE), OK)
    assert state(osd, pid, PAGE) == READY, "declaring again changes nothing"
    check(declare(osd, pid, PAGE, b""), OK)
    assert state(osd, pid, PAGE) == b""


def test_user_names_can_be_indexed(osd: Commands, pid: int) -> None:
    check(declare(osd, pid, Page.USER_INFORMATION), OK)
    wait_until_ready(osd, pid, Page.USER_INFORMATION)


@pytest.mark.parametrize("page", [Page.USER_TIMESTAMPS, 0x80, 0x7FFF, 0x2000_0001, 0x3000_0000])
def test_pages_without_stored_values(osd: Commands, pid: int, page: int) -> None:
    check(declare(osd, pid, page), LIST_FIELD, AttributeValue(INDEX, page, b"").id)


@pytest.mark.parametrize("value", [b"\0", b"\2", b"\3", b"\1\1"])
def test_other_values(osd: Commands, pid: int, value: bytes) -> None:
    check(declare(osd, pid, PAGE, value), LIST_FIELD)


def test_pages_of_two_partitions_differ(osd: Commands, pid: int) -> None:
    other = osd.create_partition()
    check(declare(osd, pid, PAGE), OK)
    assert state(osd, other, PAGE) == b""
    osd.remove_partition(other)


def test_the_page_is_listed(osd: Commands, pid: int) -> None:
    check(declare(osd, pid, PAGE), OK)
    name = osd.get_attribute(ref(pid), Page.PARTITION_DIRECTORY, INDEX)
    assert name[8:].rstrip(b"\0") == b"Attribute Value Index"
    values = osd.get_attributes(ref(pid), [AttributeValue(INDEX, 0xFFFF_FFFF, b"").id])
    assert [each.number for each in values] == [PAGE]
