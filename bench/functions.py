# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions without a record, beside TEST UNIT READY and a function of Redis (FCALL).

The target is served with --reuse trusted, as calls of one principal are: each sandbox serves many calls.
Redis runs the function in the server's only thread, for one caller at a time.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyosd
from bench.compile import BUILT, CannotCompile, compiled
from bench.jobs import OUTSTANDING, REPEATS, commands_per_s, paced_pairs
from bench.peer_redis import Redis
from bench.plan import Plan
from bench.servers import Absent, redis
from bench.stats import Row, at_least, at_most, missing, row_of_pairs
from bench.target import SOURCE, bench_target
from pyosd import requests
from pyosd.functions import Access
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request, encode
from pyosd.wire.exec_params import ArgsEncoding, CallRecord, ExecParams, FunctionCall

ECHO = b"def main(args):\n    return args\n"
RATE = 5000  # calls a second: the aim
WASM_RATE = 15000
WASM_POOL = "wasm:engine=wasm,reuse=trusted"
NATIVE_POOL = "native:engine=native,max=1,limits.mem=512MiB"
MIB = 1 << 20
LOOP_BYTES = 64 << 20
ARGS = b"x" * 35  # as Runde's call of nothing has
ROOM = 96
WASM_AIMS = {
    "fn_plain_wasm": at_most(2.5),
    "fn_plain_wasm_rate": at_least(1),
    "fn_wasm_loop": at_least(0.8),
}
LUA = b"#!lua name=echo\nredis.register_function('echo', function(keys, args) return args[1] end)"


def _request(zone: ObjectRef, name: str = "echo") -> Request:
    named = FunctionCall(1, name, "", ArgsEncoding.BYTES, CallRecord.NEVER)
    return requests.execute_function(
        zone, ARGS, ExecParams(function=named), result_allocation_length=ROOM
    )


def calls_per_s(osd: pyosd.Target, zone: ObjectRef, seconds: float, name: str = "echo") -> float:
    """Calls a second, with a constant number outstanding."""
    return commands_per_s(osd, _request(zone, name), seconds)


