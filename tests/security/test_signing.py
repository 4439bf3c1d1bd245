# SPDX-License-Identifier: GPL-2.0-or-later
"""The client's requests under each method, the answers that it accepts, and its retries."""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import IntegrityError, OSDError, PermissionDenied, UnprovenAnswer
from pyosd.security.credentials import Credential, KeySource, StaticSource
from pyosd.security.permissions import needs_of
from pyosd.security.sealed import Grant, open_reply, seal
from pyosd.security.signing import Signer
from pyosd.types import AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import JOB_RIGHTS, Algorithm, Need, Permission, SecurityMethod
from pyosd.wire.capability import mac as check_value
from pyosd.wire.cdb import AttributeLists, AttributePage, Request, SetOne, decode_offset
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.transport import Command, Response
from tests.security.scripted import (
    CHECK,
    NONCE,
    Answer,
    Good,
    Refused,
    Scripted,
    be,
    mac,
    request_check,
)

CAPKEY, CMDRSP, ALLDATA = SecurityMethod.CAPKEY, SecurityMethod.CMDRSP, SecurityMethod.ALLDATA
PID = 0x10000
OBJ = ref(PID, 0x10001)
KEY, SYSTEM_ID = bytes(range(32)), b"i" * 20
COLOUR = AttributeValue(0x10000, 1, b"green")
TOKEN = bytes(range(16))


class Counted(KeySource):
    """Working keys that tell what was asked and refused."""

    def __init__(self, method: SecurityMethod) -> None:
        super().__init__({0: KEY, PID: KEY, PID + 1: KEY}, SYSTEM_ID, method=method)
        self.asked: list[Need] = []
        self.taken_back: list[Credential] = []

    def credential(self, obj: ObjectRef, kind: ObjectType, permissions: Permission) -> Credential:
        self.asked.append(Need(obj, kind, permissions))
        return super().credential(obj, kind, permissions)

    def refused(self, credential: Credential) -> None:
        self.taken_back.append(credential)


def capability_key(capability: bytes) -> bytes:
    return mac(KEY, capability, SYSTEM_ID)


def target(method: SecurityMethod, *answers: Answer) -> tuple[Commands, Scripted, Counted]:
    scripted, source = Scripted(capability_key, [*answers]), Counted(method)
    return Commands(scripted, source), scripted, source


def key_of(command: Command) -> bytes:
    return capability_key(command.cdb[80:184])


def token_page(token: bytes = TOKEN) -> Answer:
    page = bytes((0x11, 0xB1, 0, len(token))) + token
    return lambda key, command: Response(0, b"", memoryview(page))


def plain(data: bytes = b"") -> Answer:
    return lambda key, command: Response(0, b"", memoryview(data))


# ---- requests -------------------------------------------------------------------------------------


def test_capkey_proves_by_the_token() -> None:
    osd, scripted, source = target(CAPKEY, token_page(), plain(b"abc"), plain(b"abc"))
    assert bytes(osd.read(OBJ, 0, 3)) == b"abc" and bytes(osd.read(OBJ, 0, 3)) == b"abc"
    inquiry, *reads = scripted.sent
    assert inquiry.cdb[:3] == b"\x12\1\xb1" and len(reads) == 2
    for read in reads:
        assert read.cdb[CHECK] == mac(key_of(read), TOKEN)
        assert read.cdb[11] == 0x30 and read.data_in_length == 3
    assert source.asked == [Need(OBJ, ObjectType.USER_OBJECT, Permission.READ)]


def test_cmdrsp_covers_the_cdb_and_asks_for_the_page() -> None:
    osd, scripted, _ = target(CMDRSP, Good(b"abc"))
    assert bytes(osd.read(OBJ, 0, 3)) == b"abc"
    cdb = scripted.sent[0].cdb
    assert cdb[CHECK] == request_check(key_of(scripted.sent[0]), cdb)
    assert abs(be(cdb[NONCE], 0, 6) - time.time() * 1000) < 10_000 and any(cdb[222:228])
    assert cdb[11] == 0x20 and be(cdb, 52, 4) == Page.CURRENT_COMMAND and be(cdb, 56, 4) == 76


