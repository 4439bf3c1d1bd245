# SPDX-License-Identifier: GPL-2.0-or-later
"""The applications of the Oasis and MVSS papers: data that READs get through functions over a link of
1 Gb/s, and the same computed by the client that fetches all data.

Both ends run the same C of examples/functions: the target as WebAssembly, the client compiled for the
machine.  As in the papers, several processes of the client read at the same time, here two, each its own
objects.  The functions run in every READ: their results are not kept.

Run as a program (`python -m bench.views_link URL PAIRS CASE`) it is the client inside its namespace.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import pyosd
from bench.compile import CannotCompile
from bench.fn_local import local
from bench.functions import kit
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.stats import Aim, Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from iosd_host.common.paths import wasmtime_library
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import Buffer, ObjectRef, PartitionId, ref

OBJECTS, OBJECT_BYTES = 8, 15 << 20
MIB = 1 << 20
READERS = 2
LINE = 64
KEPT_SHARE = 0.126  # of the records; the paper's selection filters 87.4 % out
POOL = ("--pool", "wasm:engine=wasm,reuse=trusted")
SIDE = 3840  # pixels of a row of an image


# ---- data ----------------------------------------------------------------------------------------


def _records() -> bytes:
    chosen = random.Random(1)
    count = OBJECT_BYTES // LINE
    lines = [
        f"{number:012d} {'yes' if chosen.random() < KEPT_SHARE else 'not'} ".ljust(LINE - 1, "x")
        for number in range(count)
    ]
    return ("\n".join(lines) + "\n").encode()


def _encrypted() -> bytes:
    return local("blowfish", "encrypt", KEY)(_records())


def _pictures() -> bytes:
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
    made = bytearray(b"\0\0\1\xb3" + bytes(8))
    chosen = random.Random(1)
    groups = OBJECT_BYTES // sum(size for _, size in sizes)  # whole ones: each begins with type I
    for number in range(groups * len(sizes)):
        kind, size = sizes[number % len(sizes)]
        content = chosen.randbytes(size).replace(b"\0", b"\1")
        made += b"\0\0\1\0" + bytes((number % 4 << 6 | 1, kind << 3 | 1)) + content
    return bytes(made)


def _image() -> bytes:
    """Grey, with noise."""
    pixels = random.Random(1).randbytes(OBJECT_BYTES // SIDE * SIDE)
    return b"P5 %d %d 255\n" % (SIDE, OBJECT_BYTES // SIDE) + pixels


# ---- rows ----------------------------------------------------------------------------------------

KEY = f"key={bytes(range(16)).hex()}"


@dataclass(frozen=True)
class _Stage:
    """A function of examples/functions."""

    name: str
    method: str = "main"
    parameters: str = ""
    contract: Contract = field(default_factory=lambda: Contract(OutputSize.UNKNOWN))


SELECT = _Stage("lines", parameters="contains= yes ")
DECRYPT = _Stage("blowfish", "decrypt", KEY, Contract(OutputSize.SAME, block=4096))


@dataclass(frozen=True)
class _Case:
    """A row: stages in the order of a READ, and their data.

    piece: bytes of a READ; 0: the whole object.  shared: the client computes every second object itself.
    """

    what: str
    stages: tuple[_Stage, ...]
    data: Callable[[], bytes]
    times: float  # as the paper has it, and the aim
    paper: str
    piece: int = 0
    shared: bool = False

    @property
    def aim(self) -> Aim:
        return at_least(round(self.times, 1))


CASES = {
    "oasis_select": _Case(
        f"{KEPT_SHARE:.1%} of the records selected",
        (SELECT,),
        _records,
        1 / (1 - 0.838),  # figure 4: 83.8 % less time
        "figure 4: 6.2 times",
    ),
    "oasis_edge": _Case(
        "a bit for each pixel: whether an edge is there",
        (_Stage("image", "bitmap", "threshold=128"),),
        _image,
        1 / (1 - 0.704),  # figure 4: 70.4 % less time
        "figure 4: 3.4 times, with 3.3 % of the data as the result",
    ),
    "oasis_blowfish": _Case(
        "Blowfish decryption, which leaves nothing out",
        (DECRYPT,),
        _encrypted,
        1,
        "figure 4: almost the same time",
    ),
    "oasis_stack": _Case(
        f"Blowfish decryption, then {KEPT_SHARE:.1%} of the records selected",
        (DECRYPT, SELECT),
        _encrypted,
        1.41,
        "figure 7: 1.41 to 3.63 times with 1 to 4 targets",
    ),
    "mvss_crypt": _Case(
        "Blowfish decryption, READs of 1 MiB as those of a file system",
        (DECRYPT,),
        _encrypted,
        1,
        "figure 10: less than once with 1 disk, 3.5 times with 5",
        piece=MIB,
    ),
    "mvss_quality": _Case(
        "the I pictures of an MPEG stream, a third of its bytes",
        (_Stage("mpeg"),),
        _pictures,
        3,
        "figure 12, with 4 disks: 3 times",
    ),
    "mvss_median": _Case(
        "a median filter of 3 x 3 pixels: half of the images through the function, the others at the "
        "client, against all at the client",
        (_Stage("image", "median"),),
        _image,
        1,
        "figure 14: faster if both share the work",
        shared=True,
    ),
}


def _unavailable() -> str:
    """Why the rows cannot be measured; "": they can."""
    if why := unavailable():
        return why
    if wasmtime_library() is None:
        return "pip install wasmtime"
    try:
        kit("lines.wasm")
        local("lines")
    except CannotCompile as error:
        return str(error)
    return ""


def rows(plan: Plan) -> Iterator[Row]:
    """oasis_* and mvss_*: fetch and compute / through functions."""
    if reason := _unavailable():
        yield from (missing(row_id, case.aim, reason) for row_id, case in CASES.items())
        return
    with link() as (server, client):
        arguments = [*POOL, "--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
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
        f"C, {READERS} readers, link of {RATE}; the paper: {case.paper}"
    )
    return row_of_pairs(row_id, samples, case.aim, method, speedup=True)


# ---- at the client -------------------------------------------------------------------------------


def _computing(case: _Case) -> Callable[[Buffer], Buffer]:
    """The same computation as in the functions."""
    stages = [local(each.name, each.method, each.parameters) for each in case.stages]

    def compute(data: Buffer) -> Buffer:
        for each in stages:
            data = each(data)
        return data

    return compute


class _Reader:
    """A process of the client, with one session."""

    here: _Reader

    def __init__(self, url: str, row_id: str, most: dict[int, int]) -> None:
        self.target = pyosd.connect(url)
        self.most = most  # bytes of an object of each partition
        self.buffer = bytearray(max(most.values()))
        self.compute = _computing(CASES[row_id])
        self.piece = CASES[row_id].piece or len(self.buffer)

    def read(self, obj: ObjectRef) -> memoryview:
        """Its data, one READ after the other."""
        view = memoryview(self.buffer)[: self.most[obj.partition_id]]
        got = 0
        while got < len(view):
            length = min(self.piece, len(view) - got)
            found = len(self.target.read(obj, got, length, into=view[got : got + length]))
            got += found
            if found < length:
                break
        return view[:got]


def _start(url: str, row_id: str, most: dict[int, int]) -> None:
    _Reader.here = _Reader(url, row_id, most)


def _pass(obj: ObjectRef, computed: bool) -> int:
    """Length of the result of an object: of a view, or computed here."""
    reader = _Reader.here
    data = reader.read(obj)
    return len(data if computed else reader.compute(data))


def _timed(readers: ProcessPoolExecutor, objects: list[ObjectRef], near: int) -> tuple[float, int]:
    """Seconds and bytes of all objects, of which those of the view `near` are computed there."""
    begin = time.perf_counter()
    lengths = [readers.submit(_pass, each, each.partition_id == near) for each in objects]
    total = sum(each.result() for each in lengths)
    return time.perf_counter() - begin, total


def _stored(target: pyosd.Target, data: bytes) -> PartitionId:
    """A partition with the objects."""
    base = target.create_partition()
    for _ in range(OBJECTS):
        obj = target.create(base)
        for at in range(0, len(data), MIB):
            target.write(obj, at, data[at : at + MIB])
    return base


def client(url: str, pairs: int, row_id: str) -> None:
    """Measure both ways in turn, and print the pairs as JSON."""
    case = CASES[row_id]
    with pyosd.connect(url) as target:
        functions = Functions(target)
        stages = [_put(functions, each) for each in case.stages]
        data = case.data()
        base = _stored(target, data)
        view = functions.view_create(base, stages)
        most = {int(base): len(data), int(view.id): len(_computing(case)(data))}
        ids = [each.object_id for each in target.list_objects(base)]
        fetched = [ref(base, each) for each in ids]
        places = [base if case.shared and at % 2 else view.id for at in range(OBJECTS)]
        ours = [ref(place, each) for place, each in zip(places, ids, strict=True)]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(READERS, context, _start, (url, row_id, most)) as readers:
            samples = []
            for _ in range(pairs + 1):
                near, got = _timed(readers, ours, view.id)
                far, wanted = _timed(readers, fetched, view.id)
                assert got == wanted, (got, wanted)
                samples.append((near, far))
        functions.view_remove(view.id)
        target.remove_partition(base, contents=True)
    json.dump(samples[1:], sys.stdout)


def _put(functions: Functions, stage: _Stage) -> FunctionStage:
    made = functions.put(
        kit(f"{stage.name}.wasm"), name=stage.name, methods=(stage.method,), contract=stage.contract
    )
    return FunctionStage(made.id, stage.method, stage.parameters)


if __name__ == "__main__":
    client(sys.argv[1], int(sys.argv[2]), sys.argv[3])
