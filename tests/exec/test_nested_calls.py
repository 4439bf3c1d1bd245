# SPDX-License-Identifier: GPL-2.0-or-later
"""osd.call(): a script or a function calls active functions inside its own sandbox, and at a client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd.errors import ScriptError
from pyosd.functions import Access, Functions
from pyosd.types import ObjectRef, PartitionId
from tests.exec.conftest import WAIT_S
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS, OTHERS = PartitionId(0x12), PartitionId(0x13)
DEPTH = 16
LAST = 40  # version

LIBRARY = """
import osd
loads = []
loads.append(1)

def main(args):
    return {"args": args, "lines": osd.zone.data.read().count(b"\\n"), "loads": len(loads)}

def twice(args):
    loads.append(1)
    return [args, args]

def scribble(args):
    osd.zone.data.write(args)

def down(args):
    return osd.call("library", args - 1, method="down") + 1 if args else 0

def peek(args):
    return osd.call("blind", args)
"""
Evaluate = Callable[[str], str]
METHODS = ("main", "twice", "scribble", "down", "peek")
BLIND = """
import osd

def main(args):
    try:
        osd.zone.data.read(args)
    except osd.PermissionDenied as error:
        return str(error)

def mapped(args):
    try:
        return bytes(osd.zone.data.map())
    except osd.PermissionDenied as error:
        return "refused"
