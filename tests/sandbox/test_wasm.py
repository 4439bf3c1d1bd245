# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `wasm` against hostile modules: each ends as a failure that names its cause, within the
limits of the job, and the next job runs."""

from __future__ import annotations

import ctypes
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from objects import NO_SPACE, MemoryObjects, Refusal
from proxy import (
    FAILING,
    FINISH_ENDED,
    FINISH_EXCEPTION,
    FINISH_EXIT,
    FINISH_MEMORY,
    FINISH_OK,
    LIMITS,
    LIMITS_SET,
    ROOT,
    SERVING,
    Daemon,
    Limits,
    Outcome,
    Sandbox,
)

from iosd_host.common.paths import wasmtime_library
from tests.machine import unavailable

wasmtime = pytest.importorskip("wasmtime")

MIB = 1 << 20
FINISH_BAD_CODE = 5
RELEASE = b"\x0250"  # in machine code: the major number of the release, behind its length
POOLS = "name=default;max=1\nname=w;max=2;engine=wasm\n"

IMPORTS = {
    "read": "i64 i64 i64 i32 i32",
    "write": "i64 i64 i64 i32 i32",
    "length": "i64 i64",
    "getattr": "i64 i64 i32 i32 i32 i32",
    "setattr": "i64 i64 i32 i32 i32 i32",
    "args": "i32 i32",
    "args_from": "i32 i32 i32",
    "zone": "i32",
    "result": "i32 i32 i32",
    "log": "i32 i32 i32",
    "progress": "i32 i32 i32",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    library = wasmtime_library()
    if library is None:
        unavailable("sandbox", "the Python package wasmtime is not installed")
    folder = tmp_path_factory.mktemp("wasm")
    (folder / "pools").write_text(POOLS)
    running = Daemon(folder, "--pools-file", str(folder / "pools"), "--wasmtime", str(library))
    assert running.wait_for_pool("w", SERVING, FAILING).state == SERVING
    yield running
    assert running.stop() == 0


def module(body: str, *, memory: str = '(memory (export "memory") 1)', extra: str = "") -> bytes:
    """A module whose function main has this body, with all imports by their names."""
    imports = "".join(
        f'(import "osd" "{name}" (func ${name} (param {kinds}) (result i64)))'
        for name, kinds in IMPORTS.items()
    )
    return bytes(
        wasmtime.wat2wasm(
            f'(module {imports} {memory} {extra} (func (export "main") (result i32) {body}))'
        )
    )


def run(daemon: Daemon, code: bytes, limits: Limits | None = None, **job: object) -> Outcome:
    return daemon.run(code, limits, "w", **job)


def fails(daemon: Daemon, code: bytes, kind: int, cause: str) -> None:
    out = run(daemon, code, Limits(memory_bytes=64 * MIB))
    assert out.kind == kind, out
    assert re.search(cause, out.line), out.line
    assert out.traceback.startswith(out.line.split(":")[0])
    assert out.exit_code == 1


@pytest.mark.parametrize(
    ("body", "extra", "cause"),
    [
        ("(i32.load (i32.const 65536))", "", "main: out of bounds memory access"),
        ("(i32.load offset=4294967295 (i32.const -1))", "", "out of bounds memory access"),
        ("(call $deep)", "(func $deep (result i32) call $deep)", "call stack exhausted"),
        ("unreachable", "", "unreachable"),
        ("(i32.div_s (i32.const 1) (i32.const 0))", "", "integer divide by zero"),
        (
            "(call_indirect (result i32) (i32.const 0))",
            "(table 1 funcref)",
            "uninitialized element",
        ),
        ("(i32.const 0)", "(func $s unreachable) (start $s)", "start: .*unreachable"),
        ("(i32.const 0)", '(data (i32.const 65535) "two")', "start: .*out of bounds"),
    ],
)
def test_a_trap_is_reported(daemon: Daemon, body: str, extra: str, cause: str) -> None:
    fails(daemon, module(body, extra=extra), FINISH_EXCEPTION, cause)


@pytest.mark.parametrize(
    "call",
    [
        "read (i64.const 1) (i64.const 1) (i64.const 0) (i32.const 65535) (i32.const 2)",
        "read (i64.const 1) (i64.const 1) (i64.const 0) (i32.const -1) (i32.const -1)",
        "write (i64.const 1) (i64.const 1) (i64.const 0) (i32.const 1) (i32.const 65536)",
        "write (i64.const 1) (i64.const 1) (i64.const 0) (i32.const 65537) (i32.const 0)",
        "getattr (i64.const 1) (i64.const 1) (i32.const 1) (i32.const 1) (i32.const 9) (i32.const -1)",
        "setattr (i64.const 1) (i64.const 1) (i32.const 1) (i32.const 1) (i32.const -9) (i32.const 9)",
        "args (i32.const 65536) (i32.const 1)",
        "args_from (i32.const 1) (i32.const 65535) (i32.const 2)",
        "result (i32.const 0) (i32.const 0) (i32.const 65537)",
        "log (i32.const 1) (i32.const -2147483648) (i32.const 1)",
        "progress (i32.const 1) (i32.const 65530) (i32.const 7)",
    ],
)
def test_a_range_outside_the_memory_is_a_trap(daemon: Daemon, call: str) -> None:
    name = call.split(maxsplit=1)[0]
    code = module(f"(drop (call ${call})) (i32.const 0)")
    fails(daemon, code, FINISH_EXCEPTION, f"osd.{name}: the range is outside the module's memory")


def test_without_a_memory_no_pointer_is_served(daemon: Daemon) -> None:
    code = module("(drop (call $args (i32.const 0) (i32.const 0))) (i32.const 0)", memory="")
    fails(daemon, code, FINISH_EXCEPTION, "osd.args: the module exports no memory")


@pytest.mark.parametrize(
    "call",
    [
        "zone (i32.const 3)",
        "result (i32.const 2) (i32.const 0) (i32.const 0)",
        "log (i32.const 4) (i32.const 0) (i32.const 1)",
        "progress (i32.const 1001) (i32.const 0) (i32.const 0)",
        "progress (i32.const 1) (i32.const 0) (i32.const 257)",
        "setattr (i64.const 1) (i64.const 1) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 65535)",
    ],
)
def test_a_bad_parameter_is_an_error(daemon: Daemon, call: str) -> None:
    """-5: invalid.  The sandbox answers without a call of the proxy."""
    out = run(daemon, module(f"(i32.sub (i32.const 0) (i32.wrap_i64 (call ${call})))"))
    assert (out.kind, out.exit_code) == (FINISH_EXIT, 5), out
    assert out.line.startswith(f"main returned 5; the last error: {call.split(maxsplit=1)[0]}: ")


@pytest.mark.parametrize(
    ("logged", "error"),
    [
        ((b"first\n", b"second ", b"line\n\n"), "second line"),
        ((b"first\nsec",), "sec"),
        ((b"\n",), ""),
        ((b"x" * 500,), "x" * 240),
    ],
)
def test_the_last_line_of_errors_is_in_the_message(
    daemon: Daemon, logged: tuple[bytes, ...], error: str
) -> None:
    calls, at = "", 0
    for each in logged:
        calls += f"(drop (call $log (i32.const 2) (i32.const {at}) (i32.const {len(each)})))"
        at += len(each)
    text = "".join(f"\\{byte:02x}" for byte in b"".join(logged))
    code = module(f"{calls} (i32.const 5)", extra=f'(data (i32.const 0) "{text}")')
    out = run(daemon, code)
    assert out.line == "main returned 5" + (f"; the last error: {error}" if error else "")


WASM = b"\0asm\1\0\0\0"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (b"x", "compile: "),
        (WASM[:6], "compile: "),
        (b"import osd\n", "compile: "),
        (b"import osd\n", "magic header not detected"),
        (WASM + b"\1", "compile: "),
        (WASM + b"\1\xff\xff\xff\xff\x0f", "compile: "),
        (WASM + b"\5\3\1\0\1", "main: the module exports no function"),
        (WASM, "main: the module exports no function"),
        (b'(module (func (export "main")))', "compile: "),
    ],
)
def test_a_bad_module_is_bad_code(daemon: Daemon, code: bytes, cause: str) -> None:
    fails(daemon, code, FINISH_BAD_CODE, cause)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_truncated_module_is_bad_code(daemon: Daemon, cut: int) -> None:
    whole = module("(i32.const 0)")
    fails(daemon, whole[: len(whole) * cut // 12], FINISH_BAD_CODE, "")


@pytest.mark.parametrize(
    ("wat", "kind", "cause"),
    [
        ('(import "env" "system" (func))', FINISH_BAD_CODE, "unknown import"),
        ('(import "osd" "args" (func (param i64)))', FINISH_BAD_CODE, "link: types incompatible"),
        ("(table 4000000000 funcref)", FINISH_BAD_CODE, "table"),
        ("(memory 65536)", FINISH_MEMORY, "memory"),
        ('(func (export "main") (param i32))', FINISH_BAD_CODE, "exports no function"),
        ('(func (export "main") (result i64) (i64.const 0))', FINISH_BAD_CODE, "no function"),
        ('(global (export "main") i32 (i32.const 0))', FINISH_BAD_CODE, "exports no function"),
    ],
)
def test_what_cannot_start(daemon: Daemon, wat: str, kind: int, cause: str) -> None:
    fails(daemon, bytes(wasmtime.wat2wasm(f"(module {wat})")), kind, cause)


def test_packed_code_is_refused(daemon: Daemon) -> None:
    out = run(daemon, module("(i32.const 0)"), form=1)
    assert out.kind == FINISH_BAD_CODE
    assert "not packed" in out.line


def test_memory_grows_to_the_limit_and_no_further(daemon: Daemon) -> None:
    """memory.grow answers -1 at the limit of the job; what was granted can be used."""
    body = """(local $got i32)
        (loop $more
            (local.set $got (memory.grow (i32.const 16)))
            (if (i32.ne (local.get $got) (i32.const -1)) (then
                (i32.store (i32.mul (local.get $got) (i32.const 65536)) (i32.const 1))
                (br $more))))
        (i32.shr_u (memory.size) (i32.const 4))"""
    out = run(daemon, module(body), Limits(memory_bytes=128 * MIB))
    assert out.kind == FINISH_EXIT
    assert out.exit_code is not None and 60 < out.exit_code <= 128  # MiB
    assert out.status and not out.status.out_of_memory


def test_a_loop_ends_with_its_processor_time(daemon: Daemon) -> None:
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    daemon.send(LIMITS, sandbox.id, Limits(cpu_seconds=1).encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.start(module("(loop $l (br $l)) (i32.const 0)"))
    out = sandbox.finish()
    sandbox.close()
    assert out.kind is None
    assert out.status
    assert out.status.code == -signal.SIGKILL
    assert run(daemon, module("(i32.const 0)")).kind == FINISH_OK


def start(daemon: Daemon, code: bytes) -> Sandbox:
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    sandbox.start(code)
    return sandbox


def test_a_flood_of_output_ends_when_told(daemon: Daemon) -> None:
    """The pipe is full: the write waits, is told to end, and the job ends with a report."""
    flood = "(loop $l (drop (call $log (i32.const 1) (i32.const 0) (i32.const 65536))) (br $l))"
    sandbox = start(daemon, module(flood + " (i32.const 0)", extra='(data (i32.const 0) "on")'))
    sandbox.read_until(b"on")
    sandbox.control(2)
    out = sandbox.finish()
    sandbox.close()
    assert out.kind == FINISH_ENDED
    assert "told to end" in out.line


def test_nothing_remains_for_the_next_call(daemon: Daemon) -> None:
    """Memory, globals and grown pages are new, while the process and the compiled module stay."""
    body = """(if (i32.load (i32.const 8)) (then unreachable))
        (if (global.get $g) (then unreachable))
        (if (i32.ne (memory.size) (i32.const 1)) (then unreachable))
        (i32.store (i32.const 8) (i32.const 1)) (global.set $g (i32.const 1))
        (drop (memory.grow (i32.const 1))) (i32.const 0)"""
    code = module(body, extra="(global $g (mut i32) (i32.const 0))")
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    for _ in range(3):
        assert sandbox.run_another(code).kind == FINISH_OK
        sandbox.wait_ready()
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


def test_a_compiled_module_is_kept_and_not_sent_again(daemon: Daemon) -> None:
    say = "(drop (call $result (i32.const 0) (i32.const 0) (i32.const 2))) (i32.const 0)"
    code = module(say, extra='(data (i32.const 0) "ok")')
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    for kept in (False, True, True):
        out = sandbox.run_another(code, slot=4, kept=kept)
        assert out.kind == FINISH_OK and out.kept, out
        assert out.result == b"ok"
        sandbox.wait_ready()
    out = sandbox.run_another(code, slot=1, kept=True)
    assert out.line == "code: it was not kept" and not out.kept
    sandbox.wait_ready()
    assert not sandbox.run_another(code).kept
    sandbox.wait_ready()
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


@pytest.fixture
def kept(daemon: Daemon) -> Iterator[Sandbox]:
    """A sandbox for several jobs."""
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    yield sandbox
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


def call_again(sandbox: Sandbox, code: bytes, known: bool, method: str = "") -> Outcome:
    """A call without a record after which another of its function is expected."""
    out = sandbox.run_another(code, lightly=True, slot=1, kept=known, method=method, job=(0, 5))
    sandbox.wait_ready()
    return out


def test_an_instance_made_ahead_is_as_new(kept: Sandbox) -> None:
    body = """(if (i32.load (i32.const 8)) (then unreachable))
        (if (i32.ne (memory.size) (i32.const 1)) (then unreachable))
        (i32.store (i32.const 8) (i32.const 1)) (drop (memory.grow (i32.const 1)))
        (drop (call $result (i32.const 0) (i32.const 0) (i32.const 2))) (i32.const 0)"""
    code = module(body, extra='(data (i32.const 0) "ok")')
    for known in (False, True, True):
        assert call_again(kept, code, known).result == b"ok"


def test_an_instance_made_ahead_serves_its_entry_point_and_code_alone(kept: Sandbox) -> None:
    other = '(func (export "other") (result i32) (i32.const 8))'
    code, replacement = module("(i32.const 7)", extra=other), module("(i32.const 9)")
    assert [
        call_again(kept, each, known, method).exit_code
        for each, known, method in (
            (code, False, ""),
            (code, True, "other"),
            (code, True, "main"),
            (replacement, False, ""),
            (replacement, True, ""),
        )
    ] == [7, 8, 7, 9, 9]
    assert "no function of this name" in call_again(kept, replacement, True, "other").line
    assert call_again(kept, replacement, True).exit_code == 9


def test_a_start_function_runs_in_its_call(kept: Sandbox) -> None:
    say = "(drop (call $result (i32.const 0) (i32.const {}) (i32.const 1)))"
    extra = f'(data (i32.const 0) "sm") (func $s {say.format(0)}) (start $s)'
    code = module(say.format(1) + "(i32.const 0)", extra=extra)
    for known in (False, True, True):
        assert call_again(kept, code, known).result == b"sm"


@pytest.mark.parametrize(
    ("times", "size", "with_finish"), [(1, 0, True), (3, 100, True), (33, 1024, False)]
)
def test_a_short_result_of_a_call_without_a_record_comes_with_finish(
    daemon: Daemon, times: int, size: int, with_finish: bool
) -> None:
    piece = f"(drop (call $result (i32.const 0) (i32.const 0) (i32.const {size})))"
    code = module(piece * times + " (i32.const 0)", extra='(data (i32.const 0) "piece")')
    for job in ((0, 5), (0x10000, 0x10007)):
        out = run(daemon, code, job=job)
        assert out.result == (b"piece" + bytes(size - 5) if size else b"") * times
        assert (3 not in out.calls) == (with_finish and job[0] == 0)


class FullAtFirst(MemoryObjects):
    """Refuses the first piece of a result."""

    refused = False

    def op_3(self, sandbox, ids, a, b, body):  # type: ignore[no-untyped-def]
        if not self.refused:
            self.refused = True
            raise Refusal(NO_SPACE, "no space")
        super().op_3(sandbox, ids, a, b, body)


def test_no_piece_of_a_result_follows_one_that_was_refused(kept: Sandbox) -> None:
    """It would be taken for the beginning of another result.  A later job is not concerned."""
    piece = "(call $result (i32.const 0) (i32.const 0) (i32.const 4))"
    code = module(f"(drop {piece}) (i32.sub (i32.const 0) (i32.wrap_i64 {piece}))")
    job = (0x10000, 0x10007)
    out = kept.run_another(code, FullAtFirst(), job=job)
    assert (out.exit_code, out.calls.count(3), bytes(out.result)) == (NO_SPACE, 1, b"")
    assert out.line.endswith("the last error: result: no space")
    kept.wait_ready()
    out = kept.run_another(code, job=job)
    assert (out.kind, bytes(out.result)) == (FINISH_OK, bytes(8))


@pytest.mark.parametrize("offset", [0, 2, 7, 8, -1])
def test_arguments_from_an_offset_on(daemon: Daemon, offset: int) -> None:
    """The number of bytes there, of which three have room."""
    code = module(
        f"(i32.wrap_i64 (call $args_from (i32.const {offset}) (i32.const 0) (i32.const 3)))"
        "(drop (call $result (i32.const 0) (i32.const 0) (i32.const 4)))",
        extra='(data (i32.const 0) "....")',
    )
    out = run(daemon, code, args=b"1234567", args_encoding=1)
    rest = b"1234567"[offset & 0xFFFFFFFF :]
    assert (out.kind, out.exit_code) == (FINISH_EXIT if rest else FINISH_OK, len(rest))
    assert out.result == rest[:3].ljust(4, b".")


@pytest.mark.parametrize(("pieces", "calls"), [(15, False), (17, True)])
def test_pieces_of_a_result_lie_in_the_shared_memory(
    daemon: Daemon, pieces: int, calls: bool
) -> None:
    """Behind arguments of almost 16 MiB, as they are; a result of more than 16 MiB needs calls."""
    say = "(drop (call $result (i32.const 0) {} (i32.const {})))"
    body = f"""(local $n i32)
        {say.format("(i32.const 65536)", 5)}
        (loop $more
            (i32.store8 (i32.const 65536) (i32.add (i32.const 65) (local.get $n)))
            {say.format("(i32.const 65536)", MIB)}
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $n) (i32.const {pieces}))))
        (drop (call $args_from (i32.const {15 * MIB}) (i32.const 0) (i32.const 4)))
        {say.format("(i32.const 0)", 4)} (i32.const 0)"""
    code = module(
        body, memory='(memory (export "memory") 17)', extra='(data (i32.const 65536) "first")'
    )
    out = run(
        daemon,
        code,
        args=bytes(15 * MIB) + b"last",
        args_encoding=1,
        stage=True,
        in_shared=True,
        job=(0, 5),
    )
    rest = b"irst".ljust(MIB - 1, b"\0")
    whole = b"first" + b"".join(bytes((65 + n,)) + rest for n in range(pieces)) + b"last"
    assert out.result == whole
    assert (3 in out.calls, out.placed) == (calls, not calls)


def compiled(daemon: Daemon, code: bytes) -> bytes:
    out = run(daemon, code, compiles=True, job=(0, 5))
    assert out.kind == FINISH_OK, out
    assert out.result_encoding == 0
    return bytes(out.result)


def test_machine_code_runs_in_another_sandbox(daemon: Daemon) -> None:
    """The start function and the entry point trap: compiling runs neither."""
    code = module("unreachable", extra="(func $s (result) unreachable) (start $s)")
    machine = compiled(daemon, code)
    out = run(daemon, code, machine=machine)
    assert out.kind == FINISH_EXCEPTION and "unreachable" in out.line
    say = "(drop (call $result (i32.const 0) (i32.const 0) (i32.const 2))) (i32.const 0)"
    code = module(say, extra='(data (i32.const 0) "ok")')
    machine = compiled(daemon, code)
    for in_memfd in (False, True):
        assert run(daemon, code, machine=machine, in_memfd=in_memfd).result == b"ok"


def test_kept_machine_code_is_not_sent_again(daemon: Daemon) -> None:
    code = module("(i32.const 0)")
    machine = compiled(daemon, code)
    sandbox = daemon.spawn(pool="w")
    sandbox.wait_ready()
    for kept in (False, True):
        out = sandbox.run_another(code, slot=1, kept=kept, machine=machine)
        assert out.kind == FINISH_OK and out.kept, out
        sandbox.wait_ready()
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


@pytest.mark.parametrize("part", [0, 0.01, 0.3, 0.9])
def test_machine_code_that_is_cut_is_compiled_anew(daemon: Daemon, part: float) -> None:
    """So is that of another release of Wasmtime, which the target may have from before an update."""
    code = module("(i32.const 7)")
    machine = compiled(daemon, code)
    out = run(daemon, code, machine=machine[: int(len(machine) * part)] or b"?")
    assert out.kind == FINISH_EXIT and out.exit_code == 7


def test_machine_code_of_another_release_is_compiled_anew(daemon: Daemon) -> None:
    code = module("(i32.const 7)")
    machine = compiled(daemon, code)
    assert RELEASE in machine[:128]
    out = run(daemon, code, machine=machine.replace(RELEASE, b"\x0249", 1))
    assert out.kind == FINISH_EXIT and out.exit_code == 7


@pytest.mark.parametrize("code", [b"?", b"\0asm\1\0\0\0\x7f"])
def test_what_cannot_be_compiled(daemon: Daemon, code: bytes) -> None:
    out = run(daemon, code, compiles=True, job=(0, 5))
    assert out.kind == FINISH_BAD_CODE and out.line.startswith("compile")
    assert not out.result


def test_another_engine_does_not_run_what_it_shall_compile(daemon: Daemon) -> None:
    out = daemon.run("print('it runs')", compiles=True)
    assert out.kind == FINISH_BAD_CODE
    assert out.line == "the engine python does not compile"
    assert not out.stdout


def test_a_host_without_wasmtime_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pools").write_text(POOLS)
    running = Daemon(tmp_path, "--pools-file", str(tmp_path / "pools"))
    news = running.wait_for_pool("w", FAILING)
    assert "wasmtime==50.0.1" in news.why
    assert running.run("print(1)").stdout == b"1\n"  # other pools serve
    running.stop()


def test_a_library_that_is_not_wasmtime_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pools").write_text(POOLS)
    (tmp_path / "library").write_bytes(b"no library")
    options = ("--pools-file", str(tmp_path / "pools"), "--wasmtime", str(tmp_path / "library"))
    running = Daemon(tmp_path, *options)
    assert "cannot load Wasmtime" in running.wait_for_pool("w", FAILING).why
    running.stop()


def test_the_layouts_are_those_of_the_installed_release() -> None:
    """wasmtime_api.h declares by hand what the release's own bindings declare."""
    bindings = pytest.importorskip("wasmtime._bindings")
    header = (ROOT / "sandbox" / "wasm" / "wasmtime_api.h").read_text()
    sizes = {
        "wasmtime_func_t": 16,
        "wasmtime_memory_t": 24,
        "wasmtime_instance_t": 16,
        "wasmtime_extern_t": 32,
        "wasmtime_val_t": 32,
        "wasmtime_val_raw_t": 16,
        "wasm_byte_vec_t": 16,
    }
    assert {name: ctypes.sizeof(getattr(bindings, name)) for name in sizes} == sizes
    for name in re.findall(r"X\([a-z_ *]+, (wasm\w+),", header):
        assert hasattr(bindings, name), name
