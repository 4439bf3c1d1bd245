# SPDX-License-Identifier: GPL-2.0-or-later
"""The client requests the permissions that the target's table requires."""

from __future__ import annotations

import subprocess

import pytest

from pyosd import requests as rq
from pyosd.security.permissions import COMMANDS, needs_of, other_type
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectType, ref
from pyosd.wire.attributes import ALL, CURRENT_OBJECT_ID, LOGICAL_LENGTH, Page
from pyosd.wire.capability import Need, Permission
from pyosd.wire.cdb import AttributeLists, AttributePage, Request, ServiceAction, SetOne
from pyosd.wire.exec_params import ExecParams
from tests.harness import program

ROOT_TYPE, PARTITION, COLLECTION, USER = (
    ObjectType.ROOT,
    ObjectType.PARTITION,
    ObjectType.COLLECTION,
    ObjectType.USER_OBJECT,
)
P = Permission
PID = 0x10000
OBJ, COL = ref(PID, 0x10001), ref(PID, 0x10002)
COLOUR = AttributeValue(0x10000, 1, b"green")
TAG = AttributeValue(Page.USER_SECURITY, 0x4000_0001, bytes(4))


def test_rows_are_the_targets() -> None:
    words = subprocess.run(
        [program(), "--list-commands"], capture_output=True, text=True, check=True
    ).stdout
    table = {}
    for line in words.splitlines():
        code, _, supported, types, permissions = line.split("\t")
        if supported == "yes":
            kinds = tuple(ObjectType[each.replace(" ", "_").upper()] for each in types.split(", "))
            wanted = Permission(0)
            for each in permissions.split(" + "):
                wanted |= Permission[each.replace("/", "_")]
            table[ServiceAction(int(code, 16))] = (kinds, wanted)
    assert {action: COMMANDS[action] for action in table} == table
    unknown = {ServiceAction.SET_KEY, ServiceAction.SET_MASTER_KEY}
    assert COMMANDS.keys() - table.keys() <= unknown


CASES = [
    (rq.read(OBJ, 0, 1), [Need(OBJ, USER, P.READ)]),
    (rq.create(PID), [Need(ref(PID), USER, P.CREATE)]),
    (rq.list_objects(), [Need(ROOT, ROOT_TYPE, P.READ)]),
    (rq.list_objects(PID), [Need(ref(PID), PARTITION, P.READ)]),
    (rq.list_objects(PID, with_attributes=True), [Need(ref(PID), PARTITION, P.READ | P.M_OBJECT)]),
    (rq.list_collection(COL), [Need(COL, COLLECTION, P.READ)]),
    (rq.list_collection(ref(PID)), [Need(ref(PID), PARTITION, P.READ)]),
    (rq.create_partition(PID), [Need(ref(PID), PARTITION, P.CREATE)]),
    (rq.remove_partition(PID), [Need(ref(PID), PARTITION, P.REMOVE)]),
    (rq.remove_partition(PID, True), [Need(ref(PID), PARTITION, P.REMOVE | P.GBL_REM)]),
    (
        rq.query_into(COL, (), 0x10009),
        [Need(COL, COLLECTION, P.QUERY), Need(ref(PID, 0x10009), COLLECTION, P.WRITE)],
    ),
    (
        rq.create_user_tracking_collection(PID, 0, COL.object_id),
        [
            Need(ref(PID), COLLECTION, P.CREATE | P.READ | P.WRITE),
            Need(COL, COLLECTION, P.READ),
        ],
    ),
    (
        rq.copy_user_object(OBJ, PID + 1),
        [
            Need(ref(PID + 1), USER, P.CREATE | P.READ | P.WRITE),
            Need(OBJ, USER, P.READ | P.GET_ATTR),
        ],
    ),
    (
        rq.set_key(2, PID, 0, bytes(7), bytes(20)),
        [Need(ref(PID), PARTITION, P.DEV_MGMT | P.POL_SEC)],
    ),
    (rq.execute(OBJ, b"pass", ExecParams(rights=P.READ)), [Need(OBJ, USER, P.READ | P.FUN_EXE)]),
    (
        rq.execute(ref(PID), b"pass", ExecParams(rights=P.READ, surrogate=ref(PID))),
        [Need(ref(PID), PARTITION, P.READ | P.FUN_EXE | P.CREATE)],
    ),
    (rq.perform_task_management(1, 7, OBJ), [Need(ROOT, ROOT_TYPE, P.DEV_MGMT | P.GLOBAL)]),
]


