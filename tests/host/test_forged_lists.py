# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of targets, where an initiator has written lines into it: a stock tgtd prints what it logged in
with."""

from __future__ import annotations

import asyncio

import pytest

from iosd_host.serve.tgtadm import TgtAdm, TgtError
from iosd_host.serve.tgtd import find_tgtd
from tests.serving import missing
from tests.tgtd import NAME, Attacker, Daemon

pytestmark = pytest.mark.tgtd


def targets(daemon: Daemon) -> dict[str, int]:
    return asyncio.run(TgtAdm(daemon.environment["TGT_IPC_SOCKET"]).targets())


def test_targets_that_an_initiator_made_up() -> None:
    if why := missing():
        pytest.skip(why)
    tgtd = find_tgtd("stock")
    if tgtd.hardened:
        pytest.skip("the distribution's tgtd is one of ours")
    with Daemon(tgtd) as daemon:
        assert targets(daemon) == {NAME: 1}
        with Attacker(daemon, InitiatorAlias="here\nTarget 7: iqn.2026-11.org.iosd:made-up"):
            assert targets(daemon) == {NAME: 1}, "tgtd knows of no target 7"
        with Attacker(daemon, InitiatorAlias=f"here\nTarget 7: {NAME}"):
            assert targets(daemon) == {NAME: 1}
        with (
            Attacker(daemon, InitiatorAlias="here\nTarget 1: iqn.2026-11.org.iosd:made-up"),
            pytest.raises(TgtError, match="lists target 1 twice: an initiator"),
        ):
            targets(daemon)
