# SPDX-License-Identifier: GPL-2.0-or-later
"""What `osd job logs -f` prints if the target runs the job again; needs no target."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, cast

import pytest

from pyosd.cli.jobs.logs import Output
from pyosd.jobs.job import Job
from pyosd.wire.job_status import JobStatus


class Repeated:
    """A job whose output is that of its present attempt."""

    label = "0x10000/0x10001"

    def __init__(self) -> None:
        self.attempt, self.output, self.done = 1, b"", False

    def iter_output(self, start: int) -> Iterator[bytes]:
        yield from filter(None, [self.output[start:]])

    def status(self) -> Any:
        class Status:
            attempt, stdout_length, done = self.attempt, len(self.output), self.done

        return Status


@pytest.mark.parametrize("prefix", ["", "job | "])
def test_each_attempt_is_printed_from_its_start(
    prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job, printed = Repeated(), io.BytesIO()
    shown = Output(cast(Job, job), stderr=False, to=cast(Any, printed), tail=None, prefix=prefix)
    for job.attempt, job.output, job.done in (
        (1, b"one\ntw", False),
        (1, b"", False),  # it waits for another attempt
        (2, b"1\n", False),
        (2, b"1\n2\n", True),
    ):
        shown.copy(cast(JobStatus, job.status()), job.done)
    lines = [prefix.encode() + each for each in (b"one\n", b"tw", b"1\n", b"2\n")]
    if prefix:
        lines[1] += b"\n"
    assert printed.getvalue() == b"".join(lines)
    assert "attempt 2 begins" in capsys.readouterr().err
