# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile scripts as jobs of a real target: how each ends, and that nothing of it is left.

The scripts are data: hostile.py, and tests/sandbox/denied.py.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobState, JobStatus
from tests.exec.conftest import WAIT_S, ended
from tests.exec.escapes import ESCAPES
from tests.exec.hostile import CORPUS, QUICK
from tests.processes import descendants, memory_of, running
from tests.sandbox.denied import DENIED
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FIRST_UID = 0x7F000000  # of sandboxes, outside (docs/security.md, "User ids")
DENIED_OR_HARMLESS = ((JobState.FAILED, 201), (JobState.COMPLETED, 0))
GROUPS = Path("/sys/fs/cgroup")

Submit = Callable[[str | bytes, pyosd.Limits], JobStatus]


@pytest.fixture
def play(target: pyosd.Target, zone: ObjectRef) -> Submit:
    """Send a script as it is, and wait for its end."""

    def play(script: str | bytes, limits: pyosd.Limits) -> JobStatus:
        code = script.encode() if isinstance(script, str) else script
        reply = target.exec_code(zone, code, ExecParams(limits=limits, name="hostile.py"))
        assert reply.job is not None
        return target.job(reply.job).wait(WAIT_S)

    return play


def sandboxes(serving: Serving) -> set[int]:
    return descendants(serving.pids["iosd-sandboxd"])


def groups_of(serving: Serving) -> dict[str, list[int]]:
    """Control groups of the daemon's, and who is in them."""
    folder = f"iosd-sandboxd-{serving.pids['iosd-sandboxd']}"
    found = {}
    # walk() passes over groups of other targets that go away meanwhile, glob() does not.
    for place, _, files in os.walk(GROUPS):
        path = Path(place) / "cgroup.procs"
        if folder in path.parts and path.name in files:
            with contextlib.suppress(OSError):
                found[str(path)] = [int(pid) for pid in path.read_text().split()]
    return found


def files_of_sandboxes() -> set[Path]:
    """Files of users of sandboxes in folders where everybody can write; other targets may have some."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"):
        for path in Path(folder).glob("*"):
            with contextlib.suppress(OSError):
                if path.lstat().st_uid >= FIRST_UID:
                    found.add(path)
    return found


class Host:
    """The state of an idle target from outside, to compare it with the state after a job."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.daemons = dict(serving.pids)
        self.count = self.settled()
        self.groups = set(groups_of(serving))
        self.files = files_of_sandboxes()

    def settled(self) -> int:
        """How many processes there are once all spare sandboxes are, and no others any more."""
        counts = [-1]
        until = time.monotonic() + WAIT_S
        with self.serving.connect() as target:
            while len(counts) < 20 or len(set(counts[-20:])) > 1:
                [pool] = target.pools()
                at_rest = pool.busy == 0 and pool.ready == pool.min + pool.warm_spare
                counts = [*counts, len(sandboxes(self.serving))] if at_rest else []
                assert time.monotonic() < until, f"it does not come to rest: {pool}"
                time.sleep(0.02)
        return counts[-1]

    def is_as_before(self) -> None:
        """No process more and no file."""
        until(lambda: len(sandboxes(self.serving)) <= self.count, "a sandbox was left")
        assert self.serving.pids == self.daemons, "a daemon was restarted"
        assert files_of_sandboxes() <= self.files

    def groups_are_as_before(self) -> None:
        """No control group more, but for slots that were needed for the first time (slots.c makes few
        ahead, and keeps them), and nobody in one but sandboxes."""
        groups = groups_of(self.serving)
        assert self.groups <= set(groups)
        slots = 4 * (max(2, os.cpu_count() or 1) + 1)  # of sandboxes at work, ready and ending
        for more in set(groups) - self.groups:
            name, _, number = Path(more).parent.name.partition("-")
            assert name == "slot" and int(number) < slots, more
        inside = {pid for each in groups.values() for pid in each}
        # One that ends just now is in a group for a moment longer.
        until(
            lambda: {pid for pid in inside if running(pid)} <= sandboxes(self.serving),
            "another process is in a control group",
        )


@pytest.fixture(scope="module")
def host(serving: Serving) -> Iterator[Host]:
    with serving.connect() as target:
        partition = target.create_partition()
        target.exec("pass", zone=ref(partition)).wait(WAIT_S)
        target.remove_partition(partition, contents=True)
    before = Host(serving)
    yield before
    before.groups_are_as_before()


