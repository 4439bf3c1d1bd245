# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `native` against machine code of attackers (hostile_native.c), and against files that are no
library it can load."""

from __future__ import annotations

import re
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from objects import USER_OBJECT, MemoryObjects, Thing
from proxy import (
    FAILING,
    FINISH_ENDED,
    FINISH_EXCEPTION,
    FINISH_EXIT,
    FINISH_OK,
    LIMITS,
    LIMITS_SET,
    SERVING,
    Daemon,
    Limits,
    Outcome,
    Sandbox,
)

from tests.native_kit import hostile_library, library

MIB = 1 << 20
FINISH_MEMORY, FINISH_BAD_CODE = 3, 5
POOLS = "name=default;max=1\nname=n;max=2;engine=native\n"
ZONE = (USER_OBJECT, 0x10000, 0x10001)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("native")
    (folder / "pools").write_text(POOLS)
    running = Daemon(folder, "--pools-file", str(folder / "pools"))
    assert running.wait_for_pool("n", SERVING, FAILING).state == SERVING
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return hostile_library(tmp_path_factory.mktemp("hostile")).read_bytes()


def run(
    daemon: Daemon, code: bytes, method: str = "main", limits: Limits | None = None, **job: object
) -> Outcome:
    options = {"native": True, "in_memfd": True, "zone": ZONE, "method": method} | job
    return daemon.run(code, limits, "n", **options)


def start(daemon: Daemon, code: bytes, method: str) -> Sandbox:
    sandbox = daemon.spawn(pool="n")
    sandbox.wait_ready()
    job = {"native": True, "in_memfd": True, "zone": ZONE, "args": b"arguments", "args_encoding": 1}
    sandbox.start(code, method=method, **job)
    return sandbox


def died_by(out: Outcome, number: int) -> None:
    assert out.kind is None, out
    assert out.status
    assert out.status.code == -number, out


DENIED = ["system_calls", "files", "new_code", "bad_parameters", "memory_that_is_not_counted"]


@pytest.mark.parametrize("method", DENIED)
def test_what_is_denied(daemon: Daemon, hostile: bytes, method: str) -> None:
    out = run(daemon, hostile, method)
    assert (out.kind, out.stdout) == (FINISH_OK, b""), out


CRASHES = {
    "jump_into_data": signal.SIGSEGV,
    "jump_into_shared_memory": signal.SIGSEGV,
    "other_table": signal.SIGSYS,
    "stack": signal.SIGSEGV,
    "aborts": signal.SIGSEGV,  # it may not send a signal, not even to itself
    "divides_by_zero": signal.SIGFPE,
    "range_read": signal.SIGSEGV,
    "range_read_long": signal.SIGSEGV,
    "range_write": signal.SIGSEGV,
    "range_write_long": signal.SIGSEGV,
    "range_getattr": signal.SIGSEGV,
    "range_setattr": signal.SIGSEGV,
    "range_args": signal.SIGSEGV,
    "range_args_from": signal.SIGSEGV,
    "range_result": signal.SIGSEGV,
    "range_progress": signal.SIGSEGV,
}


@pytest.mark.parametrize("method", CRASHES)
def test_a_crash_is_of_its_own_process(daemon: Daemon, hostile: bytes, method: str) -> None:
    """Also a wrong range of a call: what it names is the memory of its own process."""
    store = MemoryObjects()
    store.things[ZONE[1:]] = Thing(USER_OBJECT, bytearray(b"x" * 5000), {(1, 1): b"value"})
    sandbox = start(daemon, hostile, method)
    died_by(sandbox.finish(store), CRASHES[method])
    sandbox.close()
    assert run(daemon, hostile, "files").kind == FINISH_OK


def test_a_wrong_range_of_log_is_an_error(daemon: Daemon, hostile: bytes) -> None:
    out = run(daemon, hostile, "range_log")
    assert (out.kind, out.exit_code) == (FINISH_EXIT, 5), out
    assert "log: Bad address" in out.line


@pytest.mark.parametrize(("method", "code"), [("ends_with_exit", 0), ("ends_at_once", 9)])
def test_an_exit_is_no_report(daemon: Daemon, hostile: bytes, method: str, code: int) -> None:
    out = run(daemon, hostile, method)
    assert out.kind is None
    assert out.status
    assert out.status.code == code


def test_descriptors_are_not_needed_for_a_result(daemon: Daemon, hostile: bytes) -> None:
    out = run(daemon, hostile, "descriptors_closed")
    assert (out.kind, out.result) == (FINISH_OK, b"closed")


def test_only_the_thread_of_the_job_calls(daemon: Daemon, hostile: bytes) -> None:
    assert run(daemon, hostile, "calls_of_a_thread").exit_code == 2  # no thread is allowed
    out = run(daemon, hostile, "calls_of_a_thread", Limits(processes=2))
    assert out.kind == FINISH_OK, out


def test_rundes_form_has_room(daemon: Daemon, hostile: bytes) -> None:
    out = run(daemon, hostile, "too_much")
    assert (out.kind, out.exit_code) == (FINISH_EXCEPTION, 1)
    assert out.line == "too_much: it returned 1048577 bytes, and the room is 1048576"
    out = run(daemon, hostile, "as_much", args=b"y", args_encoding=1)
    assert (out.kind, out.result) == (FINISH_OK, b"y" * MIB)


def test_memory_ends_at_the_limit(daemon: Daemon, hostile: bytes) -> None:
    out = run(daemon, hostile, "memory", Limits(memory_bytes=128 * MIB))
    assert out.kind == FINISH_EXIT
    assert out.exit_code is not None and 60 < out.exit_code <= 128  # MiB
    assert out.status and not out.status.out_of_memory


@pytest.mark.parametrize("method", ["loop", "loop_without_signals", "handlers_that_return"])
def test_a_loop_ends_with_its_processor_time(daemon: Daemon, hostile: bytes, method: str) -> None:
    sandbox = daemon.spawn(pool="n")
    sandbox.wait_ready()
    daemon.send(LIMITS, sandbox.id, Limits(cpu_seconds=1).encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.start(hostile, method=method, native=True, in_memfd=True)
    died_by(sandbox.finish(), signal.SIGKILL)
    sandbox.close()


def test_a_job_that_calls_ends_when_told(daemon: Daemon, hostile: bytes) -> None:
    """The pipe is full: the write waits, is told to end, and the job ends with a report."""
    sandbox = start(daemon, hostile, "flood")
    sandbox.read_until(b"on")
    sandbox.control(2)
    out = sandbox.finish()
    sandbox.close()
    assert out.kind == FINISH_ENDED
    assert out.line == "flood: osd_log: the job was told to end"


def test_files_of_an_object_cannot_be_written(daemon: Daemon, hostile: bytes) -> None:
    store = MemoryObjects()
    data = bytearray(b"abcd" * (MIB // 2))
    store.things[ZONE[1:]] = Thing(USER_OBJECT, bytearray(data))
    sandbox = start(daemon, hostile, "shared_files")
    out = sandbox.finish(store)
    sandbox.close()
    assert out.kind == FINISH_OK, out
    assert store.things[ZONE[1:]].data == data


def test_a_process_runs_one_call(daemon: Daemon, hostile: bytes) -> None:
    sandbox = daemon.spawn(pool="n")
    sandbox.wait_ready()
    sandbox.run_another(hostile, method="traces", native=True, in_memfd=True)
    assert sandbox.outcome.kind == FINISH_OK
    assert sandbox.wait_exit().code == 0
    sandbox.close()
    assert run(daemon, hostile, "traces").kind == FINISH_OK


def test_code_that_is_not_for_the_engine_does_not_run(daemon: Daemon, hostile: bytes) -> None:
    """The target says of each job whether its code is signed for this engine."""
    for job in ({"native": False}, {"method": ""}, {"form": 1}):
        out = run(daemon, hostile, **{"method": "ends_at_once"} | job)
        assert out.kind == FINISH_BAD_CODE
        assert "runs functions that are signed for it" in out.line


def test_an_entry_point_is_a_function_that_is_exported(daemon: Daemon, hostile: bytes) -> None:
    for method in ("main", "came_through", "osd_read", "attempts", "printf"):
        out = run(daemon, hostile, method)
        assert out.kind == FINISH_BAD_CODE, out
        assert f"{method}: the library exports neither" in out.line


BROKEN = {
    "int f(void); int f(void) { extern int gone(void); return gone(); }": ("undefined symbol gone"),
    "__thread int x; int *f(void); int *f(void) { return &x; }": ("thread-local"),
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_the_loader_does_not_support(daemon: Daemon, tmp_path: Path, text: str) -> None:
    out = run(daemon, library(tmp_path, text).read_bytes())
    assert out.kind == FINISH_BAD_CODE
    assert out.line.startswith("load: ")
    assert BROKEN[text] in out.line, out.line


def test_other_libraries_are_named(daemon: Daemon, tmp_path: Path) -> None:
    code = library(tmp_path, "int x;", "-Wl,--no-as-needed", "-ldl", "-lz").read_bytes()
    out = run(daemon, code)
    assert out.kind == FINISH_BAD_CODE
    assert re.search(r"needs the library lib(z|dl)\.so", out.line)


@pytest.mark.parametrize(
    ("at", "value", "cause"),
    [
        (0, b"x", "not an ELF file"),
        (4, b"\1", "another machine"),
        (18, struct.pack("<H", 21), "another machine (ELF machine 21"),
        (16, struct.pack("<H", 2), "not a shared library"),
        (54, struct.pack("<H", 1), "program headers"),
        (32, struct.pack("<Q", 1 << 63), "program headers"),
    ],
)
def test_a_wrong_header_is_refused(
    daemon: Daemon, hostile: bytes, at: int, value: bytes, cause: str
) -> None:
    code = hostile[:at] + value + hostile[at + len(value) :]
    out = run(daemon, code, "files")
    assert out.kind == FINISH_BAD_CODE
    assert cause in out.line


@pytest.mark.parametrize("code", [b"x", b"\x7fELF", b"import osd\n", b"\0asm\1\0\0\0", bytes(5000)])
def test_what_is_no_library(daemon: Daemon, code: bytes) -> None:
    out = run(daemon, code)
    assert out.kind == FINISH_BAD_CODE
    assert "not an ELF file" in out.line


def test_more_memory_than_the_job_has(daemon: Daemon, tmp_path: Path) -> None:
    code = library(tmp_path, "char x[200 << 20];").read_bytes()
    out = run(daemon, code, limits=Limits(memory_bytes=64 * MIB))
    assert out.kind == FINISH_MEMORY
    assert "cannot map its" in out.line


CONSTRUCTORS = """
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
static int order, wrong;
__attribute__((constructor(101))) static void first(void) { wrong |= order++ != 0; }
__attribute__((constructor(102))) static void second(void)
{
    static char page[8192] __attribute__((aligned(4096)));

    wrong |= order++ != 1 || mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 || errno != EPERM;
}
__attribute__((visibility("default")))
int start(void *in, size_t length, void *out, size_t room, size_t *used)
{
    (void)in;
    printf("%zu\\n", length);
    *used = (size_t)snprintf(out, room, "%d", wrong || order != 2);
    return 0;
}
"""


def test_constructors_run_behind_the_last_filter(daemon: Daemon, tmp_path: Path) -> None:
    code = library(tmp_path, CONSTRUCTORS).read_bytes()
    out = run(daemon, code, args=b"12345", args_encoding=1)
    assert (out.kind, out.result, out.stdout) == (FINISH_OK, b"0", b"5\n"), out


def test_a_package_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pools").write_text("name=default;max=1\nname=n;max=1;engine=native;preload=json\n")
    running = Daemon(tmp_path, "--pools-file", str(tmp_path / "pools"))
    assert "engine native has no package sets" in running.wait_for_pool("n", FAILING).why
    running.stop()