def test_what_was_set_from_the_cdb_goes_in_page_format() -> None:
    osd, scripted, _ = target(CMDRSP, Good())
    osd.call(rq.write(OBJ, 0, b"xyz", attributes=SetOne(COLOUR)))
    command = scripted.sent[0]
    assert command.cdb[11] == 0x20 and be(command.cdb, 64, 8) == be(
        struct.pack(">II", *COLOUR.id), 0, 8
    )
    assert bytes(command.data_out) == b"xyz" + bytes(5) + b"green"


def test_lists_get_the_whole_page_first() -> None:
    osd, scripted, _ = target(CMDRSP)
    with pytest.raises(OSDError):
        osd.get_attributes(OBJ, [COLOUR.id])
    command = scripted.sent[0]
    assert command.cdb[11] == 0x30
    at = decode_offset(be(command.cdb, 56, 4))
    wanted = bytes(command.data_out)[at + 8 :]
    assert wanted == struct.pack(">IIII", Page.CURRENT_COMMAND, 0xFFFF_FFFF, *COLOUR.id)
    assert be(command.cdb, 60, 4) >= 8 + 224 + 24


def test_alldata_covers_data_out() -> None:
    osd, scripted, _ = target(ALLDATA, Good())
    osd.write(OBJ, 0, b"hello", attributes=[COLOUR])
    command, key = scripted.sent[0], key_of(scripted.sent[0])
    assert command.cdb[CHECK] == request_check(key, command.cdb)
    at = decode_offset(be(command.cdb, 232, 4))
    data, info = bytes(command.data_out), bytes(command.data_out)[at : at + 56]
    assert info[:24] == struct.pack(">QQQ", 5, 5, 0) and len(data) == at + 56
    assert info[24:] == mac(key, command.cdb[NONCE], b"hello", b"green", info[:24])


def test_continuation_and_extensions_are_bound_to_the_command() -> None:
    osd, scripted, source = target(ALLDATA, Good())
    osd.call(rq.copy_user_object(OBJ, PID + 1))
    command, key = scripted.sent[0], key_of(scripted.sent[0])
    segment = bytes(command.data_out)[: be(command.cdb, 48, 4)]
    nonce = command.cdb[NONCE]
    assert segment[8:40] == mac(key, nonce, segment[:8], bytes(32), segment[40:])
    entry, head = segment[-136:], segment[-152:-136]
    assert head == struct.pack(">HxBIH6x", 0xFFEE, 0, 144, 1)
    assert entry[104:] == mac(capability_key(entry[:104]), command.cdb[CHECK])
    at = decode_offset(be(command.cdb, 232, 4))
    info = bytes(command.data_out)[at : at + 56]
    assert info == bytes(24) + mac(key, nonce, bytes(24))
    assert [each.obj for each in source.asked] == [ref(PID + 1), OBJ]


def test_a_page_in_its_fixed_form_cannot_be_proved() -> None:
    osd, scripted, _ = target(CMDRSP)
    with pytest.raises(ValueError, match="fixed form"):
        osd.get_page(OBJ, Page.USER_TIMESTAMPS)
    assert not scripted.sent


def test_one_credential_for_one_command() -> None:
    capability = KeySource({PID: KEY}, SYSTEM_ID, method=CMDRSP).credential(
        OBJ, ObjectType.USER_OBJECT, Permission.READ
    )
    scripted = Scripted(capability_key, [Good(b"abc"), plain(b"abc")])
    osd = Commands(scripted)
    assert bytes(osd.call(rq.read(OBJ, 0, 3), credential=capability).data) == b"abc"
    assert bytes(osd.read(OBJ, 0, 3)) == b"abc"
    assert any(scripted.sent[0].cdb[80:184]) and not any(scripted.sent[1].cdb[80:236])


@given(st.sampled_from(Algorithm), st.binary(min_size=32, max_size=32), st.lists(st.binary()))
def test_check_values_are_hmacs(algorithm: Algorithm, key: bytes, parts: list[bytes]) -> None:
    capability = replace(
        KeySource({PID: KEY}, SYSTEM_ID).credential(*needs_of(rq.read(OBJ, 0, 1))[0]).capability,
        algorithm=algorithm,
    )
    made = Grant(Credential(capability, key)).mac(*parts)
    assert made == check_value(key, *parts, algorithm=algorithm)


