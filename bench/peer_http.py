# SPDX-License-Identifier: GPL-2.0-or-later
"""A plain file server and a program at the client: nginx serves the log, the client fetches it and runs the
demo's script over it, in a running interpreter.  Beside it the same script near the data.

Run as a program (`python -m bench.peer_http URL ADDRESS PORT LOG PAIRS`) it is the client, which may
live in a namespace of its own.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyosd
from bench.link import CLIENT, POLL_S, RATE, SERVER, inside, link, unavailable
from bench.near_data import SCRIPT
from bench.plan import Plan
from bench.servers import Absent, nginx
from bench.stats import REPORTED, Row, missing, row_of_pairs
from bench.target import SOURCE, bench_target
from examples.demo import generate, ways
from pyosd.types import ObjectRef

PIECE = 1 << 20


def rows(plan: Plan) -> Iterator[Row]:
    """near_data_vs_http, read_vs_http, over loopback, and both over a link: ..._1gbit."""
    pairs = 1 if plan.quick else 3
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        generate.write_log(folder / "log")
        yield from _rows(folder, "", pairs, "127.0.0.1")
        if why := unavailable():
            yield missing("near_data_vs_http_1gbit", REPORTED, why)
            yield missing("read_vs_http_1gbit", REPORTED, why)
            return
        with link() as (server, client):
            options = ("--unsafe-portal", "--allow", CLIENT, "--security", "nosec")
            places = (inside(server), inside(client))
            yield from _rows(folder, "_1gbit", pairs, SERVER, options, places)


def _rows(
    folder: Path,
    suffix: str,
    pairs: int,
    address: str,
    options: Sequence[str] = (),
    places: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Iterator[Row]:
    server, client = places
    names = (f"near_data_vs_http{suffix}", f"read_vs_http{suffix}")
    try:
        with (
            nginx(folder, address, server) as (host, port),
            bench_target(*options, portal=f"{address}:0", prefix=server, disk=False) as target,
        ):
            command = [*client, sys.executable, "-m", "bench.peer_http", target.url, host]
            command += [str(port), str(folder / "log"), str(pairs)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=SOURCE)
    except Absent as error:
        for name in names:
            yield missing(name, REPORTED, str(error))
        return
    found = json.loads(done.stdout)
    over = f"veth shaped to {RATE}" if suffix else "loopback"
    near = [(ours, theirs) for ours, theirs in found["near"]]
    method = f"GET from nginx and compute / near the data, {generate.LINES} lines, {over}; no aim"
    yield row_of_pairs(names[0], near, REPORTED, method, speedup=True)
    read = [(ours, theirs) for ours, theirs in found["read"]]
    method = f"READ / GET from nginx of the log, {over}; no aim"
    yield row_of_pairs(names[1], read, REPORTED, method, unit="MiB/s")


# ---- the client ----------------------------------------------------------------------------------


def fetch(address: tuple[str, int], path: Path) -> int:
    """GET the log into a file; returns its length."""
    connection = http.client.HTTPConnection(*address)
    buffer = memoryview(bytearray(PIECE))
    total = 0
    with contextlib.closing(connection), path.open("wb") as file:
        connection.request("GET", "/log")
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(f"nginx says {response.status}")
        while length := response.readinto(buffer):
            file.write(buffer[:length])
            total += length
    return total


def compute(path: Path) -> bytes:
    """The output of the demo's script, which reads a file instead of an object."""
    with path.open("rb") as file:
        log = SimpleNamespace(
            get=lambda: None, put=lambda: None, length=lambda: path.stat().st_size, data=file
        )
        stand_in = SimpleNamespace(
            args=["0", "0"], userobject=lambda *_ids: log, progress=lambda *_news: None
        )
        printed = io.StringIO()
        before = sys.modules.get("osd")
        sys.modules["osd"] = stand_in  # type: ignore[assignment]
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(SCRIPT))
        finally:
            del sys.modules["osd"]
            if before:
                sys.modules["osd"] = before
        return printed.getvalue().encode()


def _seconds_of_http(address: tuple[str, int], folder: Path) -> tuple[float, bytes]:
    start = time.perf_counter()
    fetch(address, folder / "fetched")
    output = compute(folder / "fetched")
    return time.perf_counter() - start, output


def _speeds(
    target: pyosd.Target, obj: ObjectRef, address: tuple[str, int], folder: Path
) -> list[float]:
    """MiB/s of ours and theirs into a file."""
    start = time.perf_counter()
    with (folder / "read").open("wb") as file:
        length = sum(file.write(piece) for piece in target.iter_read(obj))
    between = time.perf_counter()
    assert fetch(address, folder / "got") == length
    end = time.perf_counter()
    return [length / (1 << 20) / (between - start), length / (1 << 20) / (end - between)]


def client(url: str, address: tuple[str, int], log: Path, pairs: int) -> None:
    """Store the log, measure all ways in turn, print the pairs as JSON."""
    near, read = [], []
    with pyosd.connect(url) as target, tempfile.TemporaryDirectory(prefix="iosd-fetch-") as name:
        folder = Path(name)
        obj = target.create(target.create_partition())
        with log.open("rb") as file:
            target.write_from(obj, file)
        arguments = (hex(obj.partition_id), hex(obj.object_id))
        task = ways.Task("log", SCRIPT, obj, arguments, (obj,))
        for _ in range(pairs + 1):  # the first warms up
            ours = ways.near_the_data(url, task, lambda _share, _word: None, POLL_S)
            seconds, output = _seconds_of_http(address, folder)
            assert output == ours.output
            near.append((ours.seconds, seconds))
            read.append(_speeds(target, obj, address, folder))
    json.dump({"near": near[1:], "read": read[1:]}, sys.stdout)


if __name__ == "__main__":
    client(sys.argv[1], (sys.argv[2], int(sys.argv[3])), Path(sys.argv[4]), int(sys.argv[5]))
