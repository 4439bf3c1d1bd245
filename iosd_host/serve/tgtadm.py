# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to tgtd through tgtadm: one target, one logical unit, an address list.

Not here: starting and watching the daemon (supervise.py).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

from iosd_host.serve.chap import Accounts, ChapAccount, add_account

__all__ = ["CONTROL", "LUN", "NEGOTIATION", "TgtAdm", "TgtError"]

CONTROL = 1  # tgtd's control number; its socket is private, so any does
LUN = 1
IPC_SOCKET = "/var/run/tgtd/socket"
TARGET_ID = 1
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


NO_TARGET = "can't find the target"  # of tgtadm
REFUSED = "tgtadm: invalid request"  # all it says of a store that the module does not open


class TgtError(Exception):
    """tgtadm refused; the text is its own."""


class TgtAdm:
    """One tgtd's control channel.

    Args:
        command: argv of tgtadm, with what makes it run as tgtd's own uid and gid, which it demands.
        environment: holds TGT_IPC_SOCKET of that tgtd.
        control: its control number.
        user: tgtd's uid and gid; None: ours.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        control: int = CONTROL,
        user: tuple[int, int] | None = None,
    ) -> None:
        self.command = [*command, "-C", str(control), "--lld", "iscsi"]
        self.environment = dict(environment)
        self.socket = f"{self.environment.get('TGT_IPC_SOCKET', IPC_SOCKET)}.{control}"
        self.user = user

    async def run(self, operation: str, mode: str, *arguments: str) -> str:
        """Run one operation and return what it printed.

        Raises:
            TgtError: tgtd refused or is not there.
        """
        process = await asyncio.create_subprocess_exec(
            *self.command,
            *("--op", operation, "--mode", mode),
            *arguments,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            text = err.decode(errors="replace").strip() or f"exit {process.returncode}"
            raise TgtError(f"tgtadm --op {operation} --mode {mode}: {text}")
        return out.decode(errors="replace")

    async def alive(self) -> bool:
        """Tell whether tgtd answers at all."""
        try:
            await self.run("show", "portal")
        except TgtError:
            return False
        return True

    async def portals(self) -> list[tuple[str, int]]:
        """Return host and port of each portal that tgtd really listens on."""
        found = re.findall(
            r"^Portal: (.*):(\d+),\d+$", await self.run("show", "portal"), re.MULTILINE
        )
        return [(host.strip("[]"), int(port)) for host, port in found]

    async def open_portal(self, portal: str) -> None:
        """Listen on one more.  Raises: TgtError: the address is taken, or not this host's."""
        await self.run("new", "portal", "--param", f"portal={portal}")

    async def close_portal(self, portal: str) -> None:
        """Listen there no more; connections stay."""
        await self.run("delete", "portal", "--param", f"portal={portal}")

    async def targets(self) -> dict[str, int]:
        """Return name and number of each target that there is.

        On a stock tgtd the name of an initiator may hold line feeds, and then looks like
        further lines of this
        list.  It can add lines only.  So a target is believed if its number is there once, and
        tgtd knows it.

        Raises:
            TgtError: a number is there twice.
        """
        text = await self.run("show", "target")
        found: dict[int, str] = {}
        for number, name in re.findall(r"^Target (\d+): (.*)$", text, re.MULTILINE):
            if int(number) in found:
                raise TgtError(
                    f"tgtadm lists target {number} twice: an initiator has logged in with a name or "
                    "an alias that looks like a target. End its session (tgtadm --mode conn --op show "
                    "and --op delete), and narrow down who may log in."
                )
            found[int(number)] = name
        return {name: number for number, name in found.items() if await self._exists(number)}

    async def _exists(self, number: int) -> bool:
        try:
            await self.run("show", "target", "--tid", str(number))
        except TgtError as error:
            if NO_TARGET not in str(error):
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
        tid = ("--tid", str(number))
        await self.run("new", "target", *tid, "-T", name)
        for key, value in NEGOTIATION.items():
            await self.run("update", "target", *tid, "-n", key, "-v", value)
        if accounts is not None:
            for account in accounts.incoming:
                await self.add_account(account)
                await self.run("bind", "account", *tid, "--user", account.user)
            if accounts.outgoing is not None:
                await self.add_account(accounts.outgoing)
                await self.run(
                    "bind", "account", *tid, "--user", accounts.outgoing.user, "--outgoing"
                )
        unit = ("--lun", str(LUN), "--device-type", "osd", "--bstype", "iosd")
        await self.run("new", "logicalunit", *tid, *unit, "-b", path, "--bsopts", options)
        # Addresses only: tgtd ORs addresses and initiator names, and a client chooses its own name.
        for address in initiators:
            await self.run("bind", "target", *tid, "-I", address)

    async def add_account(self, account: ChapAccount) -> None:
        """Make a CHAP account; its secret shows nowhere.  Raises: TgtError."""
        try:
            error = add_account(self.socket, account, self.user)
        except OSError as failure:
            raise TgtError(f"account '{account.user}': {failure}") from None
        if error:
            raise TgtError(f"account '{account.user}': tgtd's error {error}")

    async def remove(self, number: int) -> None:
        """Close a target's sessions and store, if it is there.

        Raises:
            TgtError: commands are still running; ask again.
        """
        try:
            await self.run("delete", "target", "--tid", str(number), "--force")
        except TgtError as error:
            if NO_TARGET not in str(error):
                raise

    async def shut_down(self) -> None:
        """Close sessions and the store, then end tgtd.  SIGTERM means nothing to it.

        Raises:
            TgtError: commands are still running; ask again.
        """
        await self.remove(TARGET_ID)
        await self.run("delete", "system")
