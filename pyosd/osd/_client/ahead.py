# SPDX-License-Identifier: GPL-2.0-or-later
"""A process at a client that is started ahead, and runs one script after the other, each in a child.

It has imported the modules that scripts need, so that a child starts without delay.  The child for the
next script is forked while one runs, and logs in to the same target.  Each line on standard input is a
JSON object:

environment: variables to add.
script: path of the script.
output, stderr: files for what the child writes.

The process says "ready" first, and answers each line with the exit code of the child, or minus the
signal that ended it.  At the end of its standard input it kills the child that runs, and ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
from typing import Any

from pyosd.iscsi.memory import keep_memory

__all__ = ["next_order"]

BEGUN_S = 0.05  # that a script runs before the next child is forked, which takes processor time
LOGGED_IN_S = 60.0  # that a child without an order keeps its session
WRITES = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def next_order() -> dict[str, Any] | None:
    """Serve standard input.

    Returns: in a child, its order; in the process itself None, at the end of the input.
    """
    keep_memory()
    importlib.import_module("pyosd.osd._client.connect")
    importlib.import_module("encodings.idna")  # of the target's name
    gc.freeze()  # the end of a child would else traverse all modules, and copy their memory
    # A terminal sends it to the client as well, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("ready", flush=True)
    running, url = 0, ""
    while True:
        if running and is_over(running, BEGUN_S):
            if not answered(running):
                return None
            running = 0
        orders, writer = os.pipe()
        waiting = os.fork()
        if not waiting:
            os.close(writer)
            return order_from(orders, url)
        os.close(orders)
        with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "wb") as given:
            if running and not answered(running):
                break
            line = sys.stdin.buffer.readline()
            if not line:
                break
            given.write(line)
        running, url = waiting, json.loads(line)["environment"]["IOSD_TARGET"]
    os.waitpid(waiting, 0)
    return None


def order_from(orders: int, url: str) -> dict[str, Any]:
    """In a child: log in, wait for the order, and become the process of its script."""
    connecting = importlib.import_module("pyosd.osd._client.connect")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)  # the end of the process itself shall close its output
    os.close(nothing)
    with os.fdopen(orders, "rb") as given:
        if url:
            connecting.log_in_ahead(url)
            if not select.select([given], [], [], LOGGED_IN_S)[0]:
                connecting.log_out_ahead()
        line = given.readline()
    if not line:
        connecting.log_out_ahead()
        os._exit(0)
    order: dict[str, Any] = json.loads(line)
    become(order)
    return order


def become(order: dict[str, Any]) -> None:
    """Be the process of a script: without standard input, its output in files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, descriptor in (("output", 1), ("stderr", 2)):
        file = os.open(order[name], WRITES, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.update(order["environment"])


def is_over(child: int, timeout: float | None = None) -> bool:
    """Wait until the child ends, or the input does: whether one has within so many seconds."""
    ended = os.pidfd_open(child)
    try:
        return any(select.select([ended, sys.stdin], [], [], timeout)[0])
    finally:
        os.close(ended)


def answered(child: int) -> bool:
    """Wait for the child and answer with its exit code.  False: the input has ended; it is killed."""
    is_over(child)
    goes_on = not select.select([sys.stdin], [], [], 0)[0]
    if not goes_on:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if goes_on:
        print(code, flush=True)
    return goes_on
