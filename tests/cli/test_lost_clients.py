# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that go while they wait or follow: killed, or with their terminal.  The job goes on, and nothing
of the client stays (reliability 20; Ctrl-C: test_jobs.py, test_following.py).
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyosd import Target, connect
from pyosd.cli.frame.codes import Exit
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobState
from tests import warm
from tests.cli.conftest import Run
from tests.cli.test_following import DEADLINE_S, GATED
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

OSD = Path(sys.executable).parent / "osd"


class Gated:
    """A script that prints `first` and waits to be let go, and what runs it."""

    def __init__(self, target: Target, pid: str, folder: Path) -> None:
        self.target, self.zone = target, ObjectRef.parse(pid)
        self.gate = target.create(self.zone.partition_id)
        self.script = folder / "gated.py"
        place = f"({self.gate.partition_id}, {self.gate.object_id})"
        self.script.write_text(GATED.replace("*osd.args", f"*{place}"))

    def words(self, url: str, *flags: str) -> list[str]:
        """`osd exec` of it."""
        zone = str(self.zone)
        return [str(OSD), "exec", str(self.script), "--zone", zone, "--target", url, *flags]

    def goes_on(self) -> None:
        """The only job runs, and ends by itself once it is let go."""
        (status,) = self.target.jobs(self.zone.partition_id)
        assert status.state is JobState.RUNNING
        self.target.write(self.gate, 0, b"x")
        job = self.target.job(status.id)
        assert job.wait(DEADLINE_S).state is JobState.COMPLETED
        assert job.output() == b"first\nlast\n"


@pytest.mark.parametrize("flag", ["--wait", "--follow"])
def test_killed_client(osd: Run, pid: str, serving: Serving, tmp_path: Path, flag: str) -> None:
    with connect(serving.url) as target:
        gated = Gated(target, pid, tmp_path)
        client = warm.Python(gated.words(serving.url, flag), stdout=subprocess.PIPE)
        with client:
            wait_for_first_line(target, pid)
            client.kill()
        assert client.returncode == -signal.SIGKILL
        gated.goes_on()


def test_target_that_goes(tmp_path: Path) -> None:
    """A client whose target ends for good leaves with the job's id: it is all one needs later.  Both flags
    at once: each client tries for a while to reach the target again."""
    clients = {}
    with Serving() as served, connect(served.url) as target:
        for flag in ("--wait", "--follow"):
            gated = Gated(target, str(ref(target.create_partition())), tmp_path)
            client = warm.Python(
                gated.words(served.url, flag), stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            wait_for_first_line(target, str(gated.zone))
            (job,) = (str(each.id) for each in target.jobs(gated.zone.partition_id))
            clients[flag] = client, job
    for flag, (client, job) in clients.items():
        _, talk = client.communicate(timeout=DEADLINE_S)
        assert client.returncode == Exit.UNREACHABLE, flag
        assert f"osd job wait {job}" in talk.decode(), flag


@pytest.mark.parametrize("flag", ["--no-wait", "--follow"])
@pytest.mark.parametrize("full", [True, False])
def test_output_that_fails(
    osd: Run, pid: str, serving: Serving, tmp_path: Path, flag: str, full: bool
) -> None:
    """A full disk, or a reader that has gone: the job's id is on standard error, for it is nowhere else."""
    with connect(serving.url) as target:
        gated = Gated(target, pid, tmp_path)
        reader, writer = os.pipe()
        os.close(reader)
        if full:
            os.close(writer)
            writer = os.open("/dev/full", os.O_WRONLY)
        client = warm.run(
            gated.words(serving.url, flag),
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE_S,
        )
        os.close(writer)
        assert client.returncode == Exit.FAILED
        (job,) = (str(each.id) for each in target.jobs(gated.zone.partition_id))
        assert f"osd: the output was cut off; the job is {job}\n" in client.stderr
        target.write(gated.gate, 0, b"x")
        assert target.job(ObjectRef.parse(job)).wait(DEADLINE_S).state is JobState.COMPLETED


def wait_for_first_line(target: Target, pid: str) -> None:
    zone = ObjectRef.parse(pid)
    found = until(lambda: target.jobs(zone.partition_id))
    assert next(target.job(found[0].id).iter_output(follow=True)) == b"first\n"


@pytest.mark.parametrize("flag", ["--wait", "--follow"])
def test_terminal_closed(osd: Run, pid: str, serving: Serving, tmp_path: Path, flag: str) -> None:
    """SIGHUP, and nothing to talk to any more."""
    with connect(serving.url) as target:
        gated = Gated(target, pid, tmp_path)
        client, leader = pty.fork()
        if client == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
            words = gated.words(serving.url, flag)
            os.execvp(words[0], words)
        wait_for_first_line(target, pid)
        os.close(leader)
        _, status = os.waitpid(client, 0)
        assert os.waitstatus_to_exitcode(status) != 0, "it could not tell how the job ended"
        gated.goes_on()
