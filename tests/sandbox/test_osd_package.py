# SPDX-License-Identifier: GPL-2.0-or-later
"""Package osd at both ends: one script (osd_suite.py) in a sandbox and at a client; and what only the
sandbox has: descriptors, versions, maps.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import objects
import pytest
from objects import MemoryObjects, Thing
from proxy import FINISH_OK, ROOT, Daemon

SUITE = Path(__file__).with_name("osd_suite.py")
HARNESS = ROOT / "build" / "target" / "osd_harness"
ARGS = json.dumps(["one", "two"]).encode()
READ, LENGTH, SHARE, UNSHARE = 32, 38, 40, 41
NAMES = re.findall(r"@check\ndef (\w+)", SUITE.read_text())
EXPECTED = "".join(f"{name} ok\n" for name in NAMES)

CLIENT = """
import runpy, sys
sys.path[:0] = [{root!r}, {tests!r}]
import pyosd.osd as osd
sys.modules["osd"] = osd
from harness_transport import HarnessTransport
from pyosd.commands import Commands
from pyosd.osd._client.session import SessionTransport
with HarnessTransport([{harness!r}, "dir={data}"]) as transport:
    osd.use(SessionTransport(Commands(transport), osd.Context(["one", "two"])))
    runpy.run_path({suite!r}, run_name="__main__")
"""


@pytest.mark.parametrize("share", [True, False], ids=["descriptors", "calls"])
@pytest.mark.parametrize("head_bytes", [1 << 62, 64 << 10], ids=["one file", "head and tail"])
def test_in_a_sandbox(daemon: Daemon, share: bool, head_bytes: int) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(SUITE.read_bytes(), args=ARGS, args_encoding=2, name="osd_suite.py")
    out = sandbox.finish(MemoryObjects(head_bytes, share))
    sandbox.close()
    assert out.kind == FINISH_OK, out.stderr.decode()
    assert out.stdout.decode() == EXPECTED
    assert json.loads(out.result) == {"checks": len(NAMES)}


BYTE_CODE = b"""
import importlib.util, os, struct, sys
ours = [module for name, module in sys.modules.items() if name.partition('.')[0] == 'osd']
for each in ours:
    with open(each.__cached__, 'rb') as file:
        header = struct.unpack('<4sIII', file.read(16))
    source = os.stat(each.__file__)
    assert header == (importlib.util.MAGIC_NUMBER, 0, int(source.st_mtime), source.st_size), each
