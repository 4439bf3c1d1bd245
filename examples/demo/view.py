# SPDX-License-Identifier: GPL-2.0-or-later
"""The second half of the demonstration: one user's lines of the log, in two ways.

A view shows these lines alone.  A client READs them and knows nothing of functions.  The other way is
to fetch the log and to filter it here, by another program.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pyosd
from examples.demo.serving import osd
from examples.demo.ways import Outcome
from pyosd.types import ObjectRef

__all__ = ["create_view", "fetch_and_filter", "first_user", "read_view"]

VIEW = "0x30000"


def first_user(output: bytes) -> str:
    """The user with the most requests, of what log.py prints."""
    kind, user, _ = output.decode().splitlines()[0].split()
    assert kind == "user"
    return user


def request_of(user: str) -> str:
    """The text that all requests of a user contain."""
    return f" euid {user} egid "


def create_view(url: str, log: ObjectRef, user: str) -> ObjectRef:
    """Make a view of the log's partition; return the object that shows the log."""
    base = hex(log.partition_id)
    stage = f"lines:contains={request_of(user)}"
    for words in (("fn", "stock", "lines"), ("view", "create", VIEW, "--of", base, stage)):
        subprocess.run(osd(*words, "--target", url), check=True, stdout=subprocess.DEVNULL)
    return ObjectRef.parse(f"{VIEW}/{log.object_id:#x}")


def fetch(url: str, obj: ObjectRef, file: Path) -> Outcome:
    """READ an object into a file; the outcome has no output."""
    with pyosd.connect(url) as target, file.open("wb") as out:
        start = time.perf_counter()
        for piece in target.iter_read(obj):
            out.write(piece)
        seconds = time.perf_counter() - start
        return Outcome(b"", seconds, target.bytes_sent, target.bytes_received)


def read_view(url: str, shown: ObjectRef, folder: Path) -> Outcome:
    """READ the object of the view."""
    file = folder / "view"
    way = fetch(url, shown, file)
    return Outcome(file.read_bytes(), way.seconds, way.sent_bytes, way.received_bytes)


def fetch_and_filter(url: str, log: ObjectRef, folder: Path, user: str) -> Outcome:
    """READ all of the log, and filter it with grep."""
    file = folder / "fetched.log"
    way = fetch(url, log, file)
    start = time.perf_counter()
    found = subprocess.run(
        ["grep", "-F", "--", request_of(user), file],
        env=os.environ | {"LC_ALL": "C"},
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds = way.seconds + time.perf_counter() - start
    return Outcome(found.stdout, seconds, way.sent_bytes, way.received_bytes)