# ---- answers --------------------------------------------------------------------------------------


def changed(answer: Answer, change: Callable[[Response], Response]) -> Answer:
    return lambda key, command: change(answer(key, command))


def flip(data: bytes | memoryview, at: int) -> bytes:
    copy = bytearray(data)
    copy[at] ^= 1
    return bytes(copy)


def flipped_data(answer: Answer, at: int) -> Answer:
    return changed(answer, lambda r: replace(r, data_in=memoryview(flip(r.data_in, at))))


def flipped_sense(answer: Answer, at: int) -> Answer:
    return changed(answer, lambda r: replace(r, sense=flip(r.sense, at)))


@pytest.mark.parametrize("at", [0, 2, 3, 8, 83, 88, 135])
def test_alldata_believes_no_changed_byte(at: int) -> None:
    """3 bytes of data, the page from 8, integrity information from 88."""
    answer = flipped_data(Good(b"abc"), at)
    osd, _, _ = target(ALLDATA, answer)
    if at == 3:  # between the segments
        assert bytes(osd.read(OBJ, 0, 3)) == b"abc"
        return
    buffer = bytearray(b"...")
    at_risk = rq.read(OBJ, 0, 3, buffer=buffer)
    with pytest.raises(IntegrityError):
        osd.call(at_risk)
    assert bytes(buffer) == b"..."


def test_every_byte_of_a_cmdrsp_page_is_believed_only_with_its_proof() -> None:
    for at in range(8, 84):
        osd, _, _ = target(CMDRSP, flipped_data(Good(b"abc"), at))
        with pytest.raises(IntegrityError):
            osd.read(OBJ, 0, 3)


def test_every_byte_of_sense_is_believed_only_with_its_proof() -> None:
    plain_sense = Refused(0x24, 0, 24)
    length = 8 + 34 + 8
    for at in range(length):
        osd, _, _ = target(CMDRSP, flipped_sense(plain_sense, at))
        with pytest.raises(IntegrityError):
            osd.read(OBJ, 0, 3)


@pytest.mark.parametrize("status", [0x02, 0x08, 0x18, 0x28])
def test_another_status_is_not_believed(status: int) -> None:
    for answer in (Good(), Refused(0x24, 0, 24)):
        if (status, type(answer)) == (0x02, Refused):
            continue
        osd, _, _ = target(ALLDATA, changed(answer, lambda r: replace(r, status=status)))
        with pytest.raises(IntegrityError):
            osd.write(OBJ, 0, b"abc")


def test_good_instead_of_a_refusal_is_not_believed() -> None:
    for parts in ({}, {"sense": b""}):

        def make(r: Response, parts: dict[str, bytes] = parts) -> Response:
            return replace(r, status=0, **parts)  # type: ignore[arg-type]

        osd, _, _ = target(CMDRSP, changed(Refused(0x24, 0, 24), make))
        with pytest.raises(IntegrityError):
            osd.write(OBJ, 0, b"abc")


@pytest.mark.parametrize("kept", [0, 83, 84, 131, 135])
def test_cut_data_in_is_not_believed(kept: int) -> None:
    osd, _, _ = target(
        ALLDATA, changed(Good(b"abc"), lambda r: replace(r, data_in=r.data_in[:kept]))
    )
    with pytest.raises(IntegrityError):
        osd.read(OBJ, 0, 3)


def test_a_failed_submit_stays_failed() -> None:
    osd, _, _ = target(CMDRSP, changed(Good(), lambda r: replace(r, data_in=memoryview(b""))))
    pending = osd.submit(rq.write(OBJ, 0, b"abc"))
    for _ in range(2):
        with pytest.raises(UnprovenAnswer):
            pending.reply()


def test_an_answer_of_another_command_is_not_believed() -> None:
    osd, scripted, _ = target(ALLDATA, Good(b"abc"))
    osd.read(OBJ, 0, 3)
    old = scripted.sent[0]
    scripted.answers = [lambda key, command: Good(b"abc")(key, replace(command, cdb=old.cdb))]
    with pytest.raises(IntegrityError):
        osd.read(OBJ, 0, 3)


