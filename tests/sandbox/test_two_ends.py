# SPDX-License-Identifier: GPL-2.0-or-later
"""A script next to the data and at a client: the same, but for what docs/scripts.md lists; and
pyosd.testing, by which people see that of their own scripts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyosd
from pyosd.testing import ServedTarget, client_environment
from pyosd.types import ref

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "scripts.md").read_text()

pytestmark = pytest.mark.tgtd


@pytest.fixture
def ends(serving) -> ServedTarget:
    return ServedTarget(serving.url, sandboxes=True)


@pytest.fixture
def zone(target: pyosd.Target):
    """A partition with one object of 200,000 bytes, 10000h."""
    pid = target.create_partition()
    target.create_and_write(pid, b"0123456789" * 20_000)
    yield ref(pid)
    target.remove_partition(pid, contents=True)


OBJECT = "import osd\nu = osd.userobject(osd.zone.partition_id, 0x10000)\n"

SAME = {
    "what it prints": "print('é', osd.args, [osd.zone == osd.partition(u.partition_id)])",
    "exit code": "import sys; print('on'); sys.exit(7)",
    "exit text": "raise SystemExit('over')",
    "an exception": "def f(): return 1 / 0\nf()",
    "a refusal": "u.create()",
    "rights": "try: osd.root().partitions().__next__()\nexcept osd.PermissionDenied: print('no')",
    "result of bytes": "osd.result(bytes(range(256)))",
    "result of JSON": "osd.result({'n': [1, None, 'é']}); osd.result([2])",
    "no result": "u.data.read(5)",
    "its own name": "import sys, __main__; print(__name__, __file__, sys.argv, __main__.u.length())",
    "modules beside it": "try: import pyproject_neighbour\nexcept ImportError: print('none')",
    "a map": "m = u.data.map(); print(len(m), m.changed(), bytes(m[:3]))",
    "argument words": "import sys; print(sys.argv[1:] == osd.args)",
}


@pytest.mark.parametrize("code", SAME.values(), ids=SAME.keys())
def test_the_same(ends: ServedTarget, zone, code: str) -> None:
    outcome = ends.both(OBJECT + code, zone=zone, args=["a", "b c"])
    if "1 / 0" in code:
        here = ends.run(OBJECT + code, zone=zone).stderr.decode()
        assert here == outcome.stderr.decode() and here.count("File") == 2
    if "u.create()" in code:
        assert b"osd.Exists: " in outcome.stderr and outcome.exit_code == 1


# What is printed next to the data, and at a client.
DIFFERENT = {
    "osd.job": ("print(osd.job.exists(), osd.job.object_id > 0)", "True True", "False False"),
    "map": ("print(type(u.data.map()).__name__)", "LiveMap", "Snapshot"),
    "map of what is written": (
        "m = u.data.map(); before = m[:1]; u.data.write(bytes([m[0] ^ 1]))\n"
        "print(m.changed(), m[:1] == before)",
        "True False",
        "False True",
    ),
    "files": (
        "try: open('/etc/passwd'); print('open')\nexcept OSError: print('no')",
        "no",
        "open",
    ),
    "network": (
        "import socket\ntry: socket.socket(); print('open')\nexcept OSError: print('no')",
        "no",
        "open",
    ),
    "processes": (
        "import os\ntry: os._exit(0) if os.fork() == 0 else print('two')\n"
        "except OSError: print('no')",
        "no",
        "two",
    ),
    "modules": ("import pyosd; print('there')", None, "there"),
    "standard input": ("import sys; print(repr(sys.stdin.read()))", "''", "''"),
    "text of errors": (
        "try: u.create()\nexcept osd.Exists as e: print('5h' in str(e) or 'sense' in str(e))",
        "False",
        "True",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(ends: ServedTarget, zone, name: str) -> None:
    code, there, here = DIFFERENT[name]
    outcome = ends.exec(OBJECT + code, zone=zone)
    if there is None:
        assert outcome.exit_code == 1 and b"ImportError" in outcome.stderr.replace(
            b"ModuleNotFound", b"Import"
        )
    else:
        assert outcome.output.decode().strip() == there
    assert ends.run(OBJECT + code, zone=zone).output.decode().strip() == here


def test_standard_error_is_cut_only_there(ends: ServedTarget, zone) -> None:
    code = "import sys\nfor n in range(20_000): print('line', n, file=sys.stderr)\n"
    assert len(ends.run(code, zone=zone).stderr) > 200_000
    assert len(ends.exec(code, zone=zone).stderr) < 70_000


def test_limits_hold_only_there(ends: ServedTarget, zone) -> None:
    code = "import time\ntime.sleep(0.4)\nprint('slept')\n"
    limits = pyosd.Limits(wall="100ms")
    with pytest.raises(pyosd.JobTimeout):
        ends.exec(code, zone=zone, limits=limits)
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-c", "from pyosd.cli import main; main()", "exec", "-"),
            *("--local", "--zone", str(zone), "--limit-wall", "100ms"),
        ],
        input=code,
        env=client_environment() | {"IOSD_TARGET": ends.url},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "slept\n")
    assert "--limit-wall: limits do not hold with --local" in done.stderr


def test_both_ends_are_compared(ends: ServedTarget, zone) -> None:
    with pytest.raises(AssertionError, match=r"output is b'False.*here, b'True"):
        ends.both("import osd\nprint(osd.job.exists())\n", zone=zone)


def test_no_sandboxes_no_jobs() -> None:
    with pytest.raises(RuntimeError, match="without sandboxes"):
        ServedTarget("iscsi://127.0.0.1/x/1", sandboxes=False).exec("pass\n")


def test_the_example_of_a_test(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python test\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "test_count.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_count.py"],
        cwd=tmp_path,
        env=client_environment() | {k: v for k, v in os.environ.items() if k == "PATH"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