"""


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    """A partition with the functions `library` (reads) and `blind` (none); removed at the end."""
    target.create_partition(FUNCTIONS)
    made = Functions(target, FUNCTIONS)
    made.put(LIBRARY, name="library", access=Access.READ, methods=METHODS)
    made.put(BLIND, name="blind", methods=("main", "mapped"))
    yield made
    target.remove_partition(FUNCTIONS, contents=True)


@pytest.fixture
def lines(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"one\ntwo\nthree\n")
    return obj


@pytest.fixture(params=["sandbox", "client"])
def evaluate(
    request: pytest.FixtureRequest, target: pyosd.Target, serving: Serving, lines: ObjectRef
) -> Evaluate:
    """Run a script in a sandbox or at a client; its output."""

    def in_sandbox(script: str) -> str:
        job = target.exec(script, zone=lines)
        status = job.wait(WAIT_S)
        assert status.state is pyosd.JobState.COMPLETED, job.traceback()
        return job.output().decode()

    def at_client(script: str) -> str:
        place = {"IOSD_TARGET": serving.url, "IOSD_ZONE": str(lines), "PYTHONPATH": str(ROOT)}
        start = "import sys, pyosd.osd; sys.modules['osd'] = pyosd.osd\n"
        done = subprocess.run(
            [sys.executable, "-c", start + script],
            env=os.environ | place,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return in_sandbox if request.param == "sandbox" else at_client


def test_a_script_calls_a_function(functions: Functions, evaluate: Evaluate) -> None:
    out = evaluate(
        "import osd\n"
        "print(osd.call('library', [1]))\n"
        "print(osd.call('library', 'x', method='twice'), osd.call('library')['loads'])\n"
    )
    assert out == "{'args': [1], 'lines': 3, 'loads': 1}\n['x', 'x'] 2\n"


def test_names(functions: Functions, target: pyosd.Target, evaluate: Evaluate) -> None:
    found = functions.show("library")
    out = evaluate(
        "import osd\n"
        f"for name in ({found.sha256[:8]!r}, {found.id.object_id}):\n"
        f"    print(osd.call(name, 1, method='twice', partition={FUNCTIONS}))\n"
        "def kind(*how, **more):\n"
        "    try: osd.call(*how, **more)\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "kind('nobody')\n"
        "kind('library', method='nothing')\n"
        "kind('library', partition=0x7777)\n"
        "kind('')\n"
    )
    rows = out.splitlines()
    assert rows[:2] == ["[1, 1]", "[1, 1]"]
    kinds = ["NotFound function nobody:", "Invalid function library:"]
    kinds += ["NotFound function library:", "Invalid function :"]
    assert [" ".join(row.split()[:3]) for row in rows[2:5]] == kinds[:3], out
    assert rows[5].split()[0] == "Invalid", out


def test_access_holds_until_the_function_returns(
    functions: Functions, target: pyosd.Target, lines: ObjectRef, evaluate: Evaluate
) -> None:
    out = evaluate(
        "import osd\n"
        "try: osd.call('library', b'no', method='scribble')\n"
        "except osd.PermissionDenied as error: print('class' in str(error))\n"
        "osd.zone.data.write(b'ONE')\n"
        "print(osd.call('blind', 3))\n"
        "print(osd.call('library', 3, method='peek'))\n"
        "print(osd.zone.data.read())\n"
    )
    rows = out.splitlines()
    assert rows[0] == "True" and "access class" in rows[1] and "access class" in rows[2], out
    assert rows[3] == repr(b"ONE\ntwo\nthree\n")


def test_no_access_reads_nothing_through_descriptors(
    functions: Functions, target: pyosd.Target, lines: ObjectRef, evaluate: Evaluate
) -> None:
    target.write(lines, 0, bytes(1 << 20))
    out = evaluate(
        "import osd\n"
        "data = osd.zone.data.read(); osd.zone.data.seek(0)\n"
        "shared = osd.zone.data.map()\n"
        f"print(len(data), 'access class' in osd.call('blind', {1 << 20}))\n"
        "print(osd.call('blind', method='mapped'))\n"
        "print(len(osd.zone.data.map()))\n"
    )
    assert out == f"{1 << 20} True\nrefused\n{1 << 20}\n"


def test_recursion_is_bounded(functions: Functions, evaluate: Evaluate) -> None:
    out = evaluate(
        "import osd\n"
        f"print(osd.call('library', {DEPTH - 1}, method='down'))\n"
        f"try: osd.call('library', {DEPTH}, method='down')\n"
        "except osd.Invalid as error: print('16 deep' in str(error))\n"
        f"print(osd.call('library', {DEPTH - 1}, method='down'))\n"
    )
    assert out == f"{DEPTH - 1}\nTrue\n{DEPTH - 1}\n"


def test_an_exception_leaves_the_function(functions: Functions, evaluate: Evaluate) -> None:
    functions.put("import osd\ndef main(args):\n    return 1 // args\n", name="divide")
    functions.put("1 // 0\n", name="broken")
    out = evaluate(
        "import osd, traceback\n"
        "for name in ('divide', 'broken'):\n"
        "    try: osd.call(name, 0)\n"
        "    except ZeroDivisionError: print(traceback.format_exc())\n"
        "osd.zone.data.write(b'ONE')\n"
        "print(osd.call('divide', 1))\n"
    )
    assert 'File "divide", line 3, in main\n    return 1 // args\n' in out
    assert out.endswith("\n1\n")


def test_a_function_calls_a_function(functions: Functions, lines: ObjectRef) -> None:
    assert functions.call("library", 3, zone=lines, method="down") == 3
    assert "access class" in functions.call("library", 3, zone=lines, method="peek")


def test_a_function_finds_those_of_its_own_partition(
    functions: Functions, target: pyosd.Target, lines: ObjectRef
) -> None:
    target.create_partition(OTHERS)
    try:
        others = Functions(target, OTHERS)
        others.put("def main(args):\n    return 'other'\n", name="blind")
        assert "access class" in functions.call("library", 3, zone=lines, method="peek")
        code = "import osd; osd.result(osd.call('blind', 3%s))"
        job = target.exec(code % f", partition={OTHERS}", zone=lines)
        assert job.result(WAIT_S) == "other"
        with pytest.raises(ScriptError, match="several partitions"):
            target.exec(code % "", zone=lines).result(WAIT_S)
    finally:
        target.remove_partition(OTHERS, contents=True)


def test_encrypted_code_stays_in_a_sandbox_of_its_own(
    functions: Functions, lines: ObjectRef, evaluate: Evaluate
) -> None:
    pytest.importorskip("cryptography.hazmat.primitives.asymmetric.x25519")
    functions.put("def main(args):\n    return args\n", name="secret", encrypted=True)
    assert functions.call("secret", 1, zone=lines) == 1
    out = evaluate(
        "import osd\n"
        "try: osd.call('secret', 1)\n"
        "except osd.PermissionDenied as error: print(error)\n"
        "osd.zone.data.write(b'ONE')\n"
    )
    assert "its code is encrypted" in out


def test_code_longer_than_one_call(functions: Functions, lines: ObjectRef) -> None:
    long = f"# {'x' * (3 << 20)}\ndef main(args):\n    return args + 1\n"
    functions.put(long, name="long")
    functions.put("import osd\ndef main(args):\n    return osd.call('long', args)\n", name="outer")
    assert functions.call("outer", 1, zone=lines) == 2


def test_two_clients_replace_and_call(
    functions: Functions, serving: Serving, target: pyosd.Target, lines: ObjectRef
) -> None:
    """A running job sees each version of a function whole, and stops when it is deactivated."""
    text = "def main(args):\n    return %d\n"
    functions.put(text % 1, name="version")
    job = target.exec(
        "import osd\n"
        "last = 0\n"
        "while True:\n"
        "    try: now = osd.call('version')\n"
        "    except osd.NotFound: break\n"
        "    assert now >= last, (last, now)\n"
        "    if now != last: print(now, flush=True)\n"
        "    last = now\n"
        "osd.result(last)\n",
        zone=lines,
    )
    with serving.connect() as second:
        theirs = Functions(second, FUNCTIONS)
        until(lambda: job.output().startswith(b"1\n"), seconds=WAIT_S)
        for number in range(2, LAST + 1):
            theirs.put(text % number, name="version")
        until(lambda: job.output().endswith(f"\n{LAST}\n".encode()), seconds=WAIT_S)
        theirs.deactivate("version")
    assert job.result(WAIT_S) == LAST


def test_one_slot_is_enough() -> None:
    """A call needs no second sandbox: with one slot a function calls functions without waiting."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    one = Serving("--isolation", "best", "--slots", "1")
    with one as serving, serving.connect() as target:
        zone = target.create(target.create_partition())
        target.functions.put(LIBRARY, name="library", access=Access.READ, methods=METHODS)
        code = "import osd; osd.result(osd.call('library', 9, method='down'))"
        jobs = [target.exec(code, zone=zone) for _ in range(8)]
        assert [job.result(WAIT_S) for job in jobs] == [9] * 8


