# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd` in a process of its own, without the quarter second that the start of a Python and imports take.

The process is a fork of the test's.  It has the user, folder, environment and streams that it is given,
and no other descriptors.  Not here: tests of the start itself, and of signals, which run the program;
calls by shell scripts (tests/cli/warm.py).
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

import click

from pyosd.cli import main
from tests.waiting import until

HIGHEST = 1 << 20  # of descriptors


def osd(
    *words: object,
    environment: Mapping[str, str] | None = None,
    folder: str | Path = "/",
    text: str = "",
    uid: int | None = None,
    terminal: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end.

    Args: environment: all of it; None: the test's.  text: standard input.  uid: also the group; None: ours.
        terminal: descriptor that both outputs go to, which the caller reads; the result has none of it.
    Raises: AssertionError: it does not end; it is killed.
    """
    argv = [str(word) for word in words]
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    os.pwrite(streams[0], text.encode(), 0)
    given = streams if terminal is None else [streams[0], terminal, terminal]
    _import(argv)
    pid = os.fork()
    if pid == 0:
        _be_osd(argv, given, dict(os.environ if environment is None else environment), folder, uid)
    status = 0

    def ended() -> bool:
        nonlocal status
        found, status = os.waitpid(pid, os.WNOHANG)
        return found == pid

    try:
        until(ended, f"{argv} does not end")
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    said = [os.pread(each, os.fstat(each).st_size, 0).decode() for each in streams[1:]]
    for each in streams:
        os.close(each)
    return subprocess.CompletedProcess(argv, os.waitstatus_to_exitcode(status), *said)


def _import(argv: list[str]) -> None:
    """Import the verb here, so that no call has to."""
    command: click.Command | None = main
    context = click.Context(main)
    for word in argv:
        if isinstance(command, click.Group):
            command = command.get_command(context, word)


def _be_osd(
    argv: list[str],
    streams: list[int],
    environment: dict[str, str],
    folder: str | Path,
    uid: int | None,
) -> None:
    """Become the program; does not return."""
    code: object = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, HIGHEST)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate(("r", "w", "w"))
        )
        warnings.resetwarnings()  # these and the handlers are pytest's
        warnings.simplefilter("ignore")
        logging.root.handlers.clear()
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # it was asked for before, in another environment
        os.chdir(folder)
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        sys.argv = ["osd", *argv]
        main(argv, prog_name="osd")
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
