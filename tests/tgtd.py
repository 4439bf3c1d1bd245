# SPDX-License-Identifier: GPL-2.0-or-later
"""A tgtd of a test's own, stock or hardened, with an OSD in memory and nothing else around it; and an
initiator that breaks the rules of iSCSI.

Not here: a whole target (tests/serving.py).
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from iosd_host.common import paths
from iosd_host.serve.tgtd import Tgtd
from tests.e2e.raw_iscsi import FINAL, RawSession

MODULE = paths.Component("bs_iosd_test.so", "target")
"""The module with the stores and options of target/testing/, which the product does not have."""
NAME = "iqn.2026-11.iosd:one"
START_S = ANSWER_S = 60.0
LOOPS_S = 5.0  # a stock daemon that answers nobody for so long loops
NOP_OUT, SCSI, TASK_MANAGEMENT, LOGIN, TEXT, DATA_OUT = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05
NOP_IN, RESPONSE, TMF_RESPONSE, DATA_IN, R2T, REJECT = 0x20, 0x21, 0x22, 0x25, 0x31, 0x3F
IMMEDIATE = 0x40
SIMPLE, ORDERED, HEAD_OF_QUEUE = 1, 2, 3
NO_TAG = 0xFFFF_FFFF
TEST_UNIT_READY = bytes(16)
ABORT_TASK, LOGICAL_UNIT_RESET = 1, 5


class Daemon:
    """A context manager.  Args: parameters: of the target, as tgtadm has them.  options: of the module."""

    def __init__(self, tgtd: Tgtd, *, options: str = "", **parameters: str) -> None:
        self.tgtd, self.parameters = tgtd, parameters
        self.folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
        self.gate = self.folder / "hold"
        self.options = f"memory=1;hold={self.gate}{options}"
        self.log = self.folder / "log"
        self.environment = os.environ | {"TGT_IPC_SOCKET": str(self.folder / "s")}

    def __enter__(self) -> Daemon:
        preload = {"LD_PRELOAD": str(paths.find_component(MODULE))}
        command = ["prlimit", "--core=0", str(self.tgtd.path), "-f", "-C", "1"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--iscsi", "portal=127.0.0.1:0"],
                env=self.environment | preload,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_S
        while b"Portal" not in self.adm("show", "portal", check=False):
            assert self.process.poll() is None and time.monotonic() < deadline, self.text()
            time.sleep(0.01)
        port = self.adm("show", "portal").decode().split("Portal: 127.0.0.1:")[1].split(",")[0]
        self.adm("new", "target", "-T", NAME)
        for key, value in self.parameters.items():
            self.adm("update", "target", "-n", key, "-v", value)
        unit = ("--lun", "1", "--device-type", "osd", "--bstype", "iosd", "-b", str(self.folder))
        self.adm("new", "logicalunit", *unit, "--bsopts", self.options)
        self.adm("bind", "target", "-I", "ALL")
        self.url = f"iscsi://127.0.0.1:{port}/{NAME}/1"
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.unlink(missing_ok=True)
        self.process.kill()
        self.process.wait()
        subprocess.run(["rm", "-r", self.folder], check=True)

    def adm(
        self, operation: str, mode: str, *words: str, check: bool = True, seconds: float = START_S
    ) -> bytes:
        """What tgtadm prints.  Of all targets when they are to be shown, else of ours."""
        tid = ("--tid", "1") if mode in ("target", "logicalunit", "conn") else ()
        if (operation, mode) == ("show", "target"):
            tid = ()
        command = [str(paths.find_program("tgtadm", "tgt")), "-C", "1", "--lld", "iscsi"]
        done = subprocess.run(
            [*command, "--op", operation, "--mode", mode, *tid, *words],
            env=self.environment,
            capture_output=True,
            check=False,
            timeout=seconds,
        )
        assert not check or done.returncode == 0, done.stderr.decode() + self.text()
        return done.stdout

    def text(self) -> str:
        """What it logged."""
        return self.log.read_text(errors="replace")[-12000:]

    def serves(self, patience: float = ANSWER_S) -> bool:
        """Whether it lives and answers a new session, which may be what it dies of."""
        for _ in range(1 if self.tgtd.hardened else 20):
            try:
                with Attacker(self, patience) as session:
                    session.scsi(TEST_UNIT_READY)
                    session.answer()
            except OSError:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(1)
                return False
            if self.process.poll() is not None:
                return False
        return True

    def connected(self) -> bool:
        """Whether it has any session's connection.

        Raises: subprocess.TimeoutExpired: it does not say.  A stock one may loop, and tgtadm with it.
        """
        seconds = START_S if self.tgtd.hardened else LOOPS_S
        return b"Connection" in self.adm("show", "conn", check=False, seconds=seconds)

    def resident(self) -> int:
        """Bytes of memory it has."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) << 10


