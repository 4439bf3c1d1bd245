# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the fuzz targets, replays their corpora, then fuzzes afresh for a while.

    python3 tests/fuzz/run.py [--seconds 60] [--quick] [--jobs N] [--build DIR] [--target NAME]...
    python3 tests/fuzz/run.py --only-build [--quick] [--build DIR]

Seeds are the golden frames of this folder, made into files at each run; ``corpus/<target>/`` keeps
inputs that once broke something.  Ends with 1 when a target does not build, crashes or hangs;
the input that did it is left in the build folder and its path is printed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import struct
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAX_LENGTH = 4096
UNIT_TIMEOUT = 10  # seconds one input may take
QUICK_RUNS = 10_000  # fresh inputs of a codec, of which a second has ten times as many
WEIGHTS = {
    "fuzz_dispatch": 4,
    "fuzz_session": 4,
    "fuzz_signed": 4,
    "fuzz_rights": 4,
}  # shares of the time; 1 for codecs

# Golden frames for a fuzz target, by prefix of their names; None: all.
SEEDS: dict[str, tuple[str, ...] | None] = {
    "fuzz_cdb": ("cdb.", "capability."),
    "fuzz_attr_list": ("attrs.", "list.", "map.", "data_out."),
    "fuzz_continuation": ("continuation.", "exec_params.", "data_out."),
    "fuzz_sense": ("sense.",),
    "fuzz_query_list": ("query_list.", "attrs."),
    "fuzz_control_frame": ("control.",),
    "fuzz_job_record": ("job_record.",),
    "fuzz_sshsig": ("sshsig.",),
}

# Frames that only the C side knows; fields as in target/wire/proxy_frame.c and sandboxd_frame.c.
LOCAL_SEEDS: dict[str, list[str]] = {
    "fuzz_name_list": [
        "0100000000030000" + "00" * 24 + b"a/b".hex(),
        "020800000001000100000007000100000000000000000000000000000000000064" + "6170",
        "1601000000010003" + "00" * 16 + "0000000000010000" + b"ab/c".hex(),
    ],
    "fuzz_signer_line": [
        line.encode().hex()
        for line in (
            'ann namespaces="iosd-function,iosd-function-native" ssh-ed25519 '
            "AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop ann",
            'b,c valid-after="20260101",valid-before="202701011200Z" ssh-rsa AAAA',
            "d cert-authority ecdsa-sha2-nistp256 AAAA",
            "# a comment",
        )
    ],
    "fuzz_proxy_frame": [
        "0001002100000000000000090000000000000000000100000000000000010002" + "00" * 32,
        "0001000000030003000000000000000000000000000000000000000000000000" + "00" * 32,
        "0001000340020100000000000001000000000000000100090000000000010000"
        "0000000000010002000000040000000800010000" + "00004e20" + "00" * 20,
        "00010001",
        "000100026e6f",
    ],
    "fuzz_sandboxd_frame": [
        "0001000200000014" + "0000000000000007" + "0000000010000000" + "0000003c0000000200000100",
        "000100130000001d" + "0000000000000007" + "00000009" + "00" * 24 + "01",
        "0001000400000000" + "0000000000000007",
        "0001000500000010" + "0000000000000007" + "0000000000010000" + "0000000000010007",
        "0001000100000004" + "0000000000000000" + "00000004",
    ],
}


def golden_frames() -> dict[str, bytes]:
    """Names and bytes of the golden file."""
    frames = {}
    for line in (HERE / "golden").read_text(encoding="ascii").splitlines():
        if line and not line.startswith("#"):
            name, digits = line.split()
            frames[name] = bytes.fromhex(digits)
    return frames


def request_input(cdb: bytes, data_out: bytes) -> bytes:
    """One request as fuzz_dispatch reads it: be16 length of Data-Out, CDB, Data-Out."""
    return len(data_out).to_bytes(2, "big") + cdb + data_out


