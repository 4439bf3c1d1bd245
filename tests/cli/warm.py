# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd` for shell scripts of tests without the quarter second that a Python takes to start.

One process (tests/warm.py) forks for each call, as the program would be after its imports:
arguments, folder, descriptors and exit code are the caller's.  The shell's side is a function of that
name, which writes to a pipe and waits for the code at another.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyosd.cli.jobs.exec
import pyosd.cli.jobs.job
import pyosd.cli.objects.obj  # noqa: F401 -- so that no call has to
from pyosd.cli import main
from pyosd.cli.paths import sync
from tests import warm

PIDFD_GETFD = 438  # number of the system call
ROOT = Path(__file__).resolve().parents[2]
LONGEST = 4096  # bytes that are written to a pipe in one piece

SHELL = """
osd() {{
	local pid=$BASHPID answer={folder}/answer.$BASHPID code
	mkfifo "$answer"
	# In a subshell: the caller's standard output shall not be the pipe, not for a moment.
	(printf '%s\\0' "$#" "$pid" "$PWD" "$answer" "$@" >{folder}/calls)
	read -r code <"$answer"
	rm "$answer"
	return "$code"
}}
"""


@contextlib.contextmanager
def warm_osd(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run the process; the value is what a bash script must begin with."""
    os.mkfifo(folder / "calls")
    server = warm.Python(
        [sys.executable, "-m", "tests.cli.warm", str(folder / "calls")],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield SHELL.format(folder=folder)
    finally:
        server.kill()
        server.wait()


def take_descriptors(pid: int) -> None:
    """Let this process have the other's standard streams."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    for fd in (0, 1, 2):
        copy = libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), f"descriptor {fd} of {pid}")
        os.dup2(copy, fd)
        os.close(copy)
    os.close(pidfd)


def call(pid: int, folder: str, answer: str, words: list[str]) -> None:
    """Be `osd` once, in a process of its own."""
    take_descriptors(pid)
    os.chdir(folder)
    code: object = 1
    try:
        main(words, prog_name="osd")
    except SystemExit as end:
        code = end.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        Path(answer).write_text(f"{code or 0}\n")
        os._exit(0)


def serve(calls: str) -> None:
    """Take calls for ever."""
    source = os.open(calls, os.O_RDWR)  # also for writing: it never ends
    left = b""
    while True:
        left += os.read(source, LONGEST)
        while len(fields := left.split(b"\0")) > 4 + int(fields[0] or 0):
            count = int(fields[0])
            words = [each.decode() for each in fields[1 : 4 + count]]
            left = b"\0".join(fields[4 + count :])
            if os.fork() == 0:
                call(int(words[0]), words[1], words[2], words[3:])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    sync.clock_ahead = lambda target: 0  # the target's clock is ours: test_sync.py, one_clock
    serve(sys.argv[1])
