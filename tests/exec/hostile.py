# SPDX-License-Identifier: GPL-2.0-or-later
"""The corpus of hostile and broken scripts: each with the one state and reason it ends with.

Data only; test_hostile.py submits them to a real target and looks what they left on the host.
Single calls that fail at once from Python are in tests/sandbox/denied.py. System calls without a
function in Python are in sandbox/test_syscalls.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyosd
from pyosd.wire.job_status import JobState

COMPLETED, FAILED, TIMEOUT = JobState.COMPLETED, JobState.FAILED, JobState.TIMEOUT
NO_MEMORY, LIMIT = JobState.OUT_OF_MEMORY, JobState.LIMIT_EXCEEDED

SMALL = pyosd.Limits(mem="64MiB", wall=50.0)
# The processor limit is by default the wall limit, and a busy script could come to either first.
BRIEF = pyosd.Limits(cpu=50.0, wall=0.15)
QUICK = pyosd.Limits(wall=50.0)  # of a busy machine; none of them is to come to it
CPU = pyosd.Limits(cpu=0.2, wall=50.0)
MORE = pyosd.Limits(mem="600MiB", cpu=90.0, wall=100.0)
TALK = pyosd.Limits(output="64KiB", wall=50.0)


@dataclass(frozen=True)
class Case:
    """A script and its end.

    says: what the job's message contains.  prints: its whole standard output, None: not looked at.
    exit_code, signal: None: not looked at.
    """

    script: str | bytes
    state: JobState = FAILED
    reason: int = 201
    limits: pyosd.Limits = field(default=QUICK)
    says: str = ""
    prints: bytes | None = None
    exit_code: int | None = None
    signal: int | None = None


def completes(script: str | bytes, prints: bytes | None = b"") -> Case:
    return Case(script, COMPLETED, 0, prints=prints)


def out_of_memory(script: str) -> Case:
    return Case(script, NO_MEMORY, 303, SMALL)


def times_out(script: str) -> Case:
    return Case(script, TIMEOUT, 301, BRIEF)


# ---- every way to end (17) ----------------------------------------------------------------------

EXITS = {
    "exit 0": Case("raise SystemExit(0)", COMPLETED, 0, exit_code=0),
    "exit 1": Case("raise SystemExit(1)", FAILED, 202, exit_code=1),
    "exit 255": Case("raise SystemExit(255)", FAILED, 202, exit_code=255),
    "exit 256": Case("raise SystemExit(256)", COMPLETED, 0, exit_code=0),
    "exit -1": Case("raise SystemExit(-1)", FAILED, 202, exit_code=255),
    "exit with text": Case("raise SystemExit('text')", FAILED, 202, says="text", exit_code=1),
    "exit with a text that raises": Case(
        "class T:\n    def __str__(self): 1 / 0\nraise SystemExit(T())", FAILED, 202, exit_code=1
    ),
    "exit in a nest of finally": Case(
        "try:\n    raise SystemExit(3)\nfinally:\n    raise SystemExit(4)", FAILED, 202, exit_code=4
    ),
    "exception": Case("1 / 0", says="ZeroDivisionError: division by zero", exit_code=1),
    "exception without words": Case("class E(BaseException): pass\nraise E", says="E"),
    "exception whose words raise": Case(
        "class E(Exception):\n    def __str__(self): raise self\nraise E", says="E"
    ),
    "exception with a mebibyte of words": Case("raise ValueError('x' * (1 << 20))", says="ValueE"),
    "exception with controls": Case("raise ValueError('\\x1b[2J\\0\\n')", says="ValueError"),
    "a chain of exceptions": Case(
        "e = None\nfor i in range(1000):\n    n = ValueError(i); n.__cause__ = e; e = n\nraise e",
        says="ValueError: 999",
    ),
    "SyntaxError": Case("def", says="SyntaxError"),
    "SyntaxError in depth": Case("(" * 10_000, says="SyntaxError"),
    # CPython's parser has no other word for this than MemoryError.
    "an expression too deep": Case("-" * 100_000 + "1", NO_MEMORY, 303),
    "os._exit(0)": Case("import os; os._exit(0)", FAILED, 204, exit_code=0),
    "os._exit(9)": Case("import os; os._exit(9)", FAILED, 204, exit_code=9),
    "recursion": Case("def f(): f()\nf()", says="RecursionError"),
    "recursion over the stack": Case(
        "import sys\nsys.setrecursionlimit(1 << 30)\nx = []\nfor _ in range(10**5): x = [x]\nrepr(x)",
        FAILED,
        203,
        signal=11,
    ),
    "abort": Case("import os; os.abort()", FAILED, 203, signal=11),
    "reads at 0": Case("import faulthandler; faulthandler._read_null()", FAILED, 203, signal=11),
    "SIGSTOP to itself": Case("import os; os.kill(os.getpid(), 19)", says="PermissionError"),
    "SIGSTOP raised": Case("import signal; signal.raise_signal(19)", says="PermissionError"),
    "SIGKILL raised": Case("import signal; signal.raise_signal(9)", says="PermissionError"),
    "SIGTERM raised": Case("import signal; signal.raise_signal(15)", says="PermissionError"),
    "sleeps for ever": times_out("import time; time.sleep(10**6)"),
    "reads for ever": times_out("import os\nos.read(4, 1)"),
    "loops at its exit": times_out(
        "import atexit\n@atexit.register\ndef f():\n    while True: pass"
    ),
    "loops in its last words": times_out(
        "class T:\n    def __str__(self):\n        while True: pass\nraise SystemExit(T())"
    ),
    "loops in its traceback": times_out(
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"
    ),
    "loops in a flush": times_out(
        "import sys\nclass S:\n    def flush(self):\n        while True: pass\nsys.stdout = S()"
    ),
    "loops in a finalizer": times_out(
        "class D:\n    def __del__(self):\n        while True: pass\nD()"
    ),
    "ends in a loop that Ended does not end": times_out(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
}

OUTPUT = {
    "closed stdout": completes("import sys; sys.stdout.close()"),
    "closed descriptor of stdout": completes(
        "import os; print('a', flush=True); os.close(1)", b"a\n"
    ),
    "prints after closing": Case("import sys; sys.stdout.close(); print(1)", says="ValueError"),
    "all descriptors closed": completes("import os; os.closerange(0, 4096)"),
    "stdout that takes nothing": Case("import os; os.dup2(0, 1); print('lost')", says="OSError"),
    "a lone surrogate": Case("print('\\ud800')", says="UnicodeEncodeError"),
    "another encoding": Case(
        "open(1, 'w', encoding='ascii', closefd=False).write('\\xe9')", says="UnicodeEncodeError"
    ),
    "output that is no UTF-8": completes(
        "import os; os.write(1, bytes(range(256)))", bytes(range(256))
    ),
    "output of zeros": completes("import os; os.write(1, bytes(70000))", bytes(70000)),
    "a byte at a time": completes(
        "import os, time\nfor _ in range(200):\n    os.write(1, b'x'); time.sleep(0.001)",
        b"x" * 200,
    ),
    "just the limit": Case(
        "import os; os.write(1, b'x' * 65536)", COMPLETED, 0, TALK, prints=b"x" * 65536
    ),
    "a byte over the limit": Case("import os; os.write(1, b'x' * 65537)", LIMIT, 304, TALK),
    "a flood": Case("while True: print('x' * 1000)", LIMIT, 304, TALK),
    "ten gibibytes": Case(
        "import os\nx = bytes(1 << 20)\nfor _ in range(10 << 10): os.write(1, x)",
        LIMIT,
        304,
        TALK,
        prints=bytes(64 << 10),
    ),
    "a flood that minds nothing": Case(
        "import os\nwhile True:\n    try:\n        while True: os.write(1, bytes(1 << 20))\n"
        "    except BaseException: pass",
        LIMIT,
        304,
        TALK,
    ),
    "a flood of errors": Case(
        "import os\nfor _ in range(1000): os.write(2, bytes(10_000))", COMPLETED, 0, TALK
    ),
    "a flood of logs": Case(
        "import osd\nfor _ in range(2000): osd.log('x' * 1000)", COMPLETED, 0, TALK
    ),
    "a flood of progress": completes(
        "import osd\nfor i in range(2000): osd.progress(i / 2000, 'x' * 200)"
    ),
    "a message that is no text": Case("import osd; osd.progress(0, '\\ud800')", FAILED, 201),
}

SOURCES = {
    "no UTF-8": Case(b"x = '\xff'", says="SyntaxError"),
    "a NUL": Case(b"x = 1\0", says="ValueError"),
    "only NULs": Case(bytes(100), says="ValueError"),
    "UTF-16": Case("print(1)".encode("utf-16"), FAILED, 201),
    "a byte order mark": completes(b"\xef\xbb\xbfprint(1)", b"1\n"),
    "Latin-1, and says so": completes(b"# coding: latin-1\nprint('\xe9')", b"\xc3\xa9\n"),
    "an encoding nobody has": Case(b"# coding: none\nprint(1)", says="SyntaxError"),
    "an encoding that runs code": Case(b"# coding: rot13\ncevag(1)", says="SyntaxError"),
    "form feeds and returns": completes(b"\x0cprint(1)\r\nprint(2)\r", b"1\n2\n"),
    "noise": Case(bytes(range(1, 256)) * 100, says="SyntaxError"),
    "a line of a mebibyte": completes(
        b"x = '" + b"x" * (1 << 20) + b"'\nprint(len(x))", b"1048576\n"
    ),
}

# ---- memory (21) --------------------------------------------------------------------------------

MEMORY = {
    "more than a spare sandbox has": Case(
        "print(len(bytes(560 << 20)))", COMPLETED, 0, MORE, prints=b"587202560\n"
    ),
    "more than more": Case("bytes(601 << 20)", NO_MEMORY, 303, MORE),
    "more than any host has": out_of_memory("bytearray(1 << 45)"),
    "more than the limit": out_of_memory("x = bytearray(65 << 20)"),
    "slow growth": out_of_memory("x = []\nwhile True: x.append(bytes(100_000))"),
    "many small objects": out_of_memory("x = []\nwhile True: x.append([1])"),
    "many keys": out_of_memory("x = {}\nwhile True: x[len(x)] = object()"),
    "doubling": out_of_memory("x = 'ab'\nwhile True: x += x"),
    "a number that squares itself": times_out("x = 3\nwhile True: x *= x"),
    "a zip bomb": out_of_memory(
        "import zlib\nc = zlib.compressobj()\n"
        "bomb = b''.join(c.compress(bytes(1 << 20)) for _ in range(72)) + c.flush()\n"
        "zlib.decompress(bomb)"
    ),
    "a bz2 bomb": out_of_memory("import bz2; bz2.decompress(bz2.compress(bytes(1 << 20)) * 72)"),
    "a JSON bomb": out_of_memory("import json; json.loads('[' + '[],' * (8 << 20) + '[]]')"),
    "private maps": out_of_memory(
        "import mmap\nx = []\nwhile True:\n"
        "    x.append(mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))\n"
        "    x[-1][:] = bytes(1 << 20)"
    ),
    "memory errors caught for ever": times_out(
        "x = []\nwhile True:\n    try:\n        while True: x.append(bytes(1 << 20))\n"
        "    except MemoryError: pass"
    ),
    "out of memory in a finalizer": out_of_memory(
        "class D:\n    def __del__(self): bytearray(1 << 45)\nd = D()\ndel d\nbytearray(1 << 45)"
    ),
    "page cache": Case(
        "import osd\no = osd.zone.create_many(1)[0]\no.data.truncate(256 << 20)\nm = o.data.map()\n"
        "print(sum(memoryview(m)[::4096]))",
        COMPLETED,
        0,
        SMALL,
        prints=b"0\n",
    ),
}

# ---- processes (22) -----------------------------------------------------------------------------

WAITERS = (
    "import threading\nstop = threading.Event()\n"
    "try:\n    for _ in range({}): threading.Thread(target=stop.wait).start()\n"
    "    print(threading.active_count() - 1)\nfinally: stop.set()"
)
PROCESSES = {
    "forks": Case("import os; os.fork()", says="PermissionError"),
    "a fork bomb": times_out(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    ),
    "forks twice and lets go": Case(
        "import os\nif os.fork() == 0:\n    os.setsid()\n    os.fork()", says="PermissionError"
    ),
    "a thread bomb": times_out(
        "import threading\nwhile True:\n"
        "    try: threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "    except RuntimeError: pass"
    ),
    "a thread": Case(
        "import threading; threading.Thread(target=print).start()",
        LIMIT,
        305,
        says="RuntimeError: can't start new thread",
    ),
    "a thread too many, and it minds": completes(
        "import threading\ntry: threading.Thread(target=print).start()\n"
        "except RuntimeError: print('alone')",
        b"alone\n",
    ),
    "as many threads as it may": Case(
        WAITERS.format(3), COMPLETED, 0, pyosd.Limits(wall=50.0, procs=4), prints=b"3\n"
    ),
    "a thread more than it may": Case(
        WAITERS.format(4), LIMIT, 305, pyosd.Limits(wall=50.0, procs=4), says="RuntimeError"
    ),
    "more threads than it has memory": Case(
        WAITERS.format(15), LIMIT, 305, pyosd.Limits(wall=50.0, procs=16, mem="64MiB")
    ),
    "waits for children": Case("import os; os.wait()", says="Error"),
    "an interpreter in the interpreter": Case("import _xxsubinterpreters", says="ImportError"),
}

# ---- processor time (23) ------------------------------------------------------------------------

LOOPS = {
    "a loop": times_out("while True: pass"),
    "a regular expression": times_out("import re; re.match('(a+)+$', 'a' * 40 + 'b')"),
    "a power": times_out("10 ** (10 ** 8)"),
    "a number from text": times_out("import sys; sys.set_int_max_str_digits(0); int('9' * 10**7)"),
    "a C loop that allocates nothing": times_out("sum(iter(int, 1))"),
    "a C loop without an end": times_out(
        "import collections, itertools\ncollections.deque(itertools.repeat(0), maxlen=0)"
    ),
    "holds the lock": times_out("import sys; sys.setswitchinterval(10**6)\nwhile True: pass"),
    "ignores signals": times_out(
        "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except OSError: pass\nwhile True: pass"
    ),
    "blocks signals": times_out(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"
    ),
    "traces itself": times_out(
        "import sys\ndef t(*a):\n    while True: pass\nsys.settrace(t)\ndef f(): pass\nf()"
    ),
    "collects for ever": times_out("import gc\nwhile True: gc.collect()"),
    "uses up its time": Case("while True: pass", LIMIT, 302, CPU),
    "uses up its time in C": Case("sum(iter(int, 1))", LIMIT, 302, CPU),
    "uses up its time in calls": Case(
        "import osd\nwhile True: osd.zone.exists()", TIMEOUT, 301, BRIEF
    ),
}

# ---- files (24) ---------------------------------------------------------------------------------

LIBRARY = "/usr/lib/python3.11"
FILES = {
    "more files than it may": Case(
        "x = []\nwhile True: x.append(open('/dev/null'))",
        LIMIT,
        306,
        says="Too many open files",
    ),
    "as many files as it may": completes(
        "x = []\ntry:\n    while True: x.append(open('/dev/null'))\n"
        "except OSError as error: print(len(x) >= 256, error.errno)",
        b"True 24\n",
    ),
    "a NUL in a name": Case("open('/dev/null\\0x')", says="ValueError"),
    "a name of a mebibyte": Case("open('x' * (1 << 20))", says="File name too long"),
    "the root by dots": Case("open('/../../../../etc/passwd')", says="Error"),
    "dots through the library": Case(f"open('{LIBRARY}/../../../etc/shadow')", says="Error"),
    "the old root": Case("import os; os.listdir('/proc/1/root')", says="Error"),
    "a descriptor's name": Case("open('/proc/self/fd/1', 'w')", says="Error"),
    "a descriptor in /dev": Case("open('/dev/fd/1', 'w')", says="Error"),
    "its own memory": Case("open('/proc/self/mem', 'r+b')", says="Error"),
    "its own map": Case("open('/proc/self/maps')", says="Error"),
    "shared memory": Case(
        "from multiprocessing import shared_memory as s\ns.SharedMemory(size=1)", says="Error"
    ),
    "a module of its own in the library": Case(
        f"import importlib._bootstrap_external as b\nopen('{LIBRARY}/__pycache__/x.pyc', 'wb')",
        says="Error",
    ),
    "a map written back to the library": Case(
        f"import mmap\nf = open('{LIBRARY}/os.py', 'rb')\n"
        "mmap.mmap(f.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)",
        says="PermissionError",
    ),
    "a map that runs": Case(
        f"import mmap\nf = open('{LIBRARY}/os.py', 'rb')\n"
        "mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)",
        says="PermissionError",
    ),
    "a map made larger": Case(
        "import mmap\nmmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).resize(1 << 45)",
        NO_MEMORY,
        303,
    ),
    "an object's descriptor, written": Case(
        "import osd, os\no = osd.zone.create_many(1)[0]\no.data.write(b'x' * 100_000)\no.data.read()\n"
        "for fd in range(3, 300):\n"
        "    try: n = os.pwrite(fd, b'evil', 0)\n"
        "    except OSError: continue\n"
        "    print(fd, n)\n"
        "print(o.data.read(4))",
        COMPLETED,
        0,
        prints=b"b'xxxx'\n",
    ),
    "every descriptor, cut and changed": completes(
        "import os\nfor fd in range(64):\n"
        "    for f in (lambda: os.ftruncate(fd, 0), lambda: os.fchmod(fd, 0o777),\n"
        "              lambda: os.fchown(fd, 0, 0), lambda: os.posix_fallocate(fd, 0, 1),\n"
        "              lambda: os.fchdir(fd), lambda: os.posix_fadvise(fd, 0, 0, 4)):\n"
        "        try: f()\n"
        "        except OSError: continue\n"
        "        print(fd)\n"
    ),
}

# ---- the network (25) ---------------------------------------------------------------------------

NETWORK = {
    "every family and type": completes(
        "import socket\nfor family in range(64):\n    for kind in (1, 2, 3, 4, 5, 6, 10):\n"
        "        try: socket.socket(family, kind)\n"
        "        except PermissionError: continue\n"
        "        print(family, kind)"
    ),
    "a name looked up": Case("import socket; socket.getaddrinfo('localhost', 80)", says="gaierror"),
    "the web": Case(
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')", says="Error"
    ),
    "the job's socket as a network": Case(
        "import socket\nsocket.socket(fileno=4).connect('/run/x')", says="PermissionError"
    ),
}

# ---- its own runtime and the proxy (27) ---------------------------------------------------------

CALL = "import _osdcore as c\n"
PROXY = {
    "an unknown call": Case(CALL + "c.call(999, 0, 0)", FAILED, 404),
    "call 0": Case(CALL + "c.call(0, 0, 0)", FAILED, 404),
    "an end in another way than any": Case(CALL + "c.call(1, 0, 0, 0, 99, bytes(4))", FAILED, 404),
    "an end without a body": Case(CALL + "c.call(1, 0, 0, 0, 0, b'')", FAILED, 404),
    "an end whose traceback is longer than it": Case(
        CALL + "c.call(1, 0, 0, 0, 1, b'\\xff\\xff\\xff\\xff')", FAILED, 404
    ),
    "an end, and on it goes": Case(
        CALL + "c.call(1, 0, 0, 0, 0, bytes(4))\nwhile True: pass", COMPLETED, 0
    ),
    "an end, and calls": Case(
        CALL + "c.call(1, 0, 0, 0, 0, bytes(4))\nwhile True: c.call(16, 0, 0)", COMPLETED, 0
    ),
    "an end with an exit code of 64 bits": Case(
        CALL + "c.call(1, 0, 0, 2**64 - 1, 2, bytes(4))\nwhile True: pass", FAILED, 202
    ),
    "a body too large": Case(CALL + "c.call(33, 1, 1, 0, 0, bytes(3 << 20))", says="ValueError"),
    "a write at the end of numbers": Case(
        "import osd\n" + CALL + "o = osd.zone.create_many(1)[0]\n"
        "c.call(33, o.partition_id, o.object_id, 2**64 - 1, 0, b'x')",
        says="osd",
    ),
    "a read of everything": Case(
        "import osd\n" + CALL + "o = osd.zone.create_many(1)[0]\n"
        "c.call(32, o.partition_id, o.object_id, 0, 2**64 - 1)",
        says="osd",
    ),
    "lists of nonsense": completes(
        CALL + "import osd, random\nr = random.Random(7)\n"
        "for op in range(16, 42):\n    for _ in range(20):\n"
        "        try: c.call(op, *(r.getrandbits(64) for _ in range(4)), r.randbytes(r.randrange(200)))\n"
        "        except osd.OSDError: pass"
    ),
    "a result with a hole": Case(CALL + "c.call(3, 0, 0, 1 << 30, 0, b'x')", says="osd"),
    "a result at the end of numbers": Case(
        CALL + "c.call(3, 0, 0, 2**64 - 1, 0, b'xx')", says="osd"
    ),
    "nonsense on the job's socket": completes("import os; os.write(4, b'nonsense' * 100)"),
    "a flood of the job's socket": times_out("import os\nwhile True: os.write(4, bytes(1000))"),
    "says it is ready": completes("import os; os.write(4, b'\\0\\1\\0\\1')"),
    "the job's socket is closed": completes("import os; os.close(4)"),
    "shares without a socket": completes(
        "import os, osd\no = osd.zone.create_many(1)[0]\no.data.write(bytes(100_000))\nos.close(4)\n"
        "print(len(o.data.read()))",
        b"100000\n",
    ),
    "calls within calls": completes(
        "import osd, gc\nclass D:\n    def __init__(self): self.me = self\n"
        "    def __del__(self): osd.zone.exists(); D()\n"
        "gc.set_threshold(1)\nd = D()\nfor _ in range(300): osd.zone.exists()"
    ),
    "ten thousand calls": completes("import osd\nfor _ in range(10_000): osd.zone.exists()"),
    "its host replaced": Case(
        "import osd._engine.host as h, sys\nfor n in list(vars(h)):\n    setattr(h, n, None)"
    ),
    "everything deleted": Case(
        "import sys, builtins\nsys.modules.clear()\nfor n in list(vars(builtins)): delattr(builtins, n)",
        FAILED,
        201,
    ),
    "an audit hook": times_out(
        "import sys\ndef hook(*a):\n    while True: pass\nsys.addaudithook(hook)\nopen('/dev/null')"
    ),
}

# ---- machine code's powers: the interpreter is no boundary --------------------------------------

MEMORY_OF_ITS_OWN = """
import struct, _osdcore
def everything():
    # A bytearray over all addresses, fetched by an index far beyond a function's constants.
    fake = struct.pack("7Q", 1 << 30, id(bytearray), (1 << 63) - 1, (1 << 63) - 1, 0, 0, 0)
    pointer = struct.pack("Q", id(fake) + 32)
    def get(): return None
    code = get.__code__
    index = (id(pointer) + 32 - id(code.co_consts) - 24) // 8 & 0xffffffff
    a, b, c, d = index.to_bytes(4, "big")
    get.__code__ = code.replace(co_code=bytes([151, 0, 144, a, 144, b, 144, c, 100, d, 83, 0]))
    return get(), fake, pointer