def pdu(opcode: int, flags: int, tag: int, words: dict[int, int], data: bytes = b"") -> bytes:
    """One iSCSI PDU of a target; words: 32-bit fields by their position in the header."""
    header = bytearray(48)
    header[0:2] = bytes([opcode, flags])
    header[5:8] = len(data).to_bytes(3, "big")
    for position, word in {16: tag, **words}.items():
        header[position : position + 4] = word.to_bytes(4, "big")
    return bytes(header) + data + bytes(-len(data) % 4)


def initiator_seeds() -> list[bytes]:
    """Answers of a correct target to the tasks of fuzz_initiator."""
    read, write, both, ping = (generation << 10 | generation for generation in range(1, 5))
    window = {28: 5, 32: 40}
    whole = pdu(0x25, 0x81, read, {24: 1, **window}, bytes(512))
    halves = pdu(0x25, 0x80, read, window, bytes(256)) + pdu(
        0x25, 0x80, read, {36: 1, 40: 256, **window}, bytes(256)
    )
    short = pdu(0x21, 0x82, read, {24: 1, 44: 512, **window})
    sense = pdu(0x21, 0x82, both, {24: 2, **window}, b"\x00\x08" + bytes(8))
    asked = b"".join(
        pdu(0x31, 0x80, write, {20: 7, 36: number, 40: at, 44: 128, **window})
        for number, at in enumerate(range(0, 512, 128))
    )
    pong = pdu(0x20, 0x80, ping, {20: 0xFFFF_FFFF, 24: 3, **window}, b"ping")
    pinged = pdu(0x20, 0x80, 0xFFFF_FFFF, {20: 9, 24: 4, **window})
    message = pdu(0x32, 0x80, 0xFFFF_FFFF, {24: 5, **window}, bytes(8))
    streams = [whole, halves + short, sense, asked, pong + pinged + message, whole + sense + pong]
    return [bytes([options]) + stream for options in (0, 2, 4, 14) for stream in streams]


def seeds_of(target: str) -> list[bytes]:
    """The inputs a target starts from."""
    frames = golden_frames()
    if target == "fuzz_dispatch":
        return dispatch_seeds(frames)
    if target == "fuzz_signed":
        return [
            bytes((options,)) + seed for seed in dispatch_seeds(frames) for options in (1, 2, 3)
        ]
    if target == "fuzz_initiator":
        return initiator_seeds()
    if target == "fuzz_session":
        return session_seeds()
    if target == "fuzz_rights":
        return rights_seeds()
    local = [bytes.fromhex(digits) for digits in LOCAL_SEEDS.get(target, [])]
    prefixes = SEEDS.get(target, ())
    return local + [
        frame for name, frame in frames.items() if prefixes is None or name.startswith(prefixes)
    ]


def with_bytes(frame: bytes, at: int, patch: bytes) -> bytes:
    """A frame with some bytes replaced."""
    return frame[:at] + patch + frame[at + len(patch) :]


def dispatch_seeds(frames: dict[str, bytes]) -> list[bytes]:
    """Each golden CDB as a request, and each service action in the three attribute formats."""
    data_out = {
        "cdb.get_attributes": frames["attrs.get"],
        "cdb.write": frames["data_out.write"],
        "cdb.read_pieces": frames["continuation.read_pieces"],
        "cdb.list": frames["attrs.get"],
        "cdb.exec": frames["data_out.exec"],
        "cdb.copy": frames["continuation.copy"],
        "cdb.query": frames["continuation.query"],
        "cdb.query_into": frames["continuation.query_into"],
        "cdb.create_tracking": frames["continuation.create_tracking"],
    }
    golden = [
        request_input(frame, data_out.get(name, bytes(32)))
        for name, frame in frames.items()
        if name.startswith("cdb.")
    ]
    every = [
        request_input(with_bytes(frames[base], 8, action.to_bytes(2, "big")), data_out[base])
        for action in (
            *range(0x8880, 0x88A4),
            *(0x88B1, 0x8F7C, 0x8F7D),
            *range(0x8F81, 0x8F8A),
        )
        for base in ("cdb.write", "cdb.get_attributes", "cdb.list")
    ]
    asked = [
        *attribute_seeds(frames["cdb.get_attributes"]),
        *osc_seeds(frames),
        *function_seeds(frames),
        *name_seeds(frames["cdb.write"]),
    ]
    return [*golden, *every, b"".join(golden), b"".join(every[: 3 * 5]), *asked]


