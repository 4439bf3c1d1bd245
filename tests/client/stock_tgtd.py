# SPDX-License-Identifier: GPL-2.0-or-later
"""A stock tgtd of one's own on an ephemeral port, with whatever logical units a test wants."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

NAME = "iqn.2026-11.org.iosd:test"
_control_ports = itertools.count(os.getpid() % 20000 + 100)
_START_TIMEOUT = 60.0


class StockTgtd:
    """tgtd in the foreground with its control socket in a directory of its own."""

    def __init__(self, folder: Path, preload: Path | None = None) -> None:
        self.folder = folder
        self.control = str(next(_control_ports))
        self.environment = dict(os.environ, TGT_IPC_SOCKET=str(folder / "ipc"))
        self.log = (folder / "tgtd.log").open("wb")
        daemon_environment = dict(self.environment)
        if preload:
            daemon_environment["LD_PRELOAD"] = str(preload)
        tgtd = shutil.which("tgtd") or "/usr/sbin/tgtd"
        self.process = subprocess.Popen(
            [tgtd, "-f", "-C", self.control, "--iscsi", "portal=127.0.0.1:0"],
            env=daemon_environment,
            stdout=self.log,
            stderr=self.log,
        )
        try:
            self._wait_for_control()
            self.admin("new", "target", "--tid", "1", "-T", NAME)
            self.port = self._find_port()
            self._wait_for_portal()
        except BaseException:
            self.stop()
            raise

    def admin(self, operation: str, mode: str, *arguments: str) -> str:
        """Run tgtadm; returns what it prints.  Raises: RuntimeError: what it complains about."""
        tgtadm = shutil.which("tgtadm") or "/usr/sbin/tgtadm"
        command = [tgtadm, "-C", self.control, "--lld", "iscsi"]
        command += ["--op", operation, "--mode", mode]
        done = subprocess.run(
            [*command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"tgtadm {operation} {mode} {arguments}: {done.stderr.strip()}")
        return done.stdout

    def parameters(self, **values: str | int) -> None:
        """Target parameters, for sessions that log in afterwards."""
        for name, value in values.items():
            self.admin("update", "target", "--tid", "1", "-n", name, "-v", str(value))

    def large_transfers(self) -> None:
        """The large segments and bursts the product asks for."""
        self.parameters(
            MaxRecvDataSegmentLength=16776192,
            MaxBurstLength=16776192,
            FirstBurstLength=16776192,
            InitialR2T="No",
            ImmediateData="Yes",
        )

    def add_unit(self, lun: int, path: Path, *arguments: str) -> None:
        """A logical unit over a file or directory."""
        unit: Sequence[str] = ("--tid", "1", "--lun", str(lun), "-b", str(path), *arguments)
        self.admin("new", "logicalunit", *unit)

    def bind(self) -> None:
        """Let loopback log in."""
        self.admin("bind", "target", "--tid", "1", "-I", "127.0.0.1")

    def account(self, user: str, secret: str, outgoing: bool = False) -> None:
        """A CHAP account: incoming, or (outgoing) the target's own."""
        self.admin("new", "account", "--user", user, "--password", secret)
        extra = ("--outgoing",) if outgoing else ()
        self.admin("bind", "account", "--tid", "1", "--user", user, *extra)

    def url(self, lun: int, login: str = "") -> str:
        return f"iscsi://{login}127.0.0.1:{self.port}/{NAME}/{lun}"

    def stop(self) -> None:
        """Kill: stock tgtd ignores SIGTERM."""
        self.process.kill()
        self.process.wait()
        self.log.close()

    def _wait_for_control(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            try:
                self.admin("show", "target")
                return
            except RuntimeError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _find_port(self) -> int:
        shown = self.admin("show", "portal")
        match = re.search(r"127\.0\.0\.1:(\d+)", shown)
        assert match, shown
        return int(match[1])

    def _wait_for_portal(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