@pytest.mark.parametrize(("request_", "needs"), CASES, ids=lambda each: type(each).__name__)
def test_needs(request_: Request, needs: list[Need]) -> None:
    assert [*needs_of(request_)] == needs


RUNS = P.SET_ATTR | P.FUN_EXE
JOINS = P.READ | P.WRITE | P.APPEND | P.REMOVE | P.GET_ATTR | P.SET_ATTR
ATTRIBUTES = [
    (AttributeLists((CURRENT_OBJECT_ID, AttributeId(Page.CURRENT_COMMAND, ALL))), P(0)),
    (AttributeLists((CURRENT_OBJECT_ID, COLOUR.id)), P.GET_ATTR),
    (AttributePage(Page.CURRENT_COMMAND, 76), P(0)),
    (AttributePage(Page.USER_INFORMATION, 76), P.GET_ATTR),
    (AttributePage(Page.CURRENT_COMMAND, 76, COLOUR), P.SET_ATTR),
    (SetOne(COLOUR), P.SET_ATTR),
    (SetOne(TAG), P.SET_ATTR | P.POL_SEC),
    (SetOne(AttributeValue(Page.PARTITION_QUOTAS, 1, bytes(8))), P.SET_ATTR | P.POL_SEC),
    (SetOne(AttributeValue(Page.STACK, 1, bytes(28))), RUNS),
    *(
        (SetOne(AttributeValue(page, 1, value)), RUNS | P.POL_SEC)
        for page in (Page.COLLECTION_STACK, Page.PARTITION_STACK, Page.ROOT_STACK)
        for value in (bytes(28), b"")
    ),
    (SetOne(AttributeValue(Page.HOOKS, 1, bytes(28))), RUNS | P.READ),
    *(
        (SetOne(AttributeValue(page, 1, value)), RUNS | P.READ | P.POL_SEC)
        for page in (Page.PARTITION_HOOKS, Page.ROOT_HOOKS)
        for value in (bytes(28), b"")
    ),
    (SetOne(AttributeValue(*LOGICAL_LENGTH, bytes(8))), P.SET_ATTR | P.WRITE),
    (SetOne(AttributeValue(Page.USER_COLLECTIONS, 1, bytes(8))), JOINS),
    (SetOne(AttributeValue(Page.USER_COLLECTIONS, 1, b"")), P.SET_ATTR),
    (AttributeLists((COLOUR.id,), (TAG,)), P.GET_ATTR | P.SET_ATTR | P.POL_SEC),
]


@pytest.mark.parametrize(("attributes", "more"), ATTRIBUTES)
def test_attributes_add_permissions(
    attributes: AttributeLists | AttributePage | SetOne, more: Permission
) -> None:
    need = needs_of(rq.flush(OBJ, attributes=attributes))[0]
    assert need == Need(OBJ, USER, P.OBJ_MGMT | more)


def test_which_type_an_object_has() -> None:
    def kind(request: Request) -> ObjectType:
        return needs_of(request)[0].object_type

    page = AttributeLists((AttributeId(Page.COLLECTION_INFORMATION, 9),))
    assert kind(rq.get_attributes(ROOT)) is ROOT_TYPE
    assert kind(rq.get_attributes(ref(PID))) is PARTITION
    assert kind(rq.get_attributes(ref(PID, 0x1001))) is COLLECTION
    assert kind(rq.get_attributes(COL, attributes=page)) is COLLECTION
    unclear = rq.get_attributes(COL)
    need = needs_of(unclear)[0]
    assert need.object_type is USER
    assert other_type(unclear, need) == need._replace(object_type=COLLECTION)
    assert other_type(rq.read(OBJ, 0, 1), needs_of(rq.read(OBJ, 0, 1))[0]) is None


def test_unknown_service_action() -> None:
    with pytest.raises(ValueError, match="no permissions known"):
        needs_of(Request(0x88A8))