def attribute_seeds(base: bytes) -> list[bytes]:
    """Each standard page of each kind of object: its form, all of it, and what is settable."""
    everything = 0xFFFF_FFFF
    kinds = {0x9000_0000: (0, 0), 0x3000_0000: (0x10000, 0)}
    kinds |= {0x6000_0000: (0x10000, 0x10002), 0: (0x10000, 0x10001)}
    seeds = []
    for first, ids in kinds.items():
        cdb = with_bytes(base, 16, struct.pack(">QQ", *ids))
        forms = [
            with_bytes(with_bytes(cdb, 11, b"\x20"), 52, struct.pack(">III16x", page, 512, 0))
            for page in (*range(first, first + 8), 0xFFFF_FFFE)
        ]
        values = [
            (first + 1, 9, b"name"),
            (first + 1, 0x82, bytes(7) + b"\x10"),
            (first + 1, 0x110, b"\4"),
            (first + 2, 1, b"\xff" * 8),
            (first + 3, 0xFFFF_FFFE, b"\x7f"),
            (first + 4, 1, struct.pack(">Q", 0x10002)),
            (first + 5, 1, b"\0"),
            (first + 5, 0x4000_0001, b"tags"),
            (first + 0x1_0000, 0, b"IOSD    page\0"),
            (first + 0x1_0000, 1, b"x" * 20),
        ]
        entries = [
            struct.pack(">II6xH", page, number, len(value)) + value + bytes(-len(value) % 8)
            for page, number, value in values
        ]
        wanted = [(first + page, everything) for page in range(7)]
        wanted += [(everything, everything), (everything, 0), (first + 5, 0x4000_0001)]
        gets = b"\1" + bytes(7) + b"".join(struct.pack(">II", *each) for each in wanted)
        requests = [request_input(form, b"") for form in forms]
        for entry in (*entries, b"".join(entries)):
            sets = b"\x09" + bytes(7) + entry
            where = struct.pack(
                ">IIIIIII", len(gets), 0xB000_0000 | len(sets) // 8, 8192, 0, len(sets), 0, 0
            )
            changed = with_bytes(with_bytes(cdb, 8, b"\x88\x8f"), 11, b"\x30")
            requests.append(request_input(with_bytes(changed, 52, where), sets + gets))
        seeds += [*requests, b"".join(requests[:12])]
    return seeds


