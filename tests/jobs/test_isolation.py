# SPDX-License-Identifier: GPL-2.0-or-later
"""A target that demands more isolation than its daemon has takes no jobs, and says why."""

from __future__ import annotations

from pathlib import Path

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.wire.reply import Reply
from tests.expect import ISOLATION, check
from tests.harness_transport import HarnessTransport
from tests.jobs.conftest import HARNESS, Target, skip_without_sandboxes
from tests.waiting import until


class Demanding(Target):
    """Full isolation demanded, a daemon without any of it."""

    level = "minimal"

    def start(self) -> None:
        options = f"dir={self.data};sandboxd={self.socket};isolation=full"
        self.transport = HarnessTransport([str(HARNESS), options], self.stderr)
        self.commands = Commands(self.transport)


def test_daemon_with_less_than_demanded(tmp_path: Path) -> None:
    """Jobs that came before the daemon was heard of are kept; later ones are refused."""
    skip_without_sandboxes()
    target = Demanding(tmp_path)
    try:

        def refused() -> Reply | None:
            reply = target.commands.reply(rq.execute(target.partition, b"pass"))
            return reply if reply.error else None

        check(until(refused, "the daemon was not refused"), ISOLATION)
    finally:
        target.stop()