# ---- once more ------------------------------------------------------------------------------------


def test_another_nonce_by_the_targets_clock() -> None:
    clock = int(time.time() * 1000) + 3_600_000
    osd, scripted, _ = target(CMDRSP, Refused(0x24, 7, clock=clock), Good(), Good())
    osd.write(OBJ, 0, b"abc")
    osd.write(OBJ, 0, b"abc")
    first, second, third = (be(each.cdb[NONCE], 0, 6) for each in scripted.sent)
    assert (
        first < clock - 3_000_000 and 0 <= second - clock < 30_000 and 0 <= third - second < 30_000
    )


def test_the_clock_is_asked_for_where_a_refusal_does_not_say_it() -> None:
    osd, scripted, source = target(CMDRSP, Refused(0x24, 7))
    with pytest.raises(PermissionDenied):  # the root would want a nonce too
        osd.write(OBJ, 0, b"abc")
    assert len(scripted.sent) == 1 and source.asked[1].obj == ref()


def test_clock_only_once() -> None:
    clock = int(time.time() * 1000)
    osd, scripted, _ = target(CMDRSP, *[Refused(0x24, 7, clock=clock)] * 3)
    with pytest.raises(PermissionDenied):
        osd.write(OBJ, 0, b"abc")
    assert len(scripted.sent) == 2


@pytest.mark.parametrize("refusal", [(0x24, 5, None), (0x24, 0, 84), (0x24, 0, 140)])
def test_a_refused_credential_is_renewed_once(refusal: tuple[int, int, int | None]) -> None:
    osd, scripted, source = target(CMDRSP, Refused(*refusal), Good())
    osd.write(OBJ, 0, b"abc")
    assert len(source.taken_back) == 1 and len(source.asked) == 2
    nonces = {each.cdb[NONCE] for each in scripted.sent}
    assert len(nonces) == 2
    scripted.answers = [Refused(*refusal)] * 3
    with pytest.raises(PermissionDenied):
        osd.write(OBJ, 0, b"abc")
    assert len(scripted.sent) == 4


UNPROVEN = Refused(0x24, 0, 80, proved=False)


def test_an_unproven_refusal_is_tried_with_the_same_nonce() -> None:
    osd, scripted, source = target(CMDRSP, UNPROVEN, Good())
    osd.write(OBJ, 0, b"abc")
    first, second = scripted.sent
    assert first.cdb[NONCE] == second.cdb[NONCE] and first.cdb[80:184] != second.cdb[80:184]
    assert len(source.taken_back) == 1


def test_who_was_acted_upon_after_all_is_not_sent_again() -> None:
    osd, scripted, _ = target(CMDRSP, UNPROVEN, Refused(0x24, 6))
    with pytest.raises(UnprovenAnswer, match="unknown"):
        osd.write(OBJ, 0, b"abc")
    assert len(scripted.sent) == 2


def test_an_unproven_refusal_says_so() -> None:
    osd, _, _ = target(ALLDATA, UNPROVEN, UNPROVEN)
    with pytest.raises(PermissionDenied, match="without proof") as caught:
        osd.write(OBJ, 0, b"abc")
    assert not caught.value.verified
    osd, _, _ = target(ALLDATA, Refused(0x24, 0, 129))
    with pytest.raises(PermissionDenied) as caught:
        osd.write(OBJ, 0, b"abc")
    assert caught.value.verified


def test_unproven_refusals_elsewhere_are_not_believed() -> None:
    osd, _, _ = target(CMDRSP, replace(UNPROVEN, field=129))
    with pytest.raises(IntegrityError):
        osd.write(OBJ, 0, b"abc")


def test_a_source_with_nothing_else_leaves_the_refusal() -> None:
    made = KeySource({PID: KEY}, SYSTEM_ID, method=CMDRSP).credential(
        OBJ, ObjectType.USER_OBJECT, Permission.WRITE
    )
    scripted = Scripted(capability_key, [Refused(0x24, 0, 84)])
    with pytest.raises(PermissionDenied, match="CDB byte 84"):
        Commands(scripted, StaticSource([made])).write(OBJ, 0, b"abc")