def function_seeds(frames: dict[str, bytes]) -> list[bytes]:
    """The function of fuzz_dispatch becomes a stage, a check and a follower of everything, an object
    shows another one, and a partition becomes a view; then data are read and objects made."""
    function = struct.pack(">QQ", 0x11, 0x10000)
    stage, own = b"\1\1\0\0\0\3\0\0" + function + b"a=b", b"\1\0\0\4\0\0\0\0" + function + b"back"
    check = b"\1\x0f\0\0\0\0\0\0" + function + bytes(4)
    follower = b"\2\0\0\0\0\0\0\0" + function + struct.pack(">I", 0x10000)
    base = struct.pack(">Q", 0x10000)
    values = [
        ((0, 0), 0xB000_0020, 1, stage),
        ((0x10000, 0), 0x5000_0020, 2, stage),
        ((0x10000, 0x10002), 0x8000_0020, 3, stage),
        ((0x10000, 0x10000), 0x2000_0020, 1, own),
        ((0x10000, 0x10001), 0x2000_0020, 17, base + base + b"\1"),
        ((0x20000, 0), 0x5000_0020, 17, base + b"\1"),
        ((0x10000, 0x10001), 0x2000_0021, 1, follower),
        ((0x20000, 0), 0x5000_0021, 1, check),
    ]
    seeds = []
    for ids, page, number, value in values:
        entry = struct.pack(">II6xH", page, number, len(value)) + value + bytes(-len(value) % 8)
        sets = b"\x09" + bytes(7) + entry
        where = struct.pack(">IIIIIII", 0, 0, 8192, 0, len(sets), 0, 0)
        cdb = with_bytes(frames["cdb.get_attributes"], 16, struct.pack(">QQ", *ids))
        cdb = with_bytes(with_bytes(cdb, 8, b"\x88\x8f"), 11, b"\x30")
        seeds.append(request_input(with_bytes(cdb, 52, where), sets))
    read = with_bytes(frames["cdb.write"], 8, b"\x88\x85")
    after = [
        request_input(with_bytes(cdb, 16, struct.pack(">QQ", *ids)), data)
        for ids in ((0x10000, 0x10000), (0x10000, 0x10001), (0x20000, 0x10000))
        for cdb, data in ((read, b""), (frames["cdb.write"], frames["data_out.write"]))
    ]
    activate = with_bytes(frames["cdb.write"], 8, b"\x8f\x83")
    activate = with_bytes(with_bytes(activate, 16, function), 32, bytes(16))
    states = [request_input(with_bytes(activate, 11, bytes([bits])), b"") for bits in (0, 1, 2)]
    return [*seeds, *states, b"".join([*seeds[-3:], *after, *states]), b"".join([*seeds, *after])]


def name_seeds(base: bytes) -> list[bytes]:
    """Verbs of READ NAMES and CHANGE NAMES on the partition, on a directory and on the root."""

    def ask(verb: int, path: bytes, other: bytes = b"", flags: int = 0, oid: int = 0) -> bytes:
        action = b"\x8f\x89" if verb > 0x10 else b"\x8f\x88"
        data = b"data" if verb == 0x17 else b""
        params = struct.pack(
            ">BB2xHHIH2xQQ", verb, flags, len(path), len(other), 4 * (verb in (1, 0x17)), 0, oid, 0
        )
        params += path + other + data
        cdb = with_bytes(with_bytes(base, 8, action), 16, struct.pack(">QQ", 0x10000, 0))
        return request_input(with_bytes(cdb, 32, struct.pack(">QQ", len(params), 4096)), params)

    steps = [
        ask(0x12, b"d"),
        ask(0x17, b"d/f"),
        ask(0x13, b"d/g", b"d/f"),
        ask(0x13, b"h", oid=0x10000),
        ask(0x16, b"d/g", b"h", 4),
        ask(1, b"d/f"),
        ask(2, b"d", flags=8),
        ask(0x16, b"d", b"d/e"),
        ask(0x14, b"d/f"),
        ask(0x15, b"d"),
    ]
    return [*steps, b"".join(steps)]


def osc_seeds(frames: dict[str, bytes]) -> list[bytes]:
    """OSC's dialect, which the last byte of the CDB asks for: data distributions, a plain query."""
    plain = bytes.fromhex("01000000000000140001000000000001000400000004000400000050")
    scattered = struct.pack(">Q4Q", 2, 4096, 3, 0, 2)
    strided = struct.pack(">QQ", 512, 2)
    ask = with_bytes(frames["cdb.write"], 235, b"\2")
    write = with_bytes(ask, 68, bytes(4))

    def perform(action: int, kind: int, data: bytes, length: int) -> bytes:
        head = action.to_bytes(2, "big") + bytes([kind])
        cdb = with_bytes(with_bytes(write, 8, head), 32, length.to_bytes(8, "big"))
        return request_input(cdb, data)

    query = with_bytes(with_bytes(write, 8, b"\x88\xa0"), 40, bytes(8))
    query = with_bytes(query, 48, len(plain).to_bytes(4, "big"))
    return [
        perform(0x8886, 1, scattered + b"hello", 45),
        perform(0x8885, 1, scattered, 5),
        perform(0x8886, 2, strided + b"hello", 21),
        perform(0x8885, 2, strided, 5),
        *(perform(code, 0, bytes(16), 16) for code in (0x888D, 0x8890, 0x8891, 0x88A5)),
        request_input(query, plain),
    ]


