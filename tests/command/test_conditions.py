# SPDX-License-Identifier: GPL-2.0-or-later
"""Every row of docs/sense.md happens, with the sense data it promises; or this file says where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Request, SetOne, encode
from pyosd.wire.reply import Reply
from tests.conftest import MakeHarness
from tests.expect import BUSY, CHECK_CONDITION, OK, TASK_ABORTED, check, mangled
from tools.sensedoc import Condition, conditions

TESTS = Path(__file__).resolve().parents[1]
SAM = {"CHECK CONDITION": CHECK_CONDITION, "BUSY": BUSY, "TASK ABORTED": TASK_ABORTED}

VALUE = AttributeValue(Page.APPLICATION, 1, b"value")
NAME = AttributeId(Page.USER_INFORMATION, 0x9)
READ_ONLY = AttributeId(Page.USER_INFORMATION, 0x1)
ABSENT = 0x7777_7777

VALIDATION, CAPABILITY = 0x8000_0000, 0x2000_2020
COMMAND, SET_ATTRIBUTES, GET_ATTRIBUTES = 0x1010_0000, 0x1000, 0x10
EVERYTHING = 0xB010_3030


def be(value: int, width: int = 8) -> bytes:
    return value.to_bytes(width, "big")


def setting(*attributes: AttributeValue) -> AttributeLists:
    return AttributeLists((), attributes)


def refused_set(obj: ObjectRef) -> Request:
    return rq.set_attributes(obj, attributes=setting(AttributeValue(*_pair(READ_ONLY), bytes(8))))


def _pair(attribute: AttributeId) -> tuple[int, int]:
    return attribute.page, attribute.number


def over_quota(osd: Commands, obj: ObjectRef) -> Reply:
    osd.set_attributes(obj, [AttributeValue(Page.USER_QUOTAS, 1, be(10))])
    return osd.reply(rq.write(obj, 0, bytes(11)))


def not_empty(osd: Commands, obj: ObjectRef) -> Reply:
    return osd.reply(rq.remove_partition(obj.partition_id))


def long_group(osd: Commands, obj: ObjectRef) -> Reply:
    """Two values of 60,000 bytes, of every member of a collection."""
    collection = osd.create_collection(obj.partition_id)
    join = AttributeValue(Page.USER_COLLECTIONS, 1, be(collection.object_id))
    values = [AttributeValue(Page.APPLICATION, number, bytes(60_000)) for number in (1, 2)]
    osd.set_attributes(obj, [*values, join])
    lists = AttributeLists(tuple(each.id for each in values), (), 256 << 10)
    reply = osd.reply(rq.get_member_attributes(collection, attributes=lists))
    assert reply.error is not None and "request fewer attributes" in str(reply.error)
    return reply


def taken(osd: Commands, obj: ObjectRef) -> Reply:
    return osd.reply(rq.create(obj.partition_id, obj.object_id))


def list_of(obj: ObjectRef) -> Request:
    return rq.set_attributes(obj, attributes=setting(VALUE))


def entry_too_long(osd: Commands, obj: ObjectRef) -> Reply:
    """The entry says its value is longer than the list."""
    request = list_of(obj)
    out = bytearray(encode(request)[0].data_out)
    out[8 + 14 : 8 + 16] = be(999, 2)
    return mangled(osd, request, {}, data_out=bytes(out))


def another_list(osd: Commands, obj: ObjectRef) -> Reply:
    request = list_of(obj)
    out = bytearray(encode(request)[0].data_out)
    out[0] = 0x1
    return mangled(osd, request, {}, data_out=bytes(out))


def overlapping(osd: Commands, obj: ObjectRef) -> Reply:
    request = rq.read(obj, 0, 64, attributes=AttributeLists((NAME,)))
    return mangled(osd, request, {64: bytes(4)})


PROVOKE: dict[str, Callable[[Commands, ObjectRef], Reply]] = {
    "operation code or CDB length is not OSD-2's": lambda osd, obj: mangled(
        osd, rq.flush(obj), {7: b"\xc0"}
    ),
    "embedded command unknown": lambda osd, obj: osd.reply(rq.perform_scsi_command(b"\x7f")),
    "field of the CDB is reserved, impossible or not supported": lambda osd, obj: osd.reply(
        rq.create(obj.partition_id, ABSENT, count=2)
    ),
    "service action is unknown or not supported": lambda osd, obj: mangled(
        osd, rq.flush(obj), {8: b"\x88\xa8"}
    ),
    "isolation method is reserved or not supported": lambda osd, obj: mangled(
        osd, rq.read(obj, 0, 0), {10: b"\x06"}
    ),
    "format of the attribute parameters is reserved": lambda osd, obj: mangled(
        osd, rq.flush(obj), {11: b"\0"}
    ),
    "timestamps control is reserved": lambda osd, obj: mangled(osd, rq.flush(obj), {12: b"\1"}),
    "command about the root or partitions names another object": lambda osd, obj: mangled(
        osd, rq.perform_scsi_command(bytes(6)), {24: be(1)}
    ),
    "Data-Out is shorter than a length says": lambda osd, obj: mangled(
        osd, rq.write(obj, 0, b"12345678"), {}, data_out=b"1234"
    ),
    "retrieved attributes would lie on the command data": overlapping,
    "CDB continuation segment": lambda osd, obj: mangled(
        osd, rq.write_pieces(obj, [(0, 1)], b"x"), {}, data_out=bytes(80)
    ),
    "page of another type of object, in page format": lambda osd, obj: osd.reply(
        rq.get_attributes(obj, attributes=AttributePage(Page.ROOT_QUOTAS, 100))
    ),
    "attribute set from the CDB is refused": lambda osd, obj: osd.reply(
        rq.set_attributes(obj, attributes=SetOne(AttributeValue(*_pair(READ_ONLY), bytes(8))))
    ),
    "capability, or request check value, is not genuine": lambda osd, obj: mangled(
        osd, rq.flush(obj), {82: b"\x02"}
    ),
    "field of an embedded CDB": lambda osd, obj: osd.reply(
        rq.perform_scsi_command(b"\x12\0\x80\0\xff\0", data_in_length=255)
    ),
    "partition does not exist": lambda osd, obj: osd.reply(rq.read(ref(ABSENT, ABSENT), 0, 1)),
    "user object or collection does not exist": lambda osd, obj: osd.reply(
        rq.read(ref(obj.partition_id, ABSENT), 0, 1)
    ),
    "requested partition id is taken or reserved": lambda osd, obj: osd.reply(
        rq.create_partition(obj.partition_id)
    ),
    "requested object id is taken or reserved": taken,
    "start beyond the end of the object": lambda osd, obj: osd.reply(rq.punch(obj, 1, 1)),
    "entry of an attributes list runs past it": entry_too_long,
    "attributes list is shorter than its header": lambda osd, obj: mangled(
        osd, list_of(obj), {68: be(7, 4)}
    ),
    "attributes list is of another type": another_list,
    "attribute of another type's page, read only, or with a bad value": lambda osd, obj: osd.reply(
        refused_set(obj)
    ),
    "attributes of one object exceed 65,528 bytes of a multi-object list": long_group,
    "partition or collection is not empty": not_empty,
    "quota is exceeded": over_quota,
    "read past the end of the object": lambda osd, obj: osd.reply(rq.read(obj, 0, 1)),
}

INGREDIENTS = "conformance/test_guarded.py::test_every_ingredient"
ELSEWHERE = {
    **dict.fromkeys(
        (
            "method of the capability is less than the partition's",
            "capability has expired",
            "capability is for another type of object",
            "capability has another type of descriptor",
            "capability is for another partition",
            "capability is for another object",
            "policy access tag is not the object's",
            "created time is not the object's",
            "boot epoch is not the target's",
            "permission is missing in the capability",
            "range ends beyond what the capability allows",
            "range begins before what the capability allows",
            "nonce is not unique",
            "nonce timestamp is out of range",
            "Data-Out integrity check value is wrong",
        ),
        INGREDIENTS,
    ),
    **dict.fromkeys(
        (
            "no place for integrity information in Data-In",
            "no integrity information in Data-Out",
        ),
        "conformance/test_guarded.py::test_no_room_for_integrity_information",
    ),
    "attribute is none that the capability allows": (
        "conformance/test_guarded.py::test_allowed_attributes"
    ),
    "attribute's permission is missing in the capability": (
        "conformance/test_guarded.py::test_policy_pages"
    ),
    "working key is frozen": "conformance/test_guarded.py::test_frozen_key",
    "no space is left": "fault/test_store_faults.py::test_disk_full",
    "format in progress": "command/test_conditions.py::test_format_in_progress",
    "backing device failed": "fault/test_store_faults.py::test_nth_call_fails",
    "device with the object's head failed": (
        "tiers/test_failures.py::test_read_says_which_half_failed"
    ),
    "device with the bytes behind the object's head failed": (
        "tiers/test_failures.py::test_read_says_which_half_failed"
    ),
    "bytes on the device differ from their checksum": (
        "command/test_checksums.py::test_read_finds_a_turned_byte"
    ),
    "device with the object's head is absent": "tiers/test_failures.py::test_absent_at_start",
    "structure check found damage": "command/test_check.py::test_lost_file",
    "internal failure": "fault/test_store_faults.py::test_nth_call_fails",
    "out of memory or another resource": "fault/test_store_faults.py::test_nth_call_fails",
    "unfinished job stands in the way": "exec/test_exec.py::test_unfinished_surrogate_is_protected",
    "idempotency key is in use with other content": "jobs/test_exec.py::test_same_key_is_the_same_job",
    "isolation level is not available on this host": (
        "jobs/test_isolation.py::test_daemon_with_less_than_demanded"
    ),
    "byte-code is not allowed on this target": (
        "exec/test_code_forms.py::test_bytecode_is_refused_unless_allowed"
    ),
    "pool is not for this principal": "exec/test_fairness.py::test_users",
    "data have another version than the command wants": "command/test_versions.py::test_wanted",
    "function is not active, or its code has changed since": (
        "exec/test_functions.py::test_a_function_is_stored_then_active"
    ),
    "engine is not available on this target": (
        "exec/test_functions.py::test_what_cannot_be_activated"
    ),
    "another active function of the partition has the alias": (
        "exec/test_functions.py::test_what_cannot_be_activated"
    ),
    "function is more than its signer may sign, or the zone of the call is not the signer's": (
        "exec/test_signer_caps.py::test_the_manifest_is_within_the_caps"
    ),
    "calls of the function are under way": (
        "exec/test_function_calls.py::test_remove_of_a_function_in_use_is_refused"
    ),
    "no active function has this name": "exec/test_functions.py::test_names_that_nothing_has",
    "policy requires a signature of the function": (
        "exec/test_signed_functions.py::test_what_a_signature_does_not_cover_is_refused"
    ),
    "signature of the function is damaged, or of other code or another manifest": (
        "exec/test_signed_functions.py::test_what_a_signature_does_not_cover_is_refused"
    ),
    "signer of the function is not listed, not for its engine, or not at this time": (
        "exec/test_signed_functions.py::test_other_namespaces_and_keys_are_refused"
    ),
    "code of the function is damaged, or encrypted to the key of another target": (
        "exec/test_encrypted_functions.py::test_what_does_not_open_is_refused"
    ),
    "code of the function cannot be compiled": (
        "exec/test_wasm.py::test_what_cannot_run_is_not_activated"
    ),
    "contract of functions does not permit the command, or contradicts itself": (
        "exec/test_stack_writes.py::test_changes_without_an_inverse_are_refused"
    ),
    "function that the data pass through failed": (
        "exec/test_stacks.py::test_a_failure_is_no_data"
    ),
    "deadline of the pool would pass before the job ended": (
        "exec/test_pool_share.py::test_a_deadline_refuses_jobs_that_would_wait_too_long"
    ),
    "client is expected to run the script sooner than the target": (
        "jobs/test_offload.py::test_a_synchronous_exec_is_refused_at_once"
    ),
    "function that checks changes does not permit this, or cannot be asked": (
        "exec/test_checks.py::test_each_command_is_asked_about"
    ),
    "directory has no such name": "command/test_names.py::test_the_sense_says_which_name",
    "directory has this name already": "command/test_names.py::test_an_object_is_made_with_its_name",
    "name of the path is no directory": "command/test_names.py::test_the_sense_says_which_name",
    "name is a directory's": "command/test_names.py::test_directories",
    "directory would move below itself": "command/test_names.py::test_rename",
    "name belongs to another object than the command wants": "command/test_names.py::test_compare_and_swap",
    "object cannot have the name": "command/test_names.py::test_what_a_link_refuses",
    "wait ended before the job": "jobs/test_exec.py::test_wait_runs_out_and_the_job_goes_on",
    "job ended: queue or hold": (
        "jobs/test_exec.py::test_format_ends_an_exec_that_waits_for_a_queued_job"
    ),
    "job ended: script": "jobs/test_exec.py::test_synchronous_exec_of_a_failing_script",
    "job ended: limit": "exec/test_hostile.py::test_hostile",
    "job ended: sandbox or host": "exec/test_restart.py::test_sandbox_dies_after_a_write",
    "job ended: storage": "unit/test_job_reasons.py::test_reasons",
    "job ended: security": "exec/test_exec.py::test_removing_a_collection_ends_the_jobs_on_it",
    "job ended: internal": "unit/test_job_reasons.py::test_reasons",
    "queue of jobs is full": "jobs/test_exec.py::test_principal_has_a_cap",
    "task management function covered the command": (
        "jobs/test_task_management.py::test_abort_one_of_two"
    ),
}

NEVER = {
    "audit value is frozen": "no attribute freezes audit values",
    "SET MASTER KEY out of sequence": "target/security/test_keys.c has it",
    "command lost too many deadlocks": "eleven in a row: only in target/command/test_busy.c",
}


@pytest.fixture(scope="module")
def table() -> dict[str, Condition]:
    return {each.name: each for each in conditions()}


def kinds(sense: bytes) -> list[str]:
    """Types of the descriptors, in order."""
    found, at = [], 8
    while at < len(sense):
        found.append(f"{sense[at]:02X}")
        at += 2 + sense[at + 1]
    return found


@pytest.mark.parametrize("name", PROVOKE)
def test_condition(osd: Commands, obj: ObjectRef, table: dict[str, Condition], name: str) -> None:
    row = table[name]
    reply = PROVOKE[name](osd, obj)
    assert reply.response.status == SAM[row.status]
    sense = reply.response.sense
    assert f"{sense[1]:X} {sense[2]:02X}/{sense[3]:02X}" == f"{row.key} {row.code}"
    assert kinds(sense) == row.descriptors.split()
    if row.field not in ("", "at fault"):
        assert reply.sense is not None
        assert reply.sense.field_pointer == int(row.field)


def test_every_row_is_somewhere(table: dict[str, Condition]) -> None:
    known = [*PROVOKE, *ELSEWHERE, *NEVER]
    assert sorted(known) == sorted(table)
    for place in ELSEWHERE.values():
        file, function = place.split("::")
        assert f"def {function}(" in (TESTS / file).read_text(), place


# ---- what has begun, and what is done ----


def bits(reply: Reply) -> tuple[int, int]:
    """Functions initiated and functions completed."""
    assert reply.sense is not None
    return EVERYTHING & ~reply.sense.not_initiated, reply.sense.completed


def test_bits_at_each_stage(osd: Commands, obj: ObjectRef) -> None:
    """Initiated and not completed is what failed, and what was undone with it."""
    begun = VALIDATION | CAPABILITY
    assert bits(mangled(osd, rq.flush(obj), {12: b"\1"})) == (0, 0)
    assert bits(entry_too_long(osd, obj)) == (0, 0)
    assert bits(osd.reply(rq.flush(ref(obj.partition_id, ABSENT)))) == (0, 0)
    assert bits(mangled(osd, rq.flush(obj), {82: b"\x02"})) == (begun, VALIDATION)
    assert bits(not_empty(osd, obj)) == (begun | COMMAND, begun)
    assert bits(osd.reply(refused_set(obj))) == (begun | COMMAND | SET_ATTRIBUTES, begun)
    past_end = osd.reply(rq.read(obj, 0, 1))
    assert bits(past_end) == (begun | COMMAND, begun | COMMAND)
    bad = AttributeLists((AttributeId(Page.ROOT_INFORMATION, 4),), (VALUE,))
    assert bits(osd.reply(rq.set_attributes(obj, attributes=bad))) == (
        begun | COMMAND | SET_ATTRIBUTES | GET_ATTRIBUTES,
        begun,
    )
    create = rq.create(obj.partition_id, attributes=setting(AttributeValue(0x9000_0001, 1, b"x")))
    assert bits(osd.reply(create)) == (begun | COMMAND | SET_ATTRIBUTES, begun)
    assert osd.list_objects(obj.partition_id) == [obj]
    one = SetOne(AttributeValue(*_pair(READ_ONLY), bytes(8)))
    assert bits(osd.reply(rq.set_attributes(obj, attributes=one))) == (
        begun | COMMAND | SET_ATTRIBUTES,
        begun,
    )


# ---- all refused attributes are named ----


def test_all_refused_attributes_are_named(osd: Commands, obj: ObjectRef) -> None:
    """In the order of the list, up to 16; the good ones among them are not set."""
    bad = [AttributeId(Page.ROOT_INFORMATION, n) for n in range(1, 21)]
    sets = [AttributeValue(each.page, each.number, b"x") for each in bad]
    reply = osd.reply(rq.set_attributes(obj, attributes=setting(sets[0], VALUE, *sets[1:3])))
    assert reply.sense is not None
    assert reply.sense.attributes == tuple(bad[:3])
    reply = osd.reply(rq.set_attributes(obj, attributes=setting(*sets)))
    assert reply.sense is not None
    assert reply.sense.attributes == tuple(bad[:16])
    assert len(reply.response.sense) <= 252
    assert osd.get_attribute(obj, VALUE.page, VALUE.number) == b""
    reply = osd.reply(rq.get_attributes(obj, attributes=AttributeLists((bad[4], NAME, bad[2]))))
    assert reply.sense is not None
    assert reply.sense.attributes == (bad[4], bad[2])
    assert reply.response.data_in.nbytes == 0


def test_a_quota_counts_before_later_refusals(osd: Commands, obj: ObjectRef) -> None:
    """The first failure decides; after one of another kind nothing more is tried."""
    osd.set_attributes(obj, [AttributeValue(Page.USER_QUOTAS, 1, be(10))])
    length = AttributeValue(Page.USER_INFORMATION, 0x82, be(11))
    wrong = AttributeValue(*_pair(READ_ONLY), bytes(8))
    reply = osd.reply(rq.set_attributes(obj, attributes=setting(length, wrong)))
    assert reply.sense is not None
    assert (reply.sense.asc, reply.sense.attributes) == (0x55, (length.id,))
    reply = osd.reply(rq.set_attributes(obj, attributes=setting(wrong, length)))
    assert reply.sense is not None
    assert (reply.sense.asc, reply.sense.attributes) == (0x26, (wrong.id,))


# ---- conditions of the whole unit ----


def test_format_in_progress(make_harness: MakeHarness, disk: Path) -> None:
    """Commands that come while FORMAT OSD has the store to itself, which takes longest on a disk."""
    osd = make_harness(dir=disk / "store").osd
    for _ in range(200):
        pending = [osd.submit(rq.format_osd())]
        pending += [osd.submit(rq.list_objects()) for _ in range(20)]
        replies = [each.reply() for each in pending]
        check(replies[0], OK)
        early = [each for each in replies[1:] if each.response.status]
        for each in early:
            assert each.response.sense[:4] == bytes.fromhex("72020404")
            assert kinds(each.response.sense) == ["06"]
        if early:
            return
    raise AssertionError("nobody came while FORMAT OSD ran")
