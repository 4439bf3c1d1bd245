# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve` without the time that the start of a Python and imports take: a run serves two
hundred targets.

One process for each worker has imported the program, and copies itself for each target.  The copy is a
child of the test run, not of that process (CLONE_PARENT): it is waited for as if it had been started here.
Not here: `osd` (tests/forked.py), calls by shell scripts (tests/cli/warm.py).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import inspect
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from tests.processes import long_lived

ROOT = Path(__file__).resolve().parents[1]
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]  # number of the system call
CLONE_PARENT = 0x8000
LONGEST = 1 << 17  # bytes of a request
HIGHEST = 1 << 20  # of descriptors
GIVEN = [*inspect.signature(subprocess.Popen._execute_child).parameters]  # type: ignore[attr-defined]
one_at_a_time = threading.Lock()


class WarmServe(subprocess.Popen[str]):
    """The process of a target.  Args: those of Popen(); args: the words of `osd target serve`."""

    def _execute_child(self, *given: Any) -> None:
        how = dict(zip(GIVEN, (self, *given), strict=True))
        request = json.dumps([how["args"], str(how["cwd"]), how["env"]]).encode()
        streams = [how[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        with one_at_a_time:
            link, _ = helper()
            socket.send_fds(link, [request], streams)
            self.pid = int(link.recv(LONGEST))
        self._child_created = True
        pipes = [how[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread")]
        self._close_pipe_fds(*pipes, how["errwrite"])  # type: ignore[attr-defined]


@functools.cache
def helper() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that has imported everything, and the connection to it; it ends with ours."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_serving", str(its.fileno())],
            cwd=ROOT,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
        )
    long_lived.add(process.pid)
    return ours, process


def clone() -> int:
    """os.fork(), but the new process is a child of our parent."""
    python, library = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True)  # these hold the GIL
    python.PyOS_BeforeFork()
    pid = int(
        library.syscall(*map(ctypes.c_long, (CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)))
    )
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Be as a process that was started with these."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, HIGHEST)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *words]


def main(link: socket.socket) -> None:
    """Answer each request with a process id; return in the new process, or when nobody asks any more."""
    while True:
        request, streams, _, _ = socket.recv_fds(link, LONGEST, 3)
        if not request:
            sys.exit()
        pid = clone()
        if pid == 0:
            link.detach()
            words, folder, environment = json.loads(request)
            become(words, folder, environment, streams)
            return
        for each in streams:
            os.close(each)
        link.send(str(pid).encode())


def leave(code: int) -> NoReturn:
    """End as an interpreter does, but without the clearing of all its objects: it costs as much as the rest
    of a stop."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    from iosd_host.cli.serve import serve

    gc.collect()
    gc.freeze()  # else a collection in a copy would copy the pages of all these objects
    main(socket.socket(fileno=int(sys.argv[1])))
    try:
        serve()
    except SystemExit as end:
        leave(int(end.code or 0))
