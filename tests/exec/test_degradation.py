# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs while a resource is short, stuck, broken or full. They wait or end, and their status has the
reason. Ordinary commands are not affected. All works again when the cause is gone.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import pyosd
from iosd_host.common import paths
from pyosd import requests as rq
from pyosd.cli.jobs.job_view import explanation
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobState, JobStatus
from tests.exec.conftest import WAIT_S, ended
from tests.expect import BUSY, ISOLATION, check
from tests.processes import zygotes_of
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

COMPLETED, FAILED, LOST = JobState.COMPLETED, JobState.FAILED, JobState.SANDBOX_LOST
FOREVER = "print('up')\nwhile True: pass"
DEAF = "print('up')\nwhile True:\n    try:\n        n = 0\n        while True: n += 1\n    except: pass"
TARGET_UID = 64733  # tgtd's
PIDS = Path("/sys/fs/cgroup/pids")


@pytest.fixture(scope="module")
def own() -> Iterator[Serving]:
    """A target whose daemons are stopped and starved here."""
    with Serving("--isolation", "best", "--slots", "2") as served:
        yield served


@pytest.fixture
def target(own: Serving) -> Iterator[pyosd.Target]:
    with own.connect() as session:
        yield session


def zygotes(serving: Serving) -> list[int]:
    """Not what they have forked."""
    return [*zygotes_of(serving.pids["iosd-sandboxd"])]


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def busy(target: pyosd.Target, zone: ObjectRef) -> bool:
    """Whether a synchronous EXEC is refused; else it uses up a spare sandbox, if there is one."""
    request = rq.execute(zone, b"pass", ExecParams(wait=0.2), synchronous=True)
    return target.reply(request).response.status == BUSY


def done_or_waiting(job: Job, why: str) -> JobStatus | None:
    status = job.status()
    waits = (status.state, status.reason) == (JobState.QUEUED, 114) and why in status.hint
    return status if waits or status.done else None


def waiting(target: pyosd.Target, zone: ObjectRef, why: str) -> list[Job]:
    """Jobs that wait for a sandbox, and say why none can be made."""
    until(lambda: busy(target, zone))
    jobs: list[Job] = []
    while len(jobs) < 3:
        job = target.exec("pass", zone=zone)
        status = until(partial(done_or_waiting, job, why))
        if status.done:
            continue  # by a sandbox that was on its way already
        jobs.append(job)
        told = explanation(status, [])
        assert told[1] == "It waits for a sandbox, and none can be made now."
        assert any(why in line for line in told)
    serves_on(target, zone)
    return jobs


def serves_on(target: pyosd.Target, zone: ObjectRef) -> None:
    """Ordinary commands do not notice."""
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"x" * 10_000)
    assert target.read(obj, 0, 10_000) == b"x" * 10_000


# ---- iosd-sandboxd ------------------------------------------------------------------------------


