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
from tests import warm

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


# A user object that is there.
OBJECT = "import osd\nu = osd.userobject(osd.zone.partition_id, 0x10000)\n"

# One script: what each of these prints is the same.
SAME = """
import sys, __main__
print('é', osd.args, osd.zone == osd.partition(u.partition_id), sys.argv[1:] == osd.args)
print(__name__, __file__, sys.argv, __main__.u.length())
try: next(osd.root().partitions())
except osd.PermissionDenied: print('no')
try: import test_two_ends
except ImportError: print('nothing beside it')
m = u.data.map(); print(len(m), m.changed(), m[:3], m[0])
osd.result({'n': [1, None, 'é']}); osd.result([2])
"""

ENDS = {
    "exit code": "import sys; print('on'); sys.exit(7)",
    "exit text and bytes": "osd.result(bytes(range(256)))\nif osd.args: raise SystemExit('over')",
    "an exception": "def f(): u.create()\nf()",
}


def test_the_same(ends: ServedTarget, zone) -> None:
    outcome = ends.both(OBJECT + SAME, zone=zone, args=["a", "b c"])
    assert outcome.exit_code == 0 and outcome.output.count(b"\n") == 5, outcome
    assert outcome.result == [2]


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS.keys())
def test_the_same_end(ends: ServedTarget, zone, code: str) -> None:
    outcome = ends.both(OBJECT + code, zone=zone)
    if "u.create()" in code:
        assert b"osd.Exists: " in outcome.stderr and outcome.exit_code == 1
        assert b'File "<script>", line 3, in f' in outcome.stderr
    elif "result" in code:
        assert outcome.result == bytes(range(256))
    else:
        assert (outcome.exit_code, outcome.output) == (7, b"on\n")


def test_tracebacks_show_the_script(ends: ServedTarget, zone) -> None:
    here = ends.run("def f():\n    return 1 / 0\nf()\n", zone=zone).stderr.decode()
    assert here.splitlines()[1:4] == [
        '  File "<script>", line 3, in <module>',
        "    f()",
        '  File "<script>", line 2, in f',
    ]


# Output next to the data, and at a client.
DIFFERENT = {
    "osd.job": ("print(osd.job.exists(), osd.job.object_id > 0)", "True True", "False False"),
    "map": ("print(type(u.data.map()).__name__)", "LiveMap", "Snapshot"),
    "map of what is written": (
        "m = u.data.map(); before = m[:1]; u.data.write(bytes([m[0] ^ 1]))\n"
        "print(m.changed(), m[:1] == before)",
        "True False",
        "False True",
    ),
    "files": ("attempt(lambda: open('/etc/passwd').close())", "no", "yes"),
    "network": ("import socket\nattempt(lambda: socket.socket().close())", "no", "yes"),
    "processes": (
        "import os\nattempt(lambda: os._exit(0) if os.fork() == 0 else os.wait())",
        "no",
        "yes",
    ),
    "modules": ("attempt(lambda: __import__('pyosd'))", "no", "yes"),
    "text of errors": (
        "try: u.create()\nexcept osd.Exists as e: print('5h' in str(e))",
        "False",
        "True",
    ),
}
ATTEMPT = """
def attempt(what):
    try: what()
    except (OSError, ImportError): print('no')
    else: print('yes')
"""


def test_different(ends: ServedTarget, zone) -> None:
    code = OBJECT + ATTEMPT + "\n".join(each for each, _, _ in DIFFERENT.values())
    there = ends.exec(code, zone=zone).output.decode().splitlines()
    here = ends.run(code, zone=zone).output.decode().splitlines()
    rows = dict(zip(DIFFERENT, zip(there, here, strict=True), strict=True))
    assert rows == {name: (near, far) for name, (_, near, far) in DIFFERENT.items()}


def test_standard_error_is_cut_only_there(ends: ServedTarget, zone) -> None:
    code = "import sys\nfor n in range(20_000): print('line', n, file=sys.stderr)\n"
    assert len(ends.run(code, zone=zone).stderr) > 200_000
    assert len(ends.exec(code, zone=zone).stderr) < 70_000


def test_limits_hold_only_there(ends: ServedTarget, zone) -> None:
    code = "import time\ntime.sleep({})\nprint('slept')\n"
    limits = pyosd.Limits(wall="100ms")
    with pytest.raises(pyosd.JobTimeout):
        ends.exec(code.format(600), zone=zone, limits=limits)
    done = warm.run(
        [
            *(sys.executable, "-P", "-c", "from pyosd.cli import main; main()", "exec", "-"),
            *("--local", "--zone", str(zone), "--limit-wall", "100ms"),
        ],
        input=code.format(0.4),
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