def ahs_cdb(length: int, cdb: bytes) -> bytes:
    """An extended CDB segment with what follows its type byte; padded."""
    segment = struct.pack(">HBB", length, 1, 0) + cdb
    return segment + bytes(-len(segment) % 4)


def ahs_length(length: int) -> bytes:
    """The segment of a bidirectional command's read length."""
    return struct.pack(">HBBI", 5, 2, 0, length)


class Attacker(RawSession):
    """A session that numbers its commands itself, and may send anything."""

    def __init__(self, daemon: Daemon, timeout: float = ANSWER_S, /, **keys: str) -> None:
        super().__init__(daemon.url, login=False, **keys)
        self.socket.settimeout(timeout)
        self.serial = 0

    def __enter__(self) -> Self:
        try:
            self.login()
        except BaseException:
            self.socket.close()
            raise
        return self

    def ready(self) -> Attacker:
        """Take the unit attention that the first command of a session gets."""
        self.scsi(TEST_UNIT_READY)
        assert self.answer()[0][3] == 2
        return self

    def send(
        self, opcode: int, flags: int, fields: bytes, *, ahs: bytes = b"", data: bytes = b""
    ) -> None:
        """A PDU; fields: from byte 8 on."""
        header = struct.pack(">BBHB", opcode, flags, 0, len(ahs) // 4)
        header += len(data).to_bytes(3, "big") + fields.ljust(40, b"\0")
        self.socket.sendall(header + ahs + data + bytes(-len(data) % 4))

    def lun(self, number: int | None = None) -> bytes:
        return struct.pack(">BB6x", 0, self.address.lun if number is None else number)

    def scsi(
        self,
        cdb: bytes,
        flags: int = FINAL,
        *,
        tag: int = 2,
        length: int = 0,
        ahs: bytes = b"",
        data: bytes = b"",
        lun: int | None = None,
        serial: int | None = None,
        attribute: int = SIMPLE,
        opcode: int = SCSI,
    ) -> None:
        """A SCSI Command; serial: its CmdSN, None: the next."""
        if serial is None:
            serial = self.serial
            self.serial += not opcode & IMMEDIATE
        fields = self.lun(lun) + struct.pack(">IIII", tag, length, serial, 1) + cdb[:16]
        self.send(opcode, flags | attribute, fields, ahs=ahs, data=data)

    def osd(self, cdb: bytes, flags: int = FINAL, **more: object) -> None:
        """A command of 236 bytes."""
        self.scsi(cdb, flags, ahs=ahs_cdb(len(cdb) - 15, cdb[16:]), **more)  # type: ignore[arg-type]

    def data_out(
        self,
        ttt: int,
        offset: int,
        data: bytes,
        *,
        final: bool = True,
        tag: int = 2,
        number: int = 0,
    ) -> None:
        """Args: number: DataSN, which counts from 0 in each sequence."""
        fields = self.lun() + struct.pack(">IIIIIII", tag, ttt, 0, 1, 0, number, offset)
        self.send(DATA_OUT, FINAL * final, fields, data=data)

    def manage(self, function: int, referenced: int, tag: int, *, data: bytes = b"") -> None:
        fields = self.lun() + struct.pack(">IIIII", tag, referenced, self.serial, 1, self.serial)
        self.send(IMMEDIATE | TASK_MANAGEMENT, FINAL | function, fields, data=data)

    def ping(self, tag: int, *, ahs: bytes = b"", data: bytes = b"") -> None:
        fields = bytes(8) + struct.pack(">IIII", tag, NO_TAG, self.serial, 1)
        self.send(IMMEDIATE | NOP_OUT, FINAL, fields, ahs=ahs, data=data)

    def answer(self) -> tuple[bytes, bytes]:
        """The next PDU.  Raises: ConnectionError, TimeoutError."""
        return self.receive()

    def outcome(self) -> str | int:
        """Response to an offence: "closed", "nothing", the reason of a Reject, or another PDU's
        opcode as text."""
        try:
            header, data = self.answer()
        except TimeoutError:
            return "nothing"
        except OSError:
            return "closed"
        if header[0] & 0x3F != REJECT:
            return f"{header[0] & 0x3F:#x}"
        assert len(data) == 48, "the header that was rejected"
        return header[2]

    def r2t(self) -> tuple[int, int]:
        """Transfer tag and length of an R2T."""
        header, _ = self.answer()
        assert header[0] & 0x3F == R2T, header.hex()
        return int.from_bytes(header[20:24], "big"), int.from_bytes(header[44:48], "big")