@pytest.mark.parametrize("name", CORPUS)
def test_hostile(play: Submit, target: pyosd.Target, host: Host, name: str) -> None:
    case = CORPUS[name]
    status = play(case.script, case.limits)
    words = f"{status.message!r}, exit {status.exit_code}, signal {status.signal}"
    words += f", stderr {target.job(status.id).stderr()[-300:]!r}"
    assert (status.state, status.reason) == (case.state, case.reason), words
    assert case.says in status.message, words
    assert case.exit_code in (None, status.exit_code), words
    assert case.signal in (None, status.signal), words
    assert status.peak_memory < 1 << 30 and status.cpu_user + status.cpu_system < 60, "measured"
    if case.prints is not None:
        assert target.read_range(status.id) == case.prints
    following = play("print('next')", QUICK)
    ended(following, JobState.COMPLETED, 0)
    assert target.read_range(following.id) == b"next\n"
    host.is_as_before()


DENIED_ENDS = {"a thread more than allowed": (JobState.LIMIT_EXCEEDED, 305)}


def test_denied(play: Submit, host: Host) -> None:
    """Attacks in one line of Python. Each ends in an exception of the script."""
    got_through = {}
    for what, script in DENIED.items():
        status = play("import os\n" + script, QUICK)
        expected = DENIED_ENDS.get(what, (JobState.FAILED, 201))
        if (status.state, status.reason) != expected:
            got_through[what] = status
    assert not got_through
    host.is_as_before()


def test_no_way_out_that_was_one_elsewhere(play: Submit, target: pyosd.Target, host: Host) -> None:
    got_out = {}
    for what, script in ESCAPES.items():
        status = play("import os\n" + script, QUICK)
        if (status.state, status.reason) not in DENIED_OR_HARMLESS or status.stdout_length:
            got_out[what] = status, target.read_range(status.id)
    assert not got_out
    host.is_as_before()


@pytest.mark.parametrize("said", [b"\xb7", b"{", b"[" * 50_000])
def test_a_result_that_is_not_the_json_it_says(
    target: pyosd.Target, zone: ObjectRef, said: bytes
) -> None:
    """The script alone decides what it marks as JSON: whoever waits for the job gets the bytes."""
    code = f"import _osdcore\n_osdcore.call(3, 0, 0, 0, 1, {said[:1]!r} * {len(said)})"
    job = target.exec(code, zone=zone)
    ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
    assert job.result() == said


# ---- nothing of one job in the next (28) --------------------------------------------------------

SECRET = b"planted by job A: 7c1d9e5b"
PLANT = """
import builtins, gc, os, random, sys, osd, mmap
secret = osd.args["secret"]
builtins.planted = osd.planted = sys.planted = [secret * i for i in range(50)]
os.environ["PLANTED"] = secret
m = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m[:] = (secret.encode() * (1 << 20))[: 1 << 20]
keep = [bytearray(secret.encode() * 1000) for _ in range(1000)]
o = osd.zone.create_many(1)[0]
o.data.write(secret * 10_000)
view = o.data.map(); big = o.data.read()
o.setattr([(0x10000, 1, secret)])
o.getattr([(0x10000, 1)])
osd.progress(0.5, secret)
osd.log(secret)
print(secret * 100)
os.write(2, secret.encode())
os.write(4, secret.encode())
exec(compile("planted_code = '" + secret + "'", secret, "exec"))
osd.result(secret * 1000)
"""
PLANTERS = {
    "and returns": ("", 0),
    "and raises": ("raise ValueError(secret)", 201),
    "and crashes": ("import faulthandler; faulthandler._read_null()", 203),
    "and is ended": ("while True: pass", 301),
}


@pytest.mark.parametrize("how", PLANTERS)
def test_a_secret_of_one_job_is_nowhere_in_any_other(
    target: pyosd.Target, serving: Serving, zone: ObjectRef, how: str
) -> None:
    """Planted in every channel there is; searched in all memory of every sandbox that follows."""
    last_words, reason = PLANTERS[how]
    first = target.exec(
        PLANT + last_words,
        zone=zone,
        args={"secret": SECRET.decode()},
        limits=pyosd.Limits(wall=1.0 if reason == 301 else WAIT_S, cpu=WAIT_S),
    )
    assert first.wait(WAIT_S).reason == reason
    second = target.exec("print('up', flush=True)\nwhile True: pass", zone=zone)
    assert next(second.iter_output(follow=True)) == b"up\n"
    searched, found = 0, dict[int, list[str]]()
    for pid in sandboxes(serving):
        try:
            if lines := [line for line, content in memory_of(pid) if SECRET in content]:
                found[pid] = lines
            searched += 1
        except (FileNotFoundError, ProcessLookupError):
            continue  # the first job's own, just gone
    until(lambda: not found.keys() & sandboxes(serving), lambda: f"it is in {found}")
    second.kill(WAIT_S)
    assert searched >= 3, "janitor, zygote and the second job at least"
    assert len(found) <= 1, "the first job's own, which was still ending"
