# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to tgtd, as tgtadm sends them to its management socket: one target, one logical unit, an
address list, accounts.

From here and not by tgtadm: a process for each would cost more than all tgtd does, and tgtadm takes a
secret only as an argument, which every user of the host may read while it runs.

Not here: starting and watching the daemon (supervise.py).
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from functools import partial

from iosd_host.common.acting import call_as
from iosd_host.serve.chap import Accounts, ChapAccount

__all__ = ["CONTROL", "LUN", "NEGOTIATION", "TgtAdm", "TgtError"]

CONTROL = 1  # tgtd's control number; its socket is private, so any does
LUN = 1
IPC_SOCKET = "/var/run/tgtd/socket"
TARGET_ID = 1
ANSWER_MOST = 64 << 20
ANSWER_S = 300.0  # of one request, such as to open a store with recovery; as START_S of process.py
AGAIN_S = 0.01  # tgtd starts, or its queue of connections is full
LARGEST_SEGMENT = (
    16776192  # the largest multiple of 512 that fits the 24-bit length of a data segment
)

# Large segments and bursts, no R2T for what fits: several times the throughput of tgtd's defaults.
NEGOTIATION: Mapping[str, str] = {
    "MaxRecvDataSegmentLength": str(LARGEST_SEGMENT),
    "FirstBurstLength": str(LARGEST_SEGMENT),
    "MaxBurstLength": str(LARGEST_SEGMENT),
    "InitialR2T": "No",
    "ImmediateData": "Yes",
    "MaxQueueCmd": "128",
}

# struct tgtadm_req: mode, op, lld, length of all, tid, sid, lun, cid, host, device type, direction of an
# account, pack, force; struct tgtadm_rsp: error, length of all.
REQUEST, ANSWER = struct.Struct("=ii64sIiQQIIIIII"), struct.Struct("=II")
OPERATIONS = ("new", "delete", "show", "bind", "unbind", "update")
MODES = ("system", "target", "logicalunit", "portal", "lld", "session", "conn", "account")
DEVICE_OSD = 0x11
OUTGOING = 1
ERRORS = (  # of tgtd by number, in the words of tgtadm
    "success",
    "unknown error",
    "out of memory",
    "can't find the driver",
    "can't find the target",
    "can't find the logical unit",
    "can't find the session",
    "can't find the connection",
    "can't find the binding",
    "this target already exists",
    "this logical unit number already exists",
    "this binding already exists",
    "this access control rule already exists",
    "this access control rule does not exist",
    "this account already exists",
    "can't find the account",
    "too many accounts",
    "invalid request",
    "this target already has an outgoing account",
    "this target is still active",
    "this logical unit is still active",
    "this driver is busy",
    "this operation isn't supported",
    "unknown parameter",
    "this device has Prevent Removal set",
)
NO_ANSWER, NO_TARGET, REFUSED = -1, 4, 17  # the last: all it says of a store that does not open


class TgtError(Exception):
    """tgtd refused, or is not there.

    Attributes:
        number: of tgtd's error.
    """

    def __init__(self, text: str, number: int = NO_ANSWER) -> None:
        super().__init__(text)
        self.number = number