def test_stopped(own: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    """Jobs wait and say that it does not answer, who would wait is told BUSY; a kill ends what is
    deaf to it in bounded time; all run when it goes on."""
    deaf = target.exec(DEAF, zone=zone)
    assert next(deaf.iter_output(follow=True)) == b"up\n"
    with stopped(own.pids["iosd-sandboxd"]):
        jobs = waiting(target, zone, "iosd-sandboxd does not answer")
        assert deaf.kill(WAIT_S) is JobState.CANCELLED
    for job in jobs:
        assert ended(job.wait(WAIT_S), COMPLETED, 0).attempt == 1
    until(lambda: not busy(target, zone))


def test_its_limits_are_not_set_while_it_is_stopped(
    own: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """This does not count as an attempt of the job."""
    until(lambda: target.pools()[0].ready)  # what is short is a limit, not a sandbox
    with stopped(own.pids["iosd-sandboxd"]):
        job = target.exec("pass", zone=zone, limits=pyosd.Limits(mem="100MiB"))
        until(lambda: (now := job.status()).generation > 2 and now.state is JobState.QUEUED)
    assert ended(job.wait(WAIT_S), COMPLETED, 0).attempt == 1


def test_no_descriptors(own: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    daemon = own.pids["iosd-sandboxd"]
    before = resource.prlimit(daemon, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon, resource.RLIMIT_NOFILE, (16, before[1]))  # it has more
    try:
        jobs = waiting(target, zone, "no descriptors")
    finally:
        resource.prlimit(daemon, resource.RLIMIT_NOFILE, before)
    for job in jobs:
        ended(job.wait(WAIT_S), COMPLETED, 0)
    assert own.pids["iosd-sandboxd"] == daemon, "it was not restarted for that"


@contextlib.contextmanager
def group_of_one(pids: list[int]) -> Iterator[None]:
    """As if the host had no process left.  They join and leave while the limit stands, which moving
    does not mind: what they forked in between would stay, and the group with it."""
    group = PIDS / f"iosd-test-{os.getpid()}"
    homes = {pid: Path(f"/proc/{pid}/cgroup").read_text() for pid in pids}
    group.mkdir()
    (group / "pids.max").write_text("1")
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid, home in homes.items():
            line = next(each for each in home.splitlines() if ":pids:" in each)
            (PIDS / line.rpartition(":")[2].lstrip("/") / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@pytest.mark.skipif(not PIDS.is_dir(), reason="needs the pids controller of cgroup v1")
def test_no_processes(own: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    with group_of_one(zygotes(own)):
        jobs = waiting(target, zone, "cannot fork a sandbox: Resource temporarily unavailable")
    for job in jobs:
        ended(job.wait(WAIT_S), COMPLETED, 0)


def test_no_memory(own: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    """Its own limit, which what it forks has too."""
    zygote = zygotes(own)[0]
    before = resource.prlimit(zygote, resource.RLIMIT_AS)
    resource.prlimit(zygote, resource.RLIMIT_AS, (1 << 20, before[1]))
    try:
        jobs = waiting(target, zone, "Cannot allocate memory")
    finally:
        for pid in zygotes(own):
            resource.prlimit(pid, resource.RLIMIT_AS, before)
    for job in jobs:
        ended(job.wait(WAIT_S), COMPLETED, 0)


def test_a_limit_nobody_can_give(own: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    """More memory than the host has: it is refused before it is a job, and others go on."""
    with pytest.raises(pyosd.OSDError, match=r"memory .* at most"):
        target.exec("pass", zone=zone, limits=pyosd.Limits(mem=1 << 63))
    ended(target.exec("pass", zone=zone).wait(WAIT_S), COMPLETED, 0)


def test_killed_in_the_middle_of_a_spawn(
    own: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """It has asked its zygote, which has not answered, and dies; then the same with the zygote."""
    for victim in ("iosd-sandboxd", "zygote"):
        with contextlib.suppress(ProcessLookupError), stopped(*zygotes(own)):
            jobs = waiting(target, zone, "iosd-sandboxd does not answer")
            if victim == "zygote":
                os.kill(zygotes(own)[0], signal.SIGKILL)
            else:
                own.kill(victim)
                own.restarted()
        for job in jobs:
            ended(job.wait(WAIT_S), COMPLETED, 0)


# ---- isolation ----------------------------------------------------------------------------------


@pytest.fixture
def minimal() -> Iterator[Path]:
    """The socket of a daemon that gives next to no isolation."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "sandboxd"
        command: list[str | Path] = [paths.find_component(paths.SANDBOXD)]
        command += ["--python-dir", paths.python_dir()]
        command += ["--socket", path, "--isolation", "minimal", "--uid", str(TARGET_UID)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready minimal\n"
        yield path
        process.terminate()
        process.communicate(timeout=WAIT_S)


def test_less_isolation_than_demanded(minimal: Path) -> None:
    """No job is accepted, and the answer says why; all else is served."""
    options = [f"--module-option={each}" for each in (f"sandboxd={minimal}", "isolation=full")]
    if os.geteuid() == 0:  # whom the daemon lets in
        options += ["--uid", str(TARGET_UID)]
    with Serving("--no-sandboxes", *options) as served, served.connect() as target:
        zone = ref(target.create_partition())
        until(lambda: "isolation full is demanded, this host gives minimal" in served.text())
        for synchronous in (False, True):
            check(target.reply(rq.execute(zone, b"pass", synchronous=synchronous)), ISOLATION)
        assert target.jobs(zone.partition_id) == []
        serves_on(target, zone)


# ---- of another version -------------------------------------------------------------------------

HELLO, WELCOME = 1, 17
HEADER = struct.Struct(">HHIQ")


class AnotherVersion(threading.Thread):
    """A daemon of a later release, which welcomes everybody."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(path))
        path.chmod(0o666)
        self.socket.listen()
        self.heard: list[bytes] = []
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.socket.accept()
                with link:
                    self.heard.append(link.recv(4096))
                    link.send(HEADER.pack(2, WELCOME, 0, 0))
                    link.recv(4096)

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.join(WAIT_S)
        self.socket.close()


def test_a_daemon_of_another_version() -> None:
    """Jobs wait and say why; it is tried again, less and less often."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        later = AnotherVersion(Path(folder) / "sandboxd")
        option = f"--module-option=sandboxd={folder}/sandboxd"
        with Serving("--no-sandboxes", option) as served, served.connect() as target:
            zone = ref(target.create_partition())
            job = target.exec("pass", zone=zone)
            why = "iosd-sandboxd speaks version 2, the target 1: install both of one release"
            until(lambda: why in (now := job.status()).hint and now.reason == 102)
            assert busy(target, zone)
            serves_on(target, zone)
            until(lambda: len(later.heard) >= 2)
            until(lambda: why in served.text(), why)
            assert served.text().count(why) == 1, "told once"
            job.kill(WAIT_S)
        later.close()
    assert {HEADER.unpack_from(each)[:2] for each in later.heard} == {(1, HELLO)}
