# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of the processors that iosd-sandboxd gives to scripts and to pools."""

from __future__ import annotations

import os
import signal
import struct
import time
from pathlib import Path

import pytest
from proxy import (
    BOUND,
    CPU_GOT,
    FAILING,
    HELLO,
    LIMITS,
    LIMITS_SET,
    SERVING,
    WELCOME,
    Daemon,
    Limits,
    PoolNews,
    control_groups,
)
from proxy import KILL as KILL_SANDBOX

from tests.processes import zygotes_of
from tests.waiting import until

HOLD_S, RAISE_S = 3.0, 0.2  # share.c


def weights(daemon: Daemon) -> tuple[list[str], list[int]]:
    """cpu.idle and the weight of the daemon's group."""
    groups = [Path(group) for group in control_groups(daemon.process.pid)]
    idle = [file.read_text().strip() for group in groups for file in group.glob("cpu.idle")]
    files = [file for group in groups for file in (group / "cpu.shares", group / "cpu.weight")]
    return idle, [int(file.read_text()) for file in files if file.exists()]


def answered(daemon: Daemon) -> None:
    """It has acted on what was sent before.  Without a fork: a late one is a reason for a weight, too."""
    daemon.send(HELLO, 0, struct.pack(">I", 4))
    daemon.wait_for(WELCOME, 0)


def test_scripts_that_starve_get_a_weight_for_a_while(own) -> None:
    begun = time.monotonic()
    daemon = own("--cpu-share", "10")
    daemon.tells = False
    idle, _ = weights(daemon)
    if not idle:
        pytest.skip("this kernel knows no idle groups")
    assert idle == ["0"] or time.monotonic() > begun + HOLD_S  # it starts with a weight
    until(lambda: weights(daemon)[0] == ["1"])
    daemon.send(CPU_GOT, 0, struct.pack(">I", 450))  # a little, and more than their share
    answered(daemon)
    assert weights(daemon)[0] == ["1"]
    until(lambda: raised_once_by_two_reports(daemon), pause=0)
    until(lambda: weights(daemon)[0] == ["1"])


def raised_once_by_two_reports(daemon: Daemon) -> bool:
    """False: a busy machine took so long that the weight may have been raised again, or taken away."""
    begun = time.monotonic()
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))
    answered(daemon)
    first = weights(daemon)
    time.sleep(0.25)  # the weight has had its time to show an effect
    daemon.process.send_signal(signal.SIGSTOP)  # then it finds two reports at once
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))
    together = time.monotonic()
    daemon.process.send_signal(signal.SIGCONT)  # the second is too soon for another raise
    answered(daemon)
    apart = time.monotonic() - together
    second = weights(daemon)
    if apart >= RAISE_S or time.monotonic() - begun >= HOLD_S:
        until(lambda: weights(daemon)[0] == ["1"])
        return False
    (weight,) = first[1]
    assert (first[0], second) == (["0"], (["0"], [2 * weight]))
    return True


def test_limits_that_are_late_are_a_reason_for_a_weight(own) -> None:
    """The zygote gives a sandbox the scratch folder of its job's limits, and needs a processor for it."""
    daemon = own("--cpu-share", "10")
    daemon.tells = False
    if not weights(daemon)[0]:
        pytest.skip("this kernel knows no idle groups")
    sandbox = daemon.spawn(Limits(memory_bytes=64 << 20))
    sandbox.wait_ready()
    (zygote,) = zygotes_of(daemon.process.pid)
    until(lambda: weights(daemon)[0] == ["1"])
    os.kill(zygote, signal.SIGSTOP)
    try:
        daemon.send(LIMITS, sandbox.id, Limits(memory_bytes=128 << 20).encode())
        until(lambda: weights(daemon)[0] == ["0"])
    finally:
        os.kill(zygote, signal.SIGCONT)
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


def test_no_share_at_all(own) -> None:
    daemon = own("--cpu-share", "0")
    daemon.tells = False
    daemon.send(CPU_GOT, 0, struct.pack(">I", 0))
    daemon.run("pass")
    assert weights(daemon)[0] in (["1"], [])


def quotas(daemon: Daemon) -> list[str]:
    """Of the groups of pools."""
    groups = [Path(group) for group in control_groups(daemon.process.pid)]
    names = ("cpu.cfs_quota_us", "cpu.max")
    files = [file for group in groups for name in names for file in group.glob(f"pool-*/{name}")]
    return [file.read_text().split()[0] for file in files]


def bound(daemon: Daemon, percent: int) -> PoolNews:
    daemon.pending.clear()
    daemon.send(BOUND, 0, struct.pack(">I", percent) + b"default")
    return daemon.wait_for_pool("default", SERVING, FAILING)


def test_a_pool_s_share_of_the_processors(own) -> None:
    """A group of its own bounds its sandboxes, and is removed with the daemon."""
    daemon = own()
    processors = os.sysconf("SC_NPROCESSORS_ONLN")
    daemon.run("pass")
    assert quotas(daemon) == []
    assert bound(daemon, 100).state == SERVING
    assert quotas(daemon) == []  # it needs none
    news = bound(daemon, 50)
    if news.state == FAILING:
        pytest.skip(news.why)
    assert quotas(daemon) == [str(100_000 * processors * 50 // 100)]
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    assert "/pool-0" in Path(f"/proc/{sandbox.pid}/cgroup").read_text()
    daemon.send(KILL_SANDBOX, sandbox.id)
    sandbox.wait_exit()
    sandbox.close()
    bound(daemon, 100)
    assert quotas(daemon)[0] in ("-1", "max")
    bound(daemon, 1)
    daemon.socket.close()
    until(lambda: quotas(daemon)[0] in ("-1", "max"))  # another target may want all of them
    daemon.process.terminate()
    assert daemon.wait() == 0
    assert not control_groups(daemon.process.pid)


def test_a_share_that_cannot_be_enforced(own) -> None:
    daemon = own("--isolation", "no-cgroup")
    daemon.run("pass")  # the pool serves
    news = bound(daemon, 50)
    assert news.state == FAILING
    assert "no control group" in news.why
    with pytest.raises(PermissionError, match="no control group"):
        daemon.spawn()
    assert bound(daemon, 100).state == SERVING
    daemon.run("pass")


@pytest.mark.parametrize("body", [b"", bytes(3), bytes(4), struct.pack(">I", 101)])
def test_a_share_that_is_none_ends_the_connection(own, body: bytes) -> None:
    daemon = own()
    daemon.send(BOUND, 0, body)
    with pytest.raises((EOFError, ConnectionResetError)):
        daemon.wait_for_pool("nosuch", SERVING)