class TgtAdm:
    """One tgtd's management socket.

    Args:
        ipc_socket: its TGT_IPC_SOCKET.
        control: its control number.
        user: tgtd's uid and gid: it answers only this user; None: ours are the same.
        answer_s: time limit of one request, in seconds.
    """

    def __init__(
        self,
        ipc_socket: str = IPC_SOCKET,
        control: int = CONTROL,
        user: tuple[int, int] | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.place = f"{ipc_socket}.{control}"
        self.user = user
        self.answer_s = answer_s

    async def ask(
        self,
        operation: str,
        mode: str,
        parameters: str = "",
        *,
        tid: int = -1,
        lun: int = 0,
        device: int = 0,
        direction: int = 0,
        force: bool = False,
    ) -> str:
        """Have one operation done and return the text of tgtd's answer.

        Raises:
            TgtError: tgtd refused, is not there, or has not answered in time.
        """
        text = parameters.encode() + b"\0" if parameters else b""  # tgtd reads a C string
        request = REQUEST.pack(
            *(MODES.index(mode), OPERATIONS.index(operation), b"iscsi", REQUEST.size + len(text)),
            *(tid, 0, lun, 0, 0, device, direction, 0, force),
        )
        try:
            async with asyncio.timeout(self.answer_s):
                error, told = await self._exchange(request + text)
            why = ERRORS[error] if error < len(ERRORS) else f"error {error}"
        except TimeoutError:
            error, why = NO_ANSWER, f"no answer within {self.answer_s:g} s"
        except EOFError:
            error, why = NO_ANSWER, "no answer"
        except OSError as failure:
            error, why = NO_ANSWER, str(failure)
        if error:
            raise TgtError(f"request '{operation} {mode}' to tgtd: {why}", error)
        return told.rstrip(b"\0").decode(errors="replace")

    async def _connect(self, sock: socket.socket) -> None:
        """Never blocks the event loop: a full queue is tried again."""
        sock.setblocking(False)
        while True:
            try:
                return call_as(self.user, partial(sock.connect, self.place))
            except BlockingIOError:
                await asyncio.sleep(AGAIN_S)

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        """tgtd takes one request from each connection, and checks the user that called connect()."""
        with socket.socket(socket.AF_UNIX) as sock:
            await self._connect(sock)
            reader, writer = await asyncio.open_unix_connection(sock=sock)
            try:
                writer.write(request)
                error, length = ANSWER.unpack(await reader.readexactly(ANSWER.size))
                if length > ANSWER_MOST:  # somebody else has taken over tgtd
                    raise OSError(errno.EMSGSIZE, f"an answer of {length} bytes")
                return error, await reader.readexactly(max(0, length - ANSWER.size))
            finally:
                writer.close()

    async def silence(self) -> str:
        """The reason why tgtd does not answer; "": it does."""
        try:
            await self.portals()
        except TgtError as error:
            return str(error)
        return ""

    async def alive(self) -> bool:
        """Tell whether tgtd answers at all."""
        return not await self.silence()

    async def portals(self) -> list[tuple[str, int]]:
        """Return host and port of each portal that tgtd really listens on."""
        found = re.findall(
            r"^Portal: (.*):(\d+),\d+$", await self.ask("show", "portal"), re.MULTILINE
        )
        return [(host.strip("[]"), int(port)) for host, port in found]

    async def first_portals(self) -> list[tuple[str, int]]:
        """The same of a tgtd that starts: asks until it answers."""
        while True:
            try:
                return await self.portals()
            except TgtError:
                await asyncio.sleep(AGAIN_S)

    async def open_portal(self, portal: str) -> None:
        """Listen on one more.  Raises: TgtError: the address is taken, or not this host's."""
        await self.ask("new", "portal", f"portalOps portal={portal},")

    async def close_portal(self, portal: str) -> None:
        """Listen there no more; connections stay."""
        await self.ask("delete", "portal", f"portalOps portal={portal},")

    async def targets(self) -> dict[str, int]:
        """Return name and number of each target that there is.

        On a stock tgtd the name of an initiator may hold line feeds, and then looks like
        further lines of this
        list.  It can add lines only.  So a target is believed if its number is there once, and
        tgtd knows it.

        Raises:
            TgtError: a number is there twice.
        """
        text = await self.ask("show", "target")
        found: dict[int, str] = {}
        for number, name in re.findall(r"^Target (\d+): (.*)$", text, re.MULTILINE):
            if int(number) in found:
                raise TgtError(
                    f"tgtd lists target {number} twice: an initiator has logged in with a name or "
                    "an alias that looks like a target. End its session (tgtadm --mode conn --op show "
                    "and --op delete), and narrow down who may log in."
                )
            found[int(number)] = name
        return {name: number for number, name in found.items() if await self._exists(number)}

    async def _exists(self, number: int) -> bool:
        try:
            await self.ask("show", "target", tid=number)
        except TgtError as error:
            if error.number != NO_TARGET:
                raise
            return False
        return True

    async def create(
        self,
        name: str,
        path: str,
        options: str,
        initiators: Sequence[str],
        accounts: Accounts | None,
        number: int = TARGET_ID,
    ) -> None:
        """Make the target and its logical unit; initiators may log in once this returns."""
        await self.ask("new", "target", f"targetname={name}", tid=number)
        for key, value in NEGOTIATION.items():
            await self.ask("update", "target", f"{key}={value}", tid=number)
        if accounts is not None:
            for account in accounts.incoming:
                await self.add_account(account)
                await self.ask("bind", "account", f"user={account.user}", tid=number)
            if own := accounts.outgoing:
                await self.add_account(own)
                await self.ask(
                    "bind", "account", f"user={own.user}", tid=number, direction=OUTGOING
                )
        unit = f"path={path},bstype=iosd,bsopts={options}"
        await self.ask("new", "logicalunit", unit, tid=number, lun=LUN, device=DEVICE_OSD)
        # Addresses only: tgtd ORs addresses and initiator names, and a client chooses its own name.
        for address in initiators:
            await self.ask("bind", "target", f"initiator-address={address}", tid=number)

    async def add_account(self, account: ChapAccount) -> None:
        """Make a CHAP account; its secret shows nowhere.  Raises: TgtError."""
        try:
            await self.ask("new", "account", f"user={account.user},password={account.secret}")
        except TgtError as error:
            raise TgtError(f"account '{account.user}': {error}", error.number) from None

    async def remove_account(self, user: str) -> None:
        """Raises: TgtError: there is none."""
        await self.ask("delete", "account", f"user={user}")

    async def remove(self, number: int) -> None:
        """Close a target's sessions and store, if it is there.

        Raises:
            TgtError: commands are still running; ask again.
        """
        try:
            await self.ask("delete", "target", tid=number, force=True)
        except TgtError as error:
            if error.number != NO_TARGET:
                raise

    async def shut_down(self) -> None:
        """Close sessions and the store, then end tgtd.  SIGTERM means nothing to it.

        Raises:
            TgtError: commands are still running; ask again.
        """
        await self.remove(TARGET_ID)
        await self.ask("delete", "system")
