# SPDX-License-Identifier: GPL-2.0-or-later
"""The property tests report a failure as it was, also when it does not come again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyosd.errors import Unreachable
from pyosd.wire.cdb import Request
from pyosd.wire.reply import Reply
from tests.harness import Harness, program
from tests.property.run_machine import run_machine

COMMANDS = 700
"""After so many, in the middle of some history, the harness is gone."""


class DiesOnce(Harness):
    """Its first process dies by itself."""

    first = True

    def start(self) -> None:
        super().start()
        if not self.first:
            return
        self.first = False
        left, reply = iter(range(COMMANDS)), self.osd.reply

        def reply_or_die(request: Request, *options: Any) -> Reply:
            if next(left, None) is None:
                self.kill()
            return reply(request, *options)

        vars(self.osd)["reply"] = reply_or_die


def test_the_failure_is_reported_not_that_it_is_rare(tmp_path: Path) -> None:
    harness = DiesOnce(program(), {"memory": 1}, tmp_path / "log")
    with pytest.raises(Unreachable):
        run_machine(harness, 1, 100, restarts=False)
    assert not harness.first and harness.ended()