def test_a_credential_that_has_expired_is_named() -> None:
    made = KeySource({PID: KEY}, SYSTEM_ID, method=CMDRSP, lifetime=-60).credential(
        OBJ, ObjectType.USER_OBJECT, Permission.WRITE
    )
    with pytest.raises(PermissionDenied, match="has expired: 'osd cred get'"):
        StaticSource([made]).credential(OBJ, ObjectType.USER_OBJECT, Permission.WRITE)
    with pytest.raises(PermissionDenied, match=r"that allows READ$"):
        StaticSource([made]).credential(OBJ, ObjectType.USER_OBJECT, Permission.READ)


def test_a_read_that_was_sent_twice_is_sent_with_another_nonce() -> None:
    osd, scripted, _ = target(CMDRSP, Refused(0x24, 6), Good(b"abc"))
    assert bytes(osd.read(OBJ, 0, 3)) == b"abc"
    assert scripted.sent[0].cdb[NONCE] != scripted.sent[1].cdb[NONCE]


def test_a_new_token_after_a_restart() -> None:
    osd, scripted, source = target(
        CAPKEY, token_page(), UNPROVEN, token_page(b"y" * 16), plain(b"abc")
    )
    assert bytes(osd.read(OBJ, 0, 3)) == b"abc"
    assert scripted.sent[-1].cdb[CHECK] == mac(key_of(scripted.sent[-1]), b"y" * 16)
    assert not source.taken_back


def test_a_collection_is_found_out() -> None:
    osd, scripted, source = target(CMDRSP, Refused(0x24, 0, 128), Good(), Good())
    request = rq.set_attributes(OBJ, attributes=AttributePage(set=COLOUR))
    osd.call(request)
    osd.call(request)
    assert [each.cdb[128] for each in scripted.sent] == [0x80, 0x40, 0x40]
    assert len(source.asked) == 2


def test_leave_for_a_collection_is_found() -> None:
    """If the request does not determine that it is one."""
    made = KeySource({PID: KEY}, SYSTEM_ID, method=CMDRSP).credential(
        OBJ, ObjectType.COLLECTION, Permission.SET_ATTR
    )
    scripted = Scripted(capability_key, [Good()])
    osd = Commands(scripted, StaticSource([made]))
    osd.call(rq.set_attributes(OBJ, attributes=AttributePage(set=COLOUR)))
    assert scripted.sent[0].cdb[128] == ObjectType.COLLECTION
    with pytest.raises(PermissionDenied, match="user object"):
        osd.get_attributes(OBJ, [COLOUR.id])


REQUESTS = [
    rq.read(OBJ, 0, 3),
    rq.write(OBJ, 0, b"abc", attributes=AttributeLists((COLOUR.id,), (COLOUR,))),
    rq.get_member_attributes(ref(PID, 0x1000), attributes=AttributeLists((COLOUR.id,))),
]


SENSE = b"\x72\5\x24\0\0\0\0\x3c\7\x20"


@given(
    request=st.sampled_from(REQUESTS),
    status=st.sampled_from([0, 2, 8, 0x18, 0x28]),
    sense=st.binary(max_size=80)
    | st.binary(max_size=60).map(lambda d: b"\x72\5\x24\0\0\0\0\x3c\7\x20" + d),
    data=st.binary(max_size=400),
)
def test_nothing_made_up_is_believed(
    request: Request, status: int, sense: bytes, data: bytes
) -> None:
    """Every answer ends in an IntegrityError, or in the one refusal that needs no proof."""
    for method in (CMDRSP, ALLDATA):
        grant = Grant(Counted(method).credential(*needs_of(request)[0]))
        sealed = seal(request, [grant], bytes(12), b"")
        try:
            reply = open_reply(request, sealed, Response(status, sense, memoryview(data)))
        except IntegrityError:
            continue
        assert reply.error is not None and reply.error.field_pointer == 80
        assert not reply.data and not reply.attributes


