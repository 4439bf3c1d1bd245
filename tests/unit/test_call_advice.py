# SPDX-License-Identifier: GPL-2.0-or-later
"""The error of a call without a record names a remedy that such a call has."""

from __future__ import annotations

import pytest

from pyosd.errors import JobTimeout, OSDError
from pyosd.functions.calling import plain_result
from pyosd.types import Sense
from pyosd.wire.exec_params import ResultForm
from pyosd.wire.reply import CallReply

WALL_LIMIT = 301


def test_a_call_whose_time_is_over() -> None:
    sense = Sense(0xB, 0x80, 0x03, command_information=WALL_LIMIT)
    error = OSDError(0xB, 0x80, 0x03, "job ended: limit", sense=sense)
    reply = CallReply(None, b"", 0, ResultForm.REPORT, False, error)
    with pytest.raises(JobTimeout, match="give the call more time") as found:
        plain_result("count", reply)
    assert "keep a record" in found.value.hint and "smaller jobs" not in str(found.value)