memory, *kept = everything()
def word(at): return struct.unpack("Q", memory[at:at + 8])[0]
"""
SHARED_WITH_THE_PROXY = (
    MEMORY_OF_ITS_OWN
    + """
at = word(id(_osdcore.call) + 16) & ~7  # the program's data: the pointer stands behind it
while True:
    shm = word(at)
    if shm >> 40 in (0x7e, 0x7f) and not shm & 0xfff and memory[shm:shm + 4] == b"SDSO":
        break
    at += 8
CALL, ANSWER, CONTROL, USAGE = shm + 64, shm + 128, shm + 320, shm + 448
"""
)
NATIVE = {
    "has all memory": completes(
        MEMORY_OF_ITS_OWN + "print(word(id(memory) + 8) == id(bytearray))", b"True\n"
    ),
    "writes at 0": Case(MEMORY_OF_ITS_OWN + "memory[0] = 1", FAILED, 203, signal=11),
    "writes to the program": Case(
        MEMORY_OF_ITS_OWN + "memory[word(word(id(len) + 16) + 8)] = 0x90", FAILED, 203, signal=11
    ),
    "calls what is no code": Case(
        MEMORY_OF_ITS_OWN
        + "at = word(id(len) + 16) + 8\nmemory[at:at + 8] = id(kept).to_bytes(8, 'little')"
        "\nlen('')",
        FAILED,
        203,
        signal=11,
    ),
    "breaks the type of dictionaries": Case(
        MEMORY_OF_ITS_OWN + "memory[id(dict):id(dict) + 400] = bytes(400)\n{}",
        FAILED,
        203,
        signal=11,
    ),
    "lies about its usage": completes(
        SHARED_WITH_THE_PROXY + "memory[USAGE:USAGE + 24] = b'\\xff' * 24\nprint(1)", b"1\n"
    ),
    "calls and never wakes the proxy": completes(  # which sleeps for 0.1 s at most
        SHARED_WITH_THE_PROXY + "import osd, time\n"
        "while not memory[CALL + 4]: time.sleep(0.001)\n"
        "time.sleep(0.02)  # it waits\n"
        "memory[CALL + 4:CALL + 8] = bytes(4)\nosd.zone.exists()"
    ),
    "breaks the line it is ended by": times_out(
        SHARED_WITH_THE_PROXY + "memory[CONTROL:CONTROL + 64] = b'\\xff' * 64\nwhile True: pass"
    ),
}

CORPUS = {
    f"{kind}: {name}": case
    for kind, cases in {
        "exit": EXITS,
        "output": OUTPUT,
        "source": SOURCES,
        "memory": MEMORY,
        "processes": PROCESSES,
        "processor": LOOPS,
        "files": FILES,
        "network": NETWORK,
        "proxy": PROXY,
        "native": NATIVE,
    }.items()
    for name, case in cases.items()
}