def test_hostile_calls(functions: Functions, target: pyosd.Target, lines: ObjectRef) -> None:
    """Frames that no client makes are refused, and nobody gains access by them."""
    functions.put(
        "import osd\n"
        "from osd._current import current\n"
        "from osd._transport import Call\n"
        "def refused(*call):\n"
        "    try: current().call(*call)\n"
        "    except osd.OSDError as error: return type(error).__name__\n"
        "def main(args):\n"
        "    out = [refused(Call.LEAVE, 0, 0), refused(Call.CODE, 0, 0)]\n"
        "    out += [refused(Call.ENTER, 0, 0, n, b, body) for n, b, body in\n"
        "            ((0, 0, b''), (5, 0, b'main'), (65, 0, bytes(70)), (0, 1, b'blind'),\n"
        "             (0, 0, bytes(129)), (1 << 63, 0, b'blind'))]\n"
        "    current().call(Call.ENTER, 0, 0, 0, 0, b'blind')\n"
        "    out += [refused(Call.CODE, 0, 0, 1 << 40), refused(Call.CODE, 0, 0, 0, 1)]\n"
        "    current().call(Call.LEAVE, 0, 0)\n"
        "    out += [refused(Call.LEAVE, 0, 0), refused(Call.WRITE, *args, 0, 0, b'gain')]\n"
        "    return out\n",
        name="hostile",
        access=Access.READ,
    )
    ids = [lines.partition_id, lines.object_id]
    found = functions.call("hostile", ids, zone=lines)
    assert found == ["Invalid"] * 11 + ["PermissionDenied"]