def call(
    op: int, a: int = 0, b: int = 0, body: bytes = b"", *, oid: int = 0x10001, pid: int = 0x10000
) -> bytes:
    """One call of a script as fuzz_session reads it: frame, be16 length, body."""
    head = struct.pack(">HHHHII", 1, op, 0, 0, len(body), 0)
    ids = struct.pack(">QQQQ", pid, oid, a, b)
    return head + ids + bytes(16) + struct.pack(">H", len(body)) + body


def session_seeds() -> list[bytes]:
    """Each call a script can make, in each kind of zone, alone and all together."""
    asked = struct.pack(">II", 0x10000, 1)
    entry = asked + struct.pack(">6xH", 4) + b"\1\2\3\4" + bytes(4)
    bounds = struct.pack(">H4sH", 4, b"what", 1) + b"x"
    listed = b"\1\0\0\0" + struct.pack(">HHII", 0, 8 + len(bounds), 1, 9) + bounds
    calls = [
        *(call(op) for op in (16, 20, 37, 38, 39, 40, 41)),
        *(call(op, a=1, b=10) for op in (28, 32, 35, 36)),
        *(call(op, body=b"hello") for op in (2, 33, 34)),
        *(call(25, kind, oid=0x10002) for kind in range(4)),
        *(call(op, 0x10000, oid=0x10002) for op in (22, 23, 24)),
        call(26, body=asked),
        call(27, body=entry),
        call(27, body=with_bytes(entry, 0, struct.pack(">II", 0x6000_0001, 9)), oid=0x10002),
        *(call(29, body=listed, oid=oid) for oid in (0, 0x1000, 0x10002)),
        call(29, body=listed, pid=0x20000, oid=0),
        call(29, a=0x10001, body=b"\1\0\0\0", oid=0),
        call(29, body=with_bytes(listed, 6, b"\xff\xff"), oid=0x10002),
        *(call(30, name, b, b"oldnew") for name in (10 << 32 | 1, 5 << 32 | 2) for b in (0, 3, 9)),
        *(call(31, name, 7) for name in (10 << 32 | 1, 1 << 32 | 9, (1 << 64) - 1)),
        call(17, pid=0, oid=0),
        call(18, a=1, pid=0x20000),
        call(19, a=2, oid=0),
        call(21, oid=0x10009),
        call(32, b=64, pid=0x20000, oid=0x20000),
        call(3, b=1, body=b"{}"),
        call(1, body=bytes(4) + b"done"),
    ]
    return [bytes([zone]) + run for zone in range(4) for run in (*calls, b"".join(calls))]


def rights_seeds() -> list[bytes]:
    """Jobs of each zone and method: every call on every object, with a change of policy and a sweep now
    and then."""

    def job(zone: int, method: int, limits: bytes) -> bytes:
        return bytes((zone, method)) + b"\xff\xfe" + limits.ljust(12, b"\0")

    def steps(of: Iterable[tuple[int, int]]) -> bytes:
        return b"".join(bytes((8, thing, 4, 8, op, op + thing)) for thing, op in of)

    calls = [(thing, op) for op in range(20) for thing in range(7)]
    changes = [
        bytes((0, 1, 1, 0, 0, 0)),
        bytes((0, 2, 3, 0, 0, 0)),
        bytes((1, 4, 1, 0, 0, 0)),
        bytes((1, 1, 1, 0, 0, 0)),
        bytes((2, 0, 1, 0, 0, 0)),
        bytes((4, 0, 1, 0, 0, 0)),
        bytes((4, 0, 4, 0, 0, 0)),
    ]
    sweep = bytes((3, 0, 0, 0, 0, 0))
    seeds = []
    for zone, method in itertools.product(range(4), (0, 1, 3)):
        for limits in (b"", b"\0\1", b"\0\0\4\40", b"\1"):
            seeds += [job(zone, method, limits) + steps(calls[at::3]) for at in range(3)]
        shares = steps((thing, 9) for thing in range(7))
        closes = steps((thing, 10) for thing in range(7))
        for change in changes:
            whole = shares + closes + change + sweep + steps(calls[:20])
            seeds.append(job(zone, method, b"") + whole)
    return seeds