def kit(name: str) -> Path:
    """A function of examples/functions, compiled: NAME.wasm or NAME.so.  Raises: CannotCompile."""
    command = ["make", "-s", "-C", str(SOURCE / "examples/functions"), f"OUT={BUILT}"]
    native = name.endswith(".so")
    done = subprocess.run(
        [*command, "native" if native else "all"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        packages = "gcc g++" if native else "clang-14 lld-14"
        raise CannotCompile(f"apt-get install {packages}: {done.stderr.strip()[:200]}")
    return BUILT / name


def _native(source: str, *files: Path) -> float:
    """Seconds of a call of a function of the kit, compiled natively, over local files: that of the zone,
    and one that it writes.  Raises: CannotCompile."""
    kit = SOURCE / "examples/functions"
    flags = ("-O3", f"-I{kit}", str(kit / source))
    program = compiled("fn_native.c", f"fn_native_{Path(source).stem}", flags)
    zone, *written = files
    command = [str(program), str(zone), "1", *map(str, written)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1e9


def _loop(osd: pyosd.Target, zone: ObjectRef, times: int) -> list[tuple[float, float]]:
    """Pairs of speeds in MiB/s: the loop in wasm near the data, the same C over a local file."""
    content = b"a line of the loop\n" * (LOOP_BYTES // 19)
    obj = osd.create(zone.partition_id)
    osd.write(obj, 0, content)
    osd.functions.put(kit("count.wasm"), access=Access.READ)
    pairs = []
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        for _ in range(times):
            begin = time.perf_counter()
            osd.functions.call("count", zone=obj)
            ours = time.perf_counter() - begin
            theirs = _native("count.c", Path(file.name))
            pairs.append((len(content) / MIB / ours, len(content) / MIB / theirs))
    return pairs


def _wasm_rows(osd: pyosd.Target, zone: ObjectRef, plan: Plan) -> Iterator[Row]:
    osd.functions.put(kit("echo.wasm"), name="wasm-echo")
    command = encode(_request(zone, "wasm-echo"))[0]

    def ours() -> None:
        assert osd.transport.submit(command).result().status == 0

    pairs = paced_pairs(ours, osd.test_unit_ready, plan.count)
    method = f"a call that returns its argument / TUR, {plan.count} pairs at 100/s"
    yield row_of_pairs("fn_plain_wasm", pairs, at_most(2.5), method)
    calls_per_s(osd, zone, plan.rate_seconds / 4, "wasm-echo")
    rates = [
        (calls_per_s(osd, zone, plan.rate_seconds, "wasm-echo"), float(WASM_RATE))
        for _ in range(REPEATS)
    ]
    method = f"{OUTSTANDING} outstanding for {plan.rate_seconds:g} s; baseline: the aim"
    yield row_of_pairs("fn_plain_wasm_rate", rates, at_least(1), method, unit="calls/s")
    speeds = _loop(osd, zone, REPEATS)
    method = f"count.c over {LOOP_BYTES >> 20} MiB, reads included / compiled natively, local file"
    yield row_of_pairs("fn_wasm_loop", speeds, at_least(0.8), method, unit="MiB/s")


def _wasm(osd: pyosd.Target, zone: ObjectRef, plan: Plan) -> Iterator[Row]:
    """fn_plain_wasm, fn_plain_wasm_rate, fn_wasm_loop; those that cannot be measured say why."""
    measured = set()
    try:
        for row in _wasm_rows(osd, zone, plan):
            measured.add(row.id)
            yield row
    except (CannotCompile, pyosd.OSDError) as error:
        for row_id, aim in WASM_AIMS.items():
            if row_id not in measured:
                yield missing(row_id, aim, str(error))


def _signer(folder: Path) -> tuple[Path, Path]:
    """A key, and a list of signers that has it for the engine native."""
    key, signers = folder / "key", folder / "signers"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(command, check=True)
    public = key.with_suffix(".pub").read_text()
    signers.write_text(f'bench namespaces="iosd-function,iosd-function-native" {public}')
    return key, signers


def _crypt(osd: pyosd.Target, zone: ObjectRef, key: Path, times: int) -> list[tuple[float, float]]:
    """Pairs of speeds in MiB/s: encrypt.c near the data, the same C from a local file into another."""
    content = bytes(range(256)) * (LOOP_BYTES // 256)
    plain, sealed = osd.create(zone.partition_id), osd.create(zone.partition_id)
    osd.write(plain, 0, content)
    osd.functions.put(kit("encrypt.so"), access=Access.WRITE, sign_with=key)
    args = b"".join(each.object_id.to_bytes(8, "big") for each in (plain, sealed)) + bytes(44)
    pairs = []
    with tempfile.NamedTemporaryFile() as file, tempfile.NamedTemporaryFile() as into:
        file.write(content)
        file.flush()
        for _ in range(times + 1):
            begin = time.perf_counter()
            osd.functions.call("encrypt", args, zone=zone)
            ours = time.perf_counter() - begin
            theirs = _native("encrypt.c", Path(file.name), Path(into.name))
            pairs.append((len(content) / MIB / ours, len(content) / MIB / theirs))
        assert osd.read(sealed, 0, len(content)) == Path(into.name).read_bytes()
    return pairs[1:]  # the first made the extents of both


def _native_rows(osd: pyosd.Target, zone: ObjectRef, key: Path) -> Iterator[Row]:
    """fn_native_crypt, or why it cannot be measured."""
    try:
        speeds = _crypt(osd, zone, key, REPEATS)
    except (CannotCompile, pyosd.OSDError) as error:
        yield missing("fn_native_crypt", at_least(0.9), str(error))
        return
    method = f"encrypt.c over {LOOP_BYTES >> 20} MiB, reads and writes included / local files"
    yield row_of_pairs("fn_native_crypt", speeds, at_least(0.9), method, unit="MiB/s")


def rows(plan: Plan) -> Iterator[Row]:
    """fn_plain_python, fn_plain_python_rate, those of wasm, fn_native_crypt, fn_vs_redis."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iosd-bench-")))
        folder.chmod(0o755)
        key, signers = _signer(folder)
        words = ["--reuse", "trusted", "--pool", WASM_POOL, "--pool", NATIVE_POOL]
        words += ["--function-signers", str(signers)]
        target = stack.enter_context(bench_target(*words, disk=False))
        osd = stack.enter_context(pyosd.connect(target.url))
        osd.functions.put(ECHO, name="echo")
        zone = osd.partition(osd.create_partition())
        command = encode(_request(zone))[0]

        def ours() -> None:
            assert osd.transport.submit(command).result().status == 0

        pairs = paced_pairs(ours, osd.test_unit_ready, plan.count)
        method = f"a call that returns its argument / TUR, {plan.count} pairs at 100/s"
        yield row_of_pairs("fn_plain_python", pairs, at_most(3.5), method)
        calls_per_s(osd, zone, plan.rate_seconds / 4)
        rates = [(calls_per_s(osd, zone, plan.rate_seconds), float(RATE)) for _ in range(REPEATS)]
        method = f"{OUTSTANDING} outstanding for {plan.rate_seconds:g} s; baseline: the aim"
        yield row_of_pairs("fn_plain_python_rate", rates, at_least(1), method, unit="calls/s")
        yield from _wasm(osd, zone, plan)
        yield from _native_rows(osd, zone, key)
        try:
            theirs = Redis(stack.enter_context(redis()))
        except Absent as error:
            yield missing("fn_vs_redis", at_most(1.5), str(error))
            return
        theirs.call(b"FUNCTION", b"LOAD", LUA)
        pairs = paced_pairs(
            ours, lambda: theirs.call(b"FCALL", b"echo", b"0", ARGS), plan.count // 10
        )
        method = f"the same / FCALL, {plan.count // 10} pairs at 100/s"
        yield row_of_pairs("fn_vs_redis", pairs, at_most(1.5), method)
