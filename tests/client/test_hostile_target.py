# SPDX-License-Identifier: GPL-2.0-or-later
"""The initiator against a target that breaks the protocol, or keeps it in unusual ways.

With every behaviour of the target, a command ends in an answer or in an Unreachable. The client
never returns bytes that the target did not send.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from pyosd import (
    ROOT,
    ProtocolError,
    Target,
    TaskAborted,
    TaskResponse,
    Unreachable,
    aio,
    connect,
    requests,
)
from pyosd.errors import CommandTimeout, LoginRejected, SessionLost
from pyosd.wire.transport import Command
from tests.client.fake_target import NO_TAG, FakeTarget, Pdu, Peer, held_port

READ_10 = b"\x28" + bytes(9)
WRITE_10 = b"\x2a" + bytes(9)
ROOM = 4096
DEADLINE_S = 60.0


def open_target(fake: FakeTarget, timeout: float = DEADLINE_S) -> Target:
    return connect(fake.url, timeout=timeout, reconnect_timeout=0)


def answering(act: Callable[[Peer, Pdu], None]) -> Callable[[Peer], None]:
    """A script that hands every PDU to act until the initiator is gone."""

    def script(peer: Peer) -> None:
        while True:
            pdu = peer.receive()
            if pdu.opcode == 0x06:
                peer.send(peer.header(0x26, 0x80, pdu.tag))
                return
            act(peer, pdu)

    return script


def bad_opcode(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x3D, 0x80, pdu.tag))


def wrong_tag(peer: Peer, pdu: Pdu) -> None:
    peer.status(pdu.tag ^ 1)


def tag_of_another_slot(peer: Peer, pdu: Pdu) -> None:
    peer.status(pdu.tag + 1024)


def answer_twice(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(ROOM))
    peer.data_in(pdu.tag, bytes(ROOM))


def too_much_data(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(ROOM + 4))


def data_beyond_the_buffer(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(8), offset=0xFFFF_FFFC)


def data_with_a_hole(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(8), offset=16)


def data_out_of_sequence(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(8), sn=1)


def good_without_data(peer: Peer, pdu: Pdu) -> None:
    peer.status(pdu.tag)


def good_with_less_data(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(8))


def underflow_beyond_reason(peer: Peer, pdu: Pdu) -> None:
    peer.status(pdu.tag, b1=0x82, w44=ROOM + 1)


def status_in_unfinished_data(peer: Peer, pdu: Pdu) -> None:
    peer.data_in(pdu.tag, bytes(ROOM), flags=0x01)


def endless_segment(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x25, 0x80, pdu.tag), b"", claim=0xFFFFFF)


def endless_sense(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x21, 0x80, pdu.tag, b3=2), b"", claim=0x200000)


def request_for_a_read(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x31, 0x80, pdu.tag, w20=1, w36=0, w40=0, w44=512))


def login_again(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x23, 0x87, pdu.tag))


def text_for_a_command(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x24, 0x80, pdu.tag), b"a=b\0")


def reject(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x3F, 0x80, NO_TAG, b2=0x04), pdu.bhs)


def logout_request(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x32, 0x80, NO_TAG, b36=1))


def flood_of_messages(peer: Peer, pdu: Pdu) -> None:
    for _ in range(100):
        peer.send(peer.header(0x32, 0x80, NO_TAG, b36=4))


def close_early(peer: Peer, pdu: Pdu) -> None:
    peer.sock.close()


def close_inside_a_header(peer: Peer, pdu: Pdu) -> None:
    peer.sock.sendall(bytes(peer.header(0x25, 0x80, pdu.tag))[:20])
    peer.sock.close()


def close_inside_data(peer: Peer, pdu: Pdu) -> None:
    peer.send(peer.header(0x25, 0x80, pdu.tag), bytes(16), claim=ROOM)
    peer.sock.close()


@pytest.mark.parametrize(
    "act",
    [
        bad_opcode,
        wrong_tag,
        tag_of_another_slot,
        answer_twice,
        too_much_data,
        data_beyond_the_buffer,
        data_with_a_hole,
        data_out_of_sequence,
        good_without_data,
        good_with_less_data,
        underflow_beyond_reason,
        status_in_unfinished_data,
        endless_segment,
        endless_sense,
        request_for_a_read,
        login_again,
        text_for_a_command,
        reject,
        logout_request,
        flood_of_messages,
        close_early,
        close_inside_a_header,
        close_inside_data,
    ],
)
def test_read_from_a_hostile_target(act: Callable[[Peer, Pdu], None]) -> None:
    buffer = bytearray(b"\xa5" * (ROOM + 64))
    room = memoryview(buffer)[:ROOM]
    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        with pytest.raises(Unreachable):
            for _ in range(2):  # some misdeeds show with the next command only
                target.transport.execute(Command(READ_10, b"", ROOM, room))
        assert buffer[ROOM:] == b"\xa5" * 64


def r2t(offset: int, length: int, sn: int = 0, tag: int = 7) -> Callable[[Peer, Pdu], None]:
    def act(peer: Peer, pdu: Pdu) -> None:
        if pdu.opcode == 0x01:
            peer.send(peer.header(0x31, 0x80, pdu.tag, w20=tag, w36=sn, w40=offset, w44=length))

    return act


@pytest.mark.parametrize(
    "act",
    [
        r2t(8192, 0),
        r2t(8192, 16385),
        r2t(8192, 0xFFFF_FFFF),
        r2t(0, 512),
        r2t(8196, 512),
        r2t(0xFFFF_FFFC, 512),
        r2t(8192, 512, sn=1),
        r2t(8192, 512, tag=NO_TAG),
        r2t(32768, 512),
    ],
)
def test_nonsense_requests_for_data(act: Callable[[Peer, Pdu], None]) -> None:
    with (
        FakeTarget(answering(act)) as fake,
        open_target(fake) as target,
        pytest.raises(ProtocolError, match="R2T"),
    ):
        target.execute(WRITE_10, bytes(32768))


def test_requests_without_end() -> None:
    def act(peer: Peer, pdu: Pdu) -> None:
        if pdu.opcode == 0x01:
            for sn in range(64):
                header = peer.header(0x31, 0x80, pdu.tag, w20=7, w36=sn, w40=8192, w44=512)
                peer.send(header)

    with (
        FakeTarget(answering(act)) as fake,
        open_target(fake) as target,
        pytest.raises(ProtocolError),
    ):
        target.execute(WRITE_10, bytes(32768))


def test_honest_requests_for_data() -> None:
    """8 KiB immediately, then bursts of 16 KiB in segments of 8 KiB, each byte once and in order."""
    sent = bytes(range(256)) * 200
    got = bytearray()

    def act(peer: Peer, pdu: Pdu) -> None:
        if pdu.opcode == 0x01:
            assert pdu.bhs[1] & 0xA0 == 0xA0
            assert pdu.word(20) == len(sent) and len(pdu.data) == 8192
            got.extend(pdu.data)
        else:
            assert pdu.opcode == 0x05 and len(pdu.data) <= 8192
            assert pdu.word(20) == 9 and pdu.word(40) == len(got)
            got.extend(pdu.data)
            if not pdu.bhs[1] & 0x80:
                return
        if len(got) == len(sent):
            peer.status(pdu.tag)
            return
        length = min(16384, len(sent) - len(got))
        sn = (len(got) - 8192) // 16384
        peer.send(peer.header(0x31, 0x80, pdu.tag, w20=9, w36=sn, w40=len(got), w44=length))

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        assert target.execute(WRITE_10, sent).status == 0
    assert got == sent


def test_no_data_for_a_command_that_has_been_answered() -> None:
    """Stock tgtd does not survive a Data-Out for a command it is done with."""
    opcodes: list[int] = []

    def act(peer: Peer, pdu: Pdu) -> None:
        opcodes.append(pdu.opcode)
        if pdu.opcode != 0x01:
            return
        request = peer.header(0x31, 0x80, pdu.tag, w20=9, w36=0, w40=8192, w44=16384)
        answer = peer.header(0x21, 0x80, pdu.tag, b3=0x08)
        peer.sock.sendall(bytes(request) + bytes(answer))
        peer.stat_sn += 1

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        assert target.execute(WRITE_10, bytes(32768)).status == 0x08
        assert target.execute(WRITE_10, bytes(32768)).status == 0x08
    assert opcodes == [0x01, 0x01]


def test_unsolicited_data_without_immediate_data() -> None:
    got = bytearray()

    def script(peer: Peer) -> None:
        peer.login({"ImmediateData": "No", "InitialR2T": "No", "FirstBurstLength": "16384"})
        command = peer.receive()
        assert not command.data and not command.bhs[1] & 0x80
        for index in range(2):
            pdu = peer.receive()
            assert pdu.opcode == 0x05 and pdu.word(20) == NO_TAG and pdu.word(36) == index
            got.extend(pdu.data)
        assert pdu.bhs[1] & 0x80
        peer.status(command.tag)
        answering(lambda *_: None)(peer)

    with FakeTarget(script, honest_login=False) as fake, open_target(fake) as target:
        assert target.execute(WRITE_10, b"x" * 16384).status == 0
    assert len(got) == 16384


def test_requests_for_data_of_a_bidirectional_command() -> None:
    """They and Data-In are numbered in one sequence (RFC 7143 4.2.2.4)."""
    data, answer = bytes(range(256)) * 128, b"\xa5" * ROOM
    taken = bytearray()
    numbers = count()

    def act(peer: Peer, pdu: Pdu) -> None:
        taken.extend(pdu.data)
        at, left = len(taken), min(len(data) - len(taken), 16384)
        if left and pdu.bhs[1] & 0x80:  # the end of a burst
            header = peer.header(0x31, 0x80, pdu.tag, w20=7, w36=next(numbers), w40=at, w44=left)
            peer.send(header)
        elif not left:
            peer.data_in(pdu.tag, answer, flags=0x80, sn=next(numbers))
            peer.status(pdu.tag)

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        response = target.transport.execute(Command(b"\x7f" + bytes(15), data, ROOM))
        assert bytes(response.data_in) == answer and bytes(taken) == data


def test_bidirectional_command_as_it_stands_on_the_wire() -> None:
    cdb = bytes(range(236))

    def act(peer: Peer, pdu: Pdu) -> None:
        assert pdu.bhs[1] == 0xE1 and pdu.bhs[4] == 58
        assert pdu.word(20) == 24 and pdu.bhs[32:48] == cdb[:16]
        assert pdu.ahs[:4] == bytes.fromhex("00dd0100") and pdu.ahs[4:224] == cdb[16:]
        assert pdu.ahs[224:] == bytes.fromhex("0005020000000038")
        peer.data_in(pdu.tag, bytes(40), flags=0x80)
        # 16 of 56 bytes read did not come; 4 more bytes would have been taken for writing
        peer.status(pdu.tag, b1=0x8C, w40=16, w44=4)

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        response = target.execute(cdb, bytes(24), 56)
    assert response.residual_in == 16 and response.residual_out == -4
    assert len(response.data_in) == 40


def test_slow_drip() -> None:
    def act(peer: Peer, pdu: Pdu) -> None:
        whole = bytes(peer.header(0x21, 0x80, pdu.tag, b3=2)[:5]) + b"\0\0\x0a"
        whole += bytes(peer.header(0x21, 0x80, pdu.tag, b3=2)[8:])
        whole += struct.pack(">H", 8) + bytes.fromhex("7205240000000000") + b"\0\0"
        for byte in whole:
            peer.sock.sendall(bytes([byte]))
            time.sleep(0.001)

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        response = target.execute(READ_10, b"", ROOM)
    assert response.status == 2 and response.sense == bytes.fromhex("7205240000000000")
    assert len(response.data_in) == 0


def test_silence_ends_in_a_timeout_and_the_next_command_connects_anew() -> None:
    calls: list[int] = []

    def act(peer: Peer, pdu: Pdu) -> None:
        calls.append(pdu.tag)
        if len(calls) > 1:
            peer.data_in(pdu.tag, b"x" * ROOM)

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        with pytest.raises(CommandTimeout):
            target.transport.execute(Command(READ_10, b"", ROOM), timeout=0.2)
        assert target.execute(READ_10, b"", ROOM).data_in == b"x" * ROOM


def test_silence_is_noticed_at_the_first_deadline_of_coroutines() -> None:
    calls: list[int] = []

    def act(peer: Peer, pdu: Pdu) -> None:
        calls.append(pdu.tag)
        if len(calls) in (1, 4):  # the others get no answer
            peer.data_in(pdu.tag, b"x" * ROOM)

    async def work(url: str) -> None:
        async with await aio.connect(url, timeout=30.0, reconnect_timeout=0) as target:
            read = partial(target.transport.execute, Command(READ_10, b"", ROOM))
            await read()  # leaves a later deadline to wait for
            late, early = await asyncio.gather(read(10.0), read(0.2), return_exceptions=True)
            assert isinstance(early, CommandTimeout)
            assert isinstance(late, SessionLost) and not isinstance(late, CommandTimeout)
            assert (await read()).data_in == b"x" * ROOM

    with FakeTarget(answering(act)) as fake:
        asyncio.run(work(fake.url))


def test_lost_session_repeats_what_only_reads() -> None:
    calls: list[int] = []

    def act(peer: Peer, pdu: Pdu) -> None:
        calls.append(pdu.tag)
        if len(calls) == 1:
            peer.sock.close()
        else:
            peer.data_in(pdu.tag, b"y" * ROOM)

    with FakeTarget(answering(act)) as fake:
        target = connect(fake.url, timeout=DEADLINE_S, reconnect_timeout=DEADLINE_S)
        with target:
            command = Command(READ_10, b"", ROOM, repeatable=True)
            assert target.transport.execute(command).data_in == b"y" * ROOM
            calls.clear()
            with pytest.raises(SessionLost):
                target.execute(WRITE_10, b"z" * 512)


def test_target_that_comes_back() -> None:
    def act(peer: Peer, pdu: Pdu) -> None:
        peer.data_in(pdu.tag, b"z" * ROOM)

    with (
        held_port() as port,
        FakeTarget(answering(act), port=port) as first,
        connect(first.url, timeout=DEADLINE_S, reconnect_timeout=DEADLINE_S) as target,
    ):
        command = Command(READ_10, b"", ROOM, repeatable=True)
        target.transport.execute(command)
        sent_before = target.bytes_sent
        first.cut()
        first.close()
        again: list[FakeTarget] = []
        restart = threading.Timer(0.3, lambda: again.append(FakeTarget(answering(act), port=port)))
        restart.start()
        assert target.transport.execute(command).data_in == b"z" * ROOM
        assert target.bytes_sent > sent_before
    restart.join()
    again[0].close()


def test_pings_are_answered_and_ours_too() -> None:
    def act(peer: Peer, pdu: Pdu) -> None:
        if pdu.opcode == 0x00 and pdu.tag == NO_TAG:
            assert pdu.word(20) == 0x1234
            return
        if pdu.opcode == 0x00:
            peer.send(peer.header(0x20, 0x80, pdu.tag, w20=NO_TAG))
            peer.stat_sn += 1
            return
        peer.send(peer.header(0x20, 0x80, NO_TAG, w20=0x1234))
        peer.data_in(pdu.tag, bytes(ROOM))

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        target.execute(READ_10, b"", ROOM)
        assert target.ping() > 0
        target.execute(READ_10, b"", ROOM)


def test_command_window_is_kept() -> None:
    """The target allows two commands at a time; ten are submitted."""
    under_way: list[int] = []

    def script(peer: Peer) -> None:
        peer.window = 0
        done = 0
        while done < 10:
            pdu = peer.receive()
            peer.expected = pdu.word(24) + 1
            peer.data_in(pdu.tag, bytes([done]) * ROOM)
            under_way.append(pdu.word(24))
            done += 1
        answering(lambda *_: None)(peer)

    with FakeTarget(script) as fake, open_target(fake) as target:
        pending = [target.transport.submit(Command(READ_10, b"", ROOM)) for _ in range(10)]
        for each in pending:
            assert len(each.result(DEADLINE_S).data_in) == ROOM
    assert under_way == sorted(under_way)


@pytest.mark.parametrize(
    "script",
    [
        lambda peer: peer.sock.sendall(bytes(48)),
        lambda peer: peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 8),
        lambda peer: peer.send(peer.header(0x23, 0x87, peer.receive().tag)),
        lambda peer: peer.send(peer.header(0x23, 0x81, peer.receive().tag), b"no equals sign\0"),
        lambda peer: peer.send(peer.header(0x23, 0x81, peer.receive().tag), b"\xff\xfe=\0"),
        lambda peer: peer.send(peer.header(0x21, 0x81, peer.receive().tag)),
        lambda peer: peer.send(peer.header(0x23, 0x81, peer.receive().tag ^ 3)),
    ],
)
def test_login_answers_that_make_no_sense(script: Callable[[Peer], None]) -> None:
    def then_wait(peer: Peer) -> None:
        script(peer)
        while True:
            peer.receive()

    with FakeTarget(then_wait, honest_login=False) as fake, pytest.raises(Unreachable):
        open_target(fake, timeout=1)


@pytest.mark.parametrize("key", ["MaxBurstLength=0", "MaxBurstLength=x", "FirstBurstLength=1e3"])
def test_negotiated_values_out_of_range(key: str) -> None:
    name, _, value = key.partition("=")

    def script(peer: Peer) -> None:
        peer.login({name: value})

    with (
        FakeTarget(script, honest_login=False) as fake,
        pytest.raises(ProtocolError, match=name),
    ):
        open_target(fake)


def test_login_rounds_are_bounded() -> None:
    def script(peer: Peer) -> None:
        while True:
            pdu = peer.receive()
            peer.send(peer.header(0x23, pdu.bhs[1] & 0x0C, pdu.tag), b"")

    with FakeTarget(script, honest_login=False) as fake, pytest.raises(Unreachable):
        open_target(fake)


def test_refused_login_says_why() -> None:
    def script(peer: Peer) -> None:
        pdu = peer.receive()
        peer.send(peer.header(0x23, 0, pdu.tag, b36=2, b37=3))

    with (
        FakeTarget(script, honest_login=False) as fake,
        pytest.raises(LoginRejected, match="no such target"),
    ):
        open_target(fake)


def test_nobody_listens() -> None:
    with held_port() as port:
        with FakeTarget(lambda _: None, port=port) as fake:
            pass
        with pytest.raises(Unreachable, match="cannot connect"):
            open_target(fake)


def test_no_status_of_an_aborted_command() -> None:
    """SAM permits a target to send no status of an aborted task. The client must still get one."""
    aborted = threading.Event()

    def act(peer: Peer, pdu: Pdu) -> None:
        if pdu.opcode == 0x02:
            aborted.set()  # before the answer: the client may read it at once
            peer.send(peer.header(0x22, 0x80, pdu.tag, b2=0))
            peer.stat_sn += 1

    with FakeTarget(answering(act)) as fake, open_target(fake) as target:
        pending = target.submit(requests.get_attributes(ROOT))
        assert target.abort(pending) == TaskResponse.COMPLETE
        assert aborted.is_set()
        assert isinstance(pending.reply().error, TaskAborted)
