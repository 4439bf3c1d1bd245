# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that is sent packed, and byte-code: what runs, and how what cannot be read is refused."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import marshal
import os
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd.commands import Commands
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import ExecFlag, ExecParams
from pyosd.wire.job_status import JobState, JobStatus
from tests.exec.conftest import WAIT_S, Run, ended
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

MIB = 1 << 20
LONG = "words = '''\n" + "all of this repeats\n" * 1000 + "'''\nprint(len(words))\n"

Send = Callable[..., JobStatus]


def bytecode(source: str, name: str = "sent.py") -> bytes:
    header = importlib.util.MAGIC_NUMBER + bytes(12)
    return header + marshal.dumps(compile(source, name, "exec"))


def send_to(commands: Commands, zone: ObjectRef, code: bytes, flags: ExecFlag) -> Job:
    """EXEC with exactly these bytes and flags."""
    reply = commands.exec_code(zone, code, ExecParams(flags=flags))
    assert reply.job is not None
    return Job(commands, reply.job)


@pytest.fixture
def send(target: pyosd.Target, zone: ObjectRef) -> Send:
    def send(
        code: bytes, flags: ExecFlag = ExecFlag.CODE_ZLIB, limits: pyosd.Limits | None = None
    ) -> JobStatus:
        params = ExecParams(flags=flags, limits=limits or pyosd.Limits())
        reply = target.exec_code(zone, code, params)
        assert reply.job is not None
        return target.job(reply.job).wait(WAIT_S)

    return send


# ---- packed -------------------------------------------------------------------------------------


def test_packed_code_runs(send: Send, target: pyosd.Target) -> None:
    status = ended(send(zlib.compress(b"print('as sent')")), JobState.COMPLETED, 0)
    assert target.read_range(status.id) == b"as sent\n"


def test_a_long_script_is_packed_by_itself(run: Run, target: pyosd.Target) -> None:
    """And the record's hash is of what was sent."""
    status = ended(run(LONG), JobState.COMPLETED, 0)
    assert target.read_range(status.id) == b"20001\n"
    plain = ended(run(LONG, compress=False), JobState.COMPLETED, 0)
    assert status.sha256 == hashlib.sha256(zlib.compress(LONG.encode())).hexdigest()
    assert plain.sha256 == hashlib.sha256(LONG.encode()).hexdigest()


def test_a_traceback_shows_the_lines_of_packed_code(run: Run, target: pyosd.Target) -> None:
    status = ended(run(LONG + "raise KeyError('at its end')"), JobState.FAILED, 201)
    assert "raise KeyError('at its end')" in target.job(status.id).traceback()