def test_nothing_secret_in_what_is_raised_or_shown() -> None:
    osd, scripted, source = target(ALLDATA, UNPROVEN, UNPROVEN)
    with pytest.raises(PermissionDenied) as caught:
        osd.write(OBJ, 0, b"abc")
    key = key_of(scripted.sent[0])
    for text in (repr(caught.value), str(caught.value.__dict__), repr(osd.signer), repr(source)):
        assert key.hex() not in text and repr(key)[2:-1] not in text and KEY.hex() not in text


# ---- jobs -----------------------------------------------------------------------------------------

JOB = ref(PID, 0x20000)
STARTED = rq.execute(ref(PID), b"pass", attributes=AttributePage(Page.CURRENT_COMMAND, 76))


class Narrow(Counted):
    """Has leave for the partition as a zone only."""

    def credential(self, obj: ObjectRef, kind: ObjectType, permissions: Permission) -> Credential:
        made = super().credential(obj, kind, permissions)
        if (obj, kind) != (ref(PID), ObjectType.PARTITION):
            raise PermissionDenied(0, 0, 0, "no leave", sam_status=0)
        return made


def test_a_job_is_started_with_what_it_may_do() -> None:
    osd, scripted, source = target(CMDRSP, Good())
    osd.reply(STARTED)
    need = Need(ref(PID), ObjectType.PARTITION, Permission.FUN_EXE | JOB_RIGHTS)
    assert source.asked == [need]
    less = ExecParams(rights=Permission.READ)
    request = rq.execute(ref(PID), b"pass", less, attributes=STARTED.attributes)
    assert needs_of(request)[0].permissions == Permission.FUN_EXE | Permission.READ
    assert be(scripted.sent[0].cdb, 129, 2) == need.permissions


def test_a_surrogate_is_looked_at_with_the_leave_its_job_was_started_with() -> None:
    signer = Signer(Narrow(CMDRSP))
    started = needs_of(STARTED)[0]
    signer.learn_job(JOB, started)
    scripted = Scripted(capability_key, [Good(b"abc")] * 2)
    osd = Commands(scripted)
    osd.signer = signer
    osd.read(JOB, 0, 3)
    osd.read(ref(PID, JOB.object_id + 7), 0, 3)  # of an array's member
    assert len({each.cdb[80:184] for each in scripted.sent}) == 1
    assert be(scripted.sent[0].cdb, 152, 16) == PID << 64
    with pytest.raises(PermissionDenied):
        osd.read(ref(PID, JOB.object_id - 1), 0, 3)


def test_a_job_known_by_its_id_only() -> None:
    scripted = Scripted(capability_key, [Good()] * 2)
    osd = Commands(scripted, Narrow(CMDRSP))
    control = AttributeValue(Page.JOB_CONTROL, 1, b"\1")
    osd.reply(rq.set_attributes(JOB, attributes=SetOne(control)))
    osd.read(JOB, 0, 0)  # known by now
    for each in scripted.sent:
        assert be(each.cdb, 129, 2) == Permission.FUN_EXE and each.cdb[128] == ObjectType.PARTITION


def test_an_id_that_is_no_surrogate_any_more() -> None:
    """It was a job's, and is another object's now."""
    osd, scripted, source = target(CMDRSP, Refused(0x24, 0, 160), Good(b"abc"))
    osd.signer.learn_job(JOB, needs_of(STARTED)[0])
    assert bytes(osd.read(JOB, 0, 3)) == b"abc"
    assert [each.obj for each in source.asked] == [ref(PID), JOB]
    assert be(scripted.sent[1].cdb, 129, 2) == Permission.READ


class Forgotten(OrderedDict[ObjectRef, Need]):
    """Another thread forgets a job when this one has found it."""

    def __contains__(self, job: object) -> bool:
        found = super().__contains__(job)
        self.clear()
        return found


def test_a_job_that_another_thread_forgets() -> None:
    signer, started = Signer(Narrow(CMDRSP)), needs_of(STARTED)[0]
    signer._jobs = Forgotten({JOB: started})
    request = rq.read(JOB, 0, 3)
    need = needs_of(request)[0]
    assert signer.learned(request, need) in (need, started)
