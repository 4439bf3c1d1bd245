# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions to which something happens while a command is under way: task management, or their loss.

Lives here: such a session, and the target it has.  Not here: the tests (test_task_management.py,
test_exec_aborted.py), the fixtures (conftest.py).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pyosd
from pyosd import requests as rq
from pyosd.errors import OSDError
from pyosd.types import ref
from pyosd.wire.cdb import Request, encode
from tests.e2e.raw_iscsi import FINAL, RawSession, reset_on_close
from tests.serving import Serving
from tests.waiting import until

TASK_MANAGEMENT, RESPONSE, R2T, DATA_IN, ANSWER = 0x42, 0x22, 0x31, 0x25, 0x21
ABORT_TASK, ABORT_TASK_SET, CLEAR_TASK_SET, UNIT_RESET, WARM_RESET, COLD_RESET = 1, 2, 4, 5, 6, 7
DONE, NO_SUCH_TASK, NOT_SUPPORTED = 0, 1, 5
FUNCTIONS = {"task": ABORT_TASK, "set": ABORT_TASK_SET, "reset": UNIT_RESET}
LOSSES = ("close", "reset", "reinstate")
VICTIM, MANAGER = 2, 9  # task tags
WAIT_S = 60.0


class Victim(RawSession):
    """A session whose one command something happens to."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(url)
        command, _ = encode(rq.get_attributes(ref(0x1_0000)))
        self.socket.sendall(self.command(command.cdb, tag=1))
        self.receive()  # a unit attention: the first command of a session

    def begin(self, request: Request) -> int | None:
        """Send the command alone.  Returns: what an R2T wants to be answered with, if one comes."""
        self.request, _ = encode(request)
        out, room = bytes(self.request.data_out), self.request.data_in_length
        pdu = self.command(self.request.cdb, data_out=len(out), data_in=room, tag=VICTIM, serial=1)
        self.socket.sendall(pdu)
        if not out:
            return None
        header, _ = self.receive()
        assert header[0] & 0x3F == R2T
        return int.from_bytes(header[20:24], "big")

    def start(self, request: Request) -> None:
        """Send it with its data; the answer is not waited for."""
        transfer_tag = self.begin(request)
        if transfer_tag is not None:
            out = bytes(self.request.data_out)
            self.socket.sendall(self.data(VICTIM, transfer_tag, 0, out, True))

    def manage(self, function: int) -> None:
        """Send a task management function about it."""
        lun = struct.pack(">BB6x", 0, self.address.lun)
        flags = FINAL | function
        referenced = VICTIM if function == ABORT_TASK else 0xFFFF_FFFF
        pdu = struct.pack(">BBHI8sIIIII", TASK_MANAGEMENT, flags, 0, 0, lun, MANAGER, referenced,
                          2, 3, 1)  # fmt: skip
        self.socket.sendall(pdu.ljust(48, b"\0"))

    def outcome(self) -> tuple[int | None, int]:
        """SAM status of the command, None: not answered; response to the function."""
        status = None
        while True:
            header, _ = self.receive()
            kind = header[0] & 0x3F
            if kind == RESPONSE:
                assert int.from_bytes(header[16:20], "big") == MANAGER
                return status, header[2]
            assert int.from_bytes(header[16:20], "big") == VICTIM
            if kind == ANSWER or (kind == DATA_IN and header[1] & 1):
                status = header[3]

    def lose(self, how: str) -> None:
        """End the session as its initiator, or its network, would; a session of the same initiator and
        identifier takes its place (the old connection stays open as long as tgtd has the command)."""
        if how == "reinstate":
            Victim(self.url).socket.close()
        elif how == "reset":
            reset_on_close(self.socket)
        self.socket.close()


@dataclass
class Unit:
    """A target whose long commands wait; gate is the file."""

    serving: Serving
    gate: Path
    victims: list[Victim]

    def victim(self) -> Victim:
        self.victims.append(Victim(self.serving.url))
        return self.victims[-1]


def is_ready(target: pyosd.Target) -> bool:
    """False: a unit attention, of which each reset leaves one."""
    try:
        target.test_unit_ready()
    except OSDError as error:
        assert error.sense is not None
        assert error.sense.sense_key == 6, error
        return False
    return True


def alive(unit: Unit, target: pyosd.Target) -> None:
    """The same tgtd serves on: this session, and a new one."""
    until(lambda: is_ready(target))
    with unit.serving.connect(reconnect_timeout=0) as session:
        session.list_partitions()
    assert unit.serving.process.poll() is None