def test_code_expands_to_just_the_most(send: Send) -> None:
    line = b"pass#" + bytes(b"x" * 1018) + b"\n"
    most = line * (16 * MIB // len(line))
    assert len(most) == 16 * MIB
    ended(send(zlib.compress(most)), JobState.COMPLETED, 0)
    status = ended(send(zlib.compress(most + b"\n")), JobState.LIMIT_EXCEEDED, 309)
    assert "16 MiB" in status.message


def test_a_bomb_ends_within_its_memory(send: Send) -> None:
    packer = zlib.compressobj()
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()
    status = send(bomb, limits=pyosd.Limits(mem="64MiB", wall=20.0))
    ended(status, JobState.LIMIT_EXCEEDED, 309)
    assert status.peak_memory < 80 * MIB


def test_memory_may_run_out_while_it_expands(send: Send) -> None:
    packed = zlib.compress(b"#" * (16 * MIB))
    status = send(packed, limits=pyosd.Limits(mem="32MiB", wall=20.0))
    ended(status, JobState.OUT_OF_MEMORY, 303)


GOOD = zlib.compress(b"print(1)")
MALFORMED = {
    "source": b"print(1)",
    "one byte": b"x",
    "cut short": GOOD[:-1],
    "a byte behind it": GOOD + b"\0",
    "two streams": GOOD + GOOD,
    "a bit flipped": GOOD[:4] + bytes([GOOD[4] ^ 0x10]) + GOOD[5:],
    "a wrong sum": GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
    "a raw stream": GOOD[2:-4],
    "gzip": gzip.compress(b"print(1)"),
    "noise": random.Random(1).randbytes(100_000),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_code(send: Send, target: pyosd.Target, name: str) -> None:
    status = ended(send(MALFORMED[name]), JobState.FAILED, 205)
    assert status.message
    assert target.length(status.id) == 0, "none of it has run"


def test_packed_nonsense_is_the_script_s_fault(send: Send) -> None:
    ended(send(zlib.compress(b"this is not Python")), JobState.FAILED, 201)


def test_zstd_is_refused(target: pyosd.Target, zone: ObjectRef) -> None:
    with pytest.raises(pyosd.OSDError) as refused:
        send_to(target, zone, b"\x28\xb5\x2f\xfd", ExecFlag.CODE_ZSTD)
    assert (refused.value.asc, refused.value.ascq) == (0x24, 0x00)


def test_a_key_compares_the_form(target: pyosd.Target, zone: ObjectRef) -> None:
    """The same bytes, once as source and once as a packed script, are not the same job."""
    code, key = b"#" + GOOD, os.urandom(8)
    first = target.exec_code(zone, code, ExecParams(key=key)).job
    assert target.exec_code(zone, code, ExecParams(key=key)).job == first
    with pytest.raises(pyosd.Conflict):
        target.exec_code(zone, code, ExecParams(key=key, flags=ExecFlag.CODE_ZLIB))


# ---- byte-code ----------------------------------------------------------------------------------


def test_bytecode_is_refused_unless_allowed(
    target: pyosd.Target, zone: ObjectRef, tmp_path: Path
) -> None:
    file = tmp_path / "job.pyc"
    file.write_bytes(bytecode("print(1)"))
    with pytest.raises(pyosd.OSDError, match="byte-code is not allowed") as refused:
        target.exec(file, zone=zone)
    assert (refused.value.asc, refused.value.ascq) == (0x80, 0x15)


@pytest.fixture(scope="module")
def allowing() -> Iterator[pyosd.Target]:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with (
        Serving("--isolation", "best", "--slots", "2", "--allow-bytecode") as served,
        pyosd.connect(served.url) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def there(allowing: pyosd.Target) -> ObjectRef:
    return ref(allowing.create_partition())


def test_bytecode_runs_where_allowed(
    allowing: pyosd.Target, there: ObjectRef, tmp_path: Path
) -> None:
    file = tmp_path / "job.pyc"
    file.write_bytes(bytecode("import osd\nosd.result([osd.args, __name__, __file__])"))
    job = allowing.exec(file, zone=there, args=[1])
    assert job.result(WAIT_S) == [[1], "__main__", "job.pyc"]
    packed = allowing.exec(file, zone=there, args=[1], compress=True)
    assert packed.result(WAIT_S) == [[1], "__main__", "job.pyc"]


DAMAGED = {
    "another release": b"\x6f\x0d\x0d\x0a" + bytecode("pass")[4:],
    "the source": b"print(1)",
    "a header only": bytecode("pass")[:16],
    "less than a header": importlib.util.MAGIC_NUMBER[:3],
    "cut short": bytecode("print('x')")[:-9],
    "a number": bytecode("pass")[:16] + marshal.dumps(7),
    "an unknown type": bytecode("pass")[:16] + b"\x7f",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_bytecode(allowing: pyosd.Target, there: ObjectRef, name: str) -> None:
    job = send_to(allowing, there, DAMAGED[name], ExecFlag.CODE_BYTECODE)
    status = ended(job.wait(WAIT_S), JobState.FAILED, 205)
    if name == "another release":
        assert "magic number 6f0d0d0a" in status.message


def test_bytecode_that_crashes_the_interpreter(allowing: pyosd.Target, there: ObjectRef) -> None:
    """A name index far outside co_names: the sandbox dies, and only the sandbox."""
    code = compile("pass", "crash.py", "exec")
    wild = code.replace(co_code=bytes([144, 255, 144, 255, 101, 255]) + code.co_code)
    sent = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(wild)
    status = send_to(allowing, there, sent, ExecFlag.CODE_BYTECODE).wait(WAIT_S)
    assert status.state in (JobState.FAILED, JobState.OUT_OF_MEMORY), status
    assert status.reason in (201, 203, 303), status
    allowing.exec("pass", zone=there).result(WAIT_S)