def write_seeds(target: str, folder: Path) -> None:
    """Fills a folder with a target's seeds."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds_of(target)):
        (folder / f"seed-{number:03}").write_bytes(seed)


def build(folder: Path, level: int) -> None:
    """Configures and builds the fuzz targets.  level: of optimization."""
    configure = [
        "cmake", "-S", str(ROOT / "target"), "-B", str(folder), "-G", "Ninja",
        "-DIOSD_FUZZ=ON", f"-DIOSD_FUZZ_LEVEL={level}", "-DCMAKE_C_COMPILER=clang-14",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", str(folder), "--target", "fuzz_targets"]):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"fuzz: {' '.join(command)} failed:\n{done.stdout[-4000:]}")


def fuzz(program: Path, work: Path, seconds: int, runs: int) -> bool:
    """Replays a target's inputs, and fuzzes on from them; False when something broke.

    Args: seconds: of the whole; 0: replay alone.  All inputs are replayed whatever time that takes.
        runs: at most; -1: as many as there is time for.
    """
    corpus, kept = work / "corpus", HERE / "corpus" / program.name
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_len={MAX_LENGTH}", f"-timeout={UNIT_TIMEOUT}", "-rss_limit_mb=2048",
        f"-artifact_prefix={work.resolve()}/", "-print_final_stats=0", "-verbosity=0",
        f"-max_total_time={seconds}", f"-runs={runs if seconds else 0}",
        f"-seed={int(os.environ.get('IOSD_SEED', '0')) % (1 << 32)}",  # 0: one of its own
    ]  # fmt: skip
    folders = [corpus, work / "seeds", *([kept] if kept.is_dir() else [])]
    done = subprocess.run(
        [str(program.resolve()), *options, *(str(each.resolve()) for each in folders)],
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds + 600,
        check=False,
    )
    if done.returncode:
        print(f"{program.name}: broken, inputs in {work}\n{done.stdout[-6000:]}", flush=True)
    return done.returncode == 0


def run_target(program: Path, build_folder: Path, seconds: int, runs: int) -> bool:
    """Everything for one target."""
    work = build_folder / "fuzz" / program.name
    write_seeds(program.name, work / "seeds")
    good = fuzz(program, work, seconds, runs)
    inputs = sum(1 for _ in (work / "corpus").iterdir())
    verdict = "ok" if good else "BROKEN"
    print(f"{program.name}: {verdict}, {seconds} s, {inputs} inputs kept", flush=True)
    return good


def weight(program: Path) -> int:
    """Its share of the time."""
    return WEIGHTS.get(program.name, 1)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="fresh fuzzing in all (60)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="build soon rather than run fast; codecs get few inputs",
    )
    jobs = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="targets at once (all processors)")
    parser.add_argument("--build", type=Path, help="build folder (build/fuzz, or build/fuzz-quick)")
    parser.add_argument("--only-build", action="store_true", help="for later runs")
    parser.add_argument("--target", action="append", help="only this target; may repeat")
    arguments = parser.parse_args()
    folder = arguments.build or ROOT / "build" / ("fuzz-quick" if arguments.quick else "fuzz")
    build(folder, 0 if arguments.quick else 1)
    if arguments.only_build:
        return 0
    programs = [
        folder / source.stem
        for source in sorted(HERE.glob("fuzz_*.c"))
        if not arguments.target or source.stem in arguments.target
    ]
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    programs.sort(key=weight, reverse=True)  # long ones first, so that all end together
    whole = sum(map(weight, programs))

    def run(program: Path) -> bool:
        seconds = -(-arguments.seconds * weight(program) // whole)
        few = arguments.quick and weight(program) == 1
        return run_target(program, folder, seconds, QUICK_RUNS if few else -1)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(run, programs))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
