# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the store tools in a small process that has imported them.

A store tool forks, as Berkeley DB can crash.  A fork of the test run, with all that it has imported,
takes much longer.  Not here: tests that replace a part of the tool, which call it in their own
process.
"""

from __future__ import annotations

import atexit
import functools
import socket
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection

from click.testing import CliRunner

from iosd_host.cli import store as commands
from tests.processes import companion, dismiss


@dataclass(frozen=True)
class Done:
    """The end of a command.  Attributes: output: both streams as a terminal shows them."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


def run_here(verb: str, words: list[str]) -> Done:
    """Run a command of iosd_host/cli/store.py.  Raises: the exception that ended it."""
    result = CliRunner().invoke(getattr(commands, verb), words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr, result.output)


def run_apart(verb: str, words: list[str]) -> Done:
    """The same in the small process."""
    link, _ = helper()
    link.send((verb, words))
    done = link.recv()
    if isinstance(done, BaseException):
        raise done
    assert isinstance(done, Done)
    return done


@functools.cache
def helper() -> tuple[Connection, subprocess.Popen[bytes]]:
    """The connection to the process, which ends with ours."""
    ours, process = companion("tests.offline.tool_process", socket.SOCK_STREAM)
    link = Connection(ours.detach())
    atexit.register(dismiss, link, process)
    return link, process


def main(link: Connection) -> None:
    """Answer requests until nobody asks any more."""
    while True:
        try:
            verb, words = link.recv()
        except EOFError:
            return
        try:
            link.send(run_here(verb, words))
        except Exception as error:
            link.send(error)


if __name__ == "__main__":
    # Results are pickled: their class must not be that of __main__.
    from tests.offline import tool_process

    tool_process.main(Connection(int(sys.argv[1])))