assert len(ours) > 10
"""


def test_its_byte_code_is_used(daemon: Daemon) -> None:
    """A zygote that compiles it starts a third later."""
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(BYTE_CODE)
    out = sandbox.finish(MemoryObjects())
    sandbox.close()
    assert out.kind == FINISH_OK, out.stderr.decode()


@pytest.mark.skipif(not HARNESS.exists(), reason="target/ is not built")
def test_at_a_client(tmp_path: Path) -> None:
    script = CLIENT.format(
        root=str(ROOT),
        tests=str(ROOT / "tests"),
        harness=str(HARNESS),
        data=tmp_path / "data",
        suite=str(SUITE),
    )
    (tmp_path / "data").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == EXPECTED, done.stderr


def test_without_a_target_the_client_says_what_it_needs() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pyosd.osd as o; o.root().exists()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "IOSD_TARGET"},
    )
    assert "needs IOSD_TARGET" in done.stderr


class Watched(MemoryObjects):
    """One large object, 0x10000/0x10000, whose version page the test drives."""

    def __init__(self, content: bytes, head_bytes: int = 1 << 62) -> None:
        super().__init__(head_bytes)
        self.things[0x10000, 0] = Thing(2)
        self.thing_ = self.things[0x10000, 0x10000] = Thing(0x80, bytearray(content))
        self.shares = 0

    def op_40(self, sandbox, ids, a, b, body):
        self.shares += 1
        answer = super().op_40(sandbox, ids, a, b, body)
        self.after_share(struct.pack_into)
        return answer

    def after_share(self, pack) -> None:
        """For a test to say what the page shows from now on."""


def run_over(daemon: Daemon, store: MemoryObjects, code: str):
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("import osd, os\nu = osd.userobject(0x10000, 0x10000)\n" + code)
    out = sandbox.finish(store)
    sandbox.close()
    assert out.kind == FINISH_OK, out.stderr.decode()
    return out


READ_ALL = "f = u.data\nn = 0\nwhile b := f.read(1 << 20): n += len(b)\nprint(n)\n"


def test_large_reads_leave_the_proxy_alone(daemon: Daemon) -> None:
    store = Watched(os.urandom(8 << 20), head_bytes=1 << 20)
    out = run_over(daemon, store, READ_ALL + READ_ALL)
    assert out.stdout == b"8388608\n8388608\n"
    assert store.shares == 1
    assert out.calls.count(READ) <= 2


def test_reads_of_some_mib_do_not_ask_for_the_length(daemon: Daemon) -> None:
    store = Watched(os.urandom(9 << 20), head_bytes=1 << 20)
    out = run_over(daemon, store, READ_ALL.replace("1 << 20", "4 << 20"))
    assert out.stdout == b"9437184\n"
    assert LENGTH not in out.calls


def test_a_writer_that_never_stops_does_not_starve_a_reader(daemon: Daemon) -> None:
    store = Watched(os.urandom(4 << 20))
    store.after_share = lambda pack: pack("=Q", store.thing_.files.page, 0, 3)  # odd for ever
    out = run_over(daemon, store, READ_ALL)
    assert out.stdout == b"4194304\n"
    assert out.calls.count(READ) > 4  # by way of the proxy


def test_a_removed_object_is_gone_at_the_next_read(daemon: Daemon) -> None:
    store = Watched(os.urandom(4 << 20))
    out = run_over(
        daemon,
        store,
        "f = u.data; f.read(1 << 20); f.read(1 << 20); m = u.data.map(); u.remove()\n"
        "for attempt in (lambda: f.read(1 << 20), u.data.map, m.changed):\n"
        "    try: attempt()\n    except osd.NotFound: print('gone')",
    )
    assert out.stdout == b"gone\n" * 3


def test_files_that_were_replaced_are_asked_for_again(daemon: Daemon) -> None:
    code = (
        "f = u.data\nf.read(1 << 20); f.read(1 << 20)\nu.punch(0, 0)\n"
        "f.seek(0)\nprint(len(f.read(1 << 20)))"
    )

    class Punched(Watched):
        def op_37(self, sandbox, ids, a, b, body):
            struct.pack_into("=Q", self.thing_.files.page, 24, 1)

    store = Punched(os.urandom(4 << 20))
    out = run_over(daemon, store, code)
    assert out.stdout == b"1048576\n"
    assert store.shares == 2
    assert out.calls.count(UNSHARE) == 1


def test_an_object_that_grew_a_file_is_asked_for_again(daemon: Daemon) -> None:
    store = Watched(b"x" * (2 << 20), head_bytes=2 << 20)

    def grow(pack) -> None:
        if store.shares == 1:
            store.thing_.data += b"y" * (2 << 20)
            pack("=Q", store.thing_.files.page, 8, 4 << 20)

    store.after_share = grow
    out = run_over(
        daemon,
        store,
        "f = u.data; f.read(1 << 20)\nprint(len(f.read(1 << 20)), f.read(1 << 20)[:1], f.read()[-1:])",
    )
    assert out.stdout == b"1048576 b'y' b'y'\n"
    assert store.shares == 2


def test_a_map_knows_that_somebody_wrote(daemon: Daemon) -> None:
    class Writing(Watched):
        def op_39(self, sandbox, ids, a, b, body):  # flush stands for a stranger's write
            struct.pack_into("=Q", self.thing_.files.page, 0, 4)

    store = Writing(b"a" * (3 << 20), head_bytes=2 << 20)
    out = run_over(
        daemon,
        store,
        "m = u.data.map(); print(len(m), type(m).__name__, bytes(memoryview(m)[(2 << 20) - 1 :][:2]))\n"
        "print(m.changed()); u.flush(); print(m.changed())\n"
        "try: memoryview(m)[0] = 1\nexcept TypeError: print('read-only')",
    )
    assert out.stdout == b"3145728 LiveMap b'aa'\nFalse\nTrue\nread-only\n"


def test_descriptors_passed_cannot_be_written_or_reopened(daemon: Daemon) -> None:
    store = Watched(b"a" * (3 << 20))
    out = run_over(
        daemon,
        store,
        "f = u.data; f.read(1 << 20); f.read(1 << 20)\n"
        "for fd in (3, 5, 6, 7, 8):\n"
        "    try: os.fstat(fd)\n    except OSError: continue\n"
        "    for attempt in (lambda: os.write(fd, b'x'), lambda: os.pwrite(fd, b'x', 0),\n"
        "                    lambda: os.ftruncate(fd, 0), lambda: os.open(f'/proc/self/fd/{fd}', 2),\n"
        "                    lambda: os.open(f'/dev/fd/{fd}', 2), lambda: os.fchmod(fd, 0o777)):\n"
        "        try: attempt(); print('got through')\n        except OSError: print('denied')",
    )
    assert set(out.stdout.split(b"\n")) == {b"denied", b""}


def test_many_objects_share_few_descriptors(daemon: Daemon) -> None:
    store = MemoryObjects()
    store.things[0x10000, 0] = Thing(2)
    for i in range(100):
        store.things[0x10000, 0x10000 + i] = Thing(0x80, bytearray(200 << 10))
    out = run_over(
        daemon,
        store,
        "for i in range(100):\n    f = osd.userobject(0x10000, 0x10000 + i).data\n"
        "    f.read(150 << 10); f.seek(0); f.read(); f.seek(0); assert len(f.read(2 << 20)) == 200 << 10\n"
        "fds = 0\nfor fd in range(1000):\n"
        "    try: os.fstat(fd); fds += 1\n    except OSError: pass\n"
        "print(fds)",
    )
    assert int(out.stdout) <= 4 + 64
    assert out.calls.count(SHARE) - out.calls.count(UNSHARE) <= 65


LONG = """
f = u.data
f.seek(5)
print(f.write(bytes(range(256)) * 36_000), f.tell(), u.data.append(b"a" * (9 << 20)))
f.seek(19 << 20)
try:
    f.write(b"z" * (3 << 20))
except osd.NoSpace as error:
    print(error, f.tell() - (19 << 20))
u.data.append("end")
"""


def test_long_writes_go_ahead_of_their_answers(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stop at the first piece that cannot be written, the position behind those that were."""
    monkeypatch.setattr(objects, "LENGTH_MOST", 20 << 20)
    store = Watched(b"")
    out = run_over(daemon, store, LONG)
    first, second = bytes(range(256)) * 36_000, b"a" * (9 << 20)
    written, stopped = out.stdout.decode().splitlines()
    assert written == f"{len(first)} {5 + len(first)} {5 + len(first)}"
    assert stopped == f"no space {3 << 19}"
    whole = (bytes(5) + first + second).ljust(19 << 20, b"\0")
    assert store.thing_.data == whole + b"z" * (3 << 19) + b"end"
    assert out.pieces > 40
