# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 4 and 7 of the Oasis paper and figure 12 of the MVSS paper: data that READs get through
functions over a link of 1 Gb/s, and the same computed by the client that fetches all data.

Both ends run the same Python, over the same number of pieces, one after the other.  The functions run in
every READ: their results are not kept.

Run as a program (`python -m bench.views_link URL PAIRS CASE`) it is the client inside its namespace.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyosd
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.runde_link import POOL, SET, without_ciphers
from bench.stats import Aim, Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import ref

OBJECTS, OBJECT_BYTES = 8, 15 << 20
LINE = 64
KEPT_SHARE = 0.126  # of the records; the paper's selection filters 87.4 % out
SELECT = """
def compute(data):
    return b"".join([line for line in bytes(data).splitlines(True) if b" yes " in line])
"""
BLOWFISH = """
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes

CIPHER = Cipher(Blowfish(bytes(range(16))), modes.CBC(bytes(8)))

def compute(data):
    return CIPHER.decryptor().update(data)
"""
QUALITY = """
START = b"\\0\\0\\1\\0"  # of a picture; the type is in bits 3 to 5 of the second byte behind it

def compute(data):
    head, *pictures = bytes(data).split(START)
    return head + b"".join([START + each for each in pictures if each[1] >> 3 & 7 == 1])
"""
STAGE = "import osd\n{}\ndef main(args):\n    return compute(osd.stage(args).data)\n"


def _records(seed: int) -> bytes:
    chosen = random.Random(seed)
    count = OBJECT_BYTES // LINE
    lines = [
        f"{number:012d} {'yes' if chosen.random() < KEPT_SHARE else 'not'} ".ljust(LINE - 1, "x")
        for number in range(count)
    ]
    return ("\n".join(lines) + "\n").encode()


def _encrypted(seed: int) -> bytes:
    place: dict[str, Any] = {}
    exec(BLOWFISH, place)
    data = _records(seed)
    return bytes(place["CIPHER"].encryptor().update(data[: len(data) // 8 * 8]))


def _pictures(seed: int) -> bytes:
    """A stream whose pictures of type I are a third of its bytes, as those of the paper's."""
    sizes = (
        (1, 60_000),
        (3, 12_000),
        (2, 30_000),
        (3, 12_000),
        (3, 12_000),
        (2, 30_000),
        (3, 24_000),
    )
    made, number = bytearray(b"\0\0\1\xb3" + bytes(8)), 0
    chosen = random.Random(seed)
    while len(made) < OBJECT_BYTES - 60_000:
        kind, size = sizes[number % len(sizes)]
        content = chosen.randbytes(size).replace(b"\0", b"\1")
        made += b"\0\0\1\0" + bytes((number % 4 << 6 | 1, kind << 3 | 1)) + content
        number += 1
    return bytes(made)


@dataclass(frozen=True)
class _Case:
    """A row: functions in the order of a READ, as code that defines compute(), and their data."""

    what: str
    codes: tuple[str, ...]
    data: Callable[[int], bytes]
    times: float  # as the paper has it, and the aim
    paper: str
    pool: str = ""

    @property
    def aim(self) -> Aim:
        return at_least(round(self.times, 1))


CASES = {
    "oasis_select": _Case(
        f"{KEPT_SHARE:.1%} of the records selected",
        (SELECT,),
        _records,
        1 / (1 - 0.838),  # figure 4: 83.8 % less time
        "figure 4, in C: 6.2 times",
    ),
    "oasis_blowfish": _Case(
        "Blowfish decryption, which leaves nothing out",
        (BLOWFISH,),
        _encrypted,
        1,
        "figure 4, in C: almost the same time",
        SET,
    ),
    "oasis_stack": _Case(
        f"Blowfish decryption, then {KEPT_SHARE:.1%} of the records selected",
        (BLOWFISH, SELECT),
        _encrypted,
        1.41,
        "figure 7, in C: 1.41 to 3.63 times with 1 to 4 targets",
        SET,
    ),
    "mvss_quality": _Case(
        "the I pictures of an MPEG stream, a third of its bytes",
        (QUALITY,),
        _pictures,
        3,
        "figure 12, in C, with 4 disks: 3 times",
    ),
}


def rows(plan: Plan) -> Iterator[Row]:
    """oasis_select, oasis_blowfish, oasis_stack, mvss_quality: fetch and compute / through functions."""
    reason = unavailable() or without_ciphers()
    if reason:
        yield from (missing(row_id, case.aim, reason) for row_id, case in CASES.items())
        return
    with link() as (server, client):
        arguments = [*POOL, "--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        arguments += ["--reuse", "trusted"]
        prefix = inside(server)
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix, disk=False) as target:
            command = [*inside(client), sys.executable, "-m", "bench.views_link", target.url]
            command.append(str(3 if plan.quick else 5))
            for row_id, case in CASES.items():
                done = subprocess.run([*command, row_id], check=True, stdout=subprocess.PIPE)
                yield _row(row_id, case, json.loads(done.stdout))


def _row(row_id: str, case: _Case, samples: list[tuple[float, float]]) -> Row:
    method = (
        f"{OBJECTS * OBJECT_BYTES >> 20} MiB, {case.what}: fetch and compute / READ through functions; "
        f"Python, link of {RATE}; the paper: {case.paper}"
    )
    return row_of_pairs(row_id, samples, case.aim, method, speedup=True)


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    begin = time.perf_counter()
    length = work()
    return time.perf_counter() - begin, length


def _computing(codes: tuple[str, ...]) -> Callable[[bytes], bytes]:
    """The same computation as in the functions, at the client."""
    places: list[dict[str, Any]] = [{} for _ in codes]
    for code, place in zip(codes, places, strict=True):
        exec(code, place)

    def compute(data: bytes) -> bytes:
        for place in places:
            data = place["compute"](data)
        return data

    return compute


def client(url: str, pairs: int, case: _Case) -> None:
    """Measure both ways in turn, and print the pairs as JSON."""
    compute = _computing(case.codes)
    with pyosd.connect(url) as target:
        functions = Functions(target)
        contract = Contract(OutputSize.UNKNOWN)
        stages = [
            FunctionStage(
                functions.put(
                    STAGE.format(code), name=f"stage{place}", contract=contract, pool=case.pool
                ).id
            )
            for place, code in enumerate(case.codes)
        ]
        base = target.create_partition()
        for seed in range(OBJECTS):
            obj = target.create(base)
            data = case.data(seed)
            for at in range(0, len(data), 1 << 20):
                target.write(obj, at, data[at : at + (1 << 20)])
        view = functions.view_create(base, stages)
        ids = [each.object_id for each in target.list_objects(base)]
        most = len(compute(data)) + (1 << 20)  # a little more than the others have

        def ours() -> int:
            return sum(len(target.read(ref(view.id, each), 0, most)) for each in ids)

        def fetch() -> int:
            return sum(
                len(compute(bytes(target.read(ref(base, each), 0, OBJECT_BYTES)))) for each in ids
            )

        samples = []
        for _ in range(pairs + 1):
            (near, got), (far, wanted) = _timed(ours), _timed(fetch)
            assert got == wanted, (got, wanted)
            samples.append((near, far))
        functions.view_remove(view.id)
        target.remove_partition(base, contents=True)
    json.dump(samples[1:], sys.stdout)


if __name__ == "__main__":
    client(sys.argv[1], int(sys.argv[2]), CASES[sys.argv[3]])
