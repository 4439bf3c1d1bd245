# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of the engine `wasm`, called over the wire: those of the kit, and how they fail."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

import pyosd
from iosd_host.common.paths import wasmtime_library
from pyosd.cli import main
from pyosd.errors import NotFound, OSDError, PermissionDenied, ScriptError, SessionLost
from pyosd.functions import Access
from pyosd.jobs.job import Job
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.job_status import JobState
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing, shared
from tests.waiting import until
from tests.wasm_kit import kit_module, kit_rust_module

wasmtime = pytest.importorskip("wasmtime")
pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

NO_ENGINE, NO_FUNCTION, NO_MODULE = 0x8018, 0x8019, 0x802F
BAD_CODE = 205
PAGE = 0x10000
WAIT_S = 60.0


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target with a pool of the engine wasm beside the default one."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    if wasmtime_library() is None:
        unavailable("sandbox", "the Python package wasmtime is not installed")
    with shared("--isolation", "best", "--slots", "1", "--pool", "w:engine=wasm,max=1") as served:
        yield served


def made(target: pyosd.Target, partition: PartitionId, data: bytes) -> ObjectRef:
    obj = target.create(partition)
    if data:
        target.write(obj, 0, data)
    return obj


def test_lines_are_counted(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_module(kit, "count"), access=Access.READ)
    text = os.urandom(3 << 20) + b"\n" * 1000
    log = made(target, partition, text)
    assert target.functions.call("count", zone=log) == text.count(b"\n")
    assert target.functions.call("count", zone=made(target, partition, b"")) == 0
    assert target.functions.submit("count", zone=log).result() == text.count(b"\n")


def test_arguments_come_back(target: pyosd.Target, kit: Path) -> None:
    target.functions.put(kit_module(kit, "echo"))
    for text in (b"", b"x", os.urandom(4096)):
        assert (target.functions.call("echo", text) or b"") == text
    with pytest.raises(ScriptError, match="main returned 1"):
        target.functions.call("echo", bytes(4097))


def test_the_engine_is_shown(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_module(kit, "count"), name="shown", access=Access.READ)
    job = target.functions.submit("shown", zone=made(target, partition, b"\n"))
    assert job.result() == 1
    assert job.status().engine == "wasm"
    assert job.status().pool == "w"


def test_a_module_is_a_job_too(
    serving: Serving, target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    """`osd exec` sends it as it is; in a pool of another engine it is no script."""
    module = kit_module(kit, "count")
    log = made(target, partition, b"a\nb\n")
    assert target.exec(module, zone=log, pool="w").result() == 2
    words = [
        "exec",
        str(module),
        "--zone",
        f"{log.partition_id}/{log.object_id}",
        "--pool",
        "w",
        "--wait",
    ]
    done = CliRunner(env={"IOSD_TARGET": serving.url}).invoke(main, words)
    assert done.exit_code == 0, done.output
    with pytest.raises(ScriptError):
        target.exec(module, zone=log).result()


def test_rundes_encryption(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_module(kit, "encrypt"), access=Access.WRITE)
    plain, key, nonce = os.urandom(1_000_003), os.urandom(32), os.urandom(12)
    source, sealed = made(target, partition, plain), made(target, partition, b"")
    ids = source.object_id.to_bytes(8, "big") + sealed.object_id.to_bytes(8, "big")
    zone = ref(partition)
    answer = target.functions.call("encrypt", ids + key + nonce, zone=zone)
    assert answer == len(plain).to_bytes(8, "big")
    cipher = Cipher(ChaCha20(key, bytes(4) + nonce), mode=None).encryptor()
    assert target.read(sealed, 0, len(plain) + 1) == cipher.update(plain)
    with pytest.raises(ScriptError, match="main returned 2"):
        target.functions.call("encrypt", b"short", zone=zone)


def test_oasis_filter(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_module(kit, "filter"), access=Access.READ)
    numbers = made(target, partition, b"5\n\n100\n99\n-7\n99999999999999\n42")
    assert target.functions.call("filter", zone=numbers) == b"5\n99\n-7\n42"
    assert target.functions.call("filter", b"43", zone=numbers) == b"5\n-7\n42"


def test_a_derived_attribute_in_cpp(
    target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    target.functions.put(kit_module(kit, "words"), access=Access.WRITE)
    text = made(target, partition, b"  many words\tare \n here " * 10_000)
    name = PAGE.to_bytes(4, "big") + (7).to_bytes(4, "big")
    target.functions.call("words", name, zone=text)
    (found,) = target.get_attributes(text, [AttributeId(PAGE, 7)])
    assert found == AttributeValue(PAGE, 7, (40_000).to_bytes(8, "big"))


def test_a_function_in_rust(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_rust_module(kit, "frequent"), access=Access.READ)
    text = made(target, partition, 'b a "q\\ b \xfc a b\n'.encode())
    assert target.functions.call("frequent", zone=text) == [
        ["b", 3],
        ["a", 2],
        ['"q\\', 1],
        ["\xfc", 1],
    ]
    assert target.functions.call("frequent", b"1", zone=text) == [["b", 3]]
    with pytest.raises(ScriptError, match="main returned 5"):
        target.functions.call("frequent", b"-1", zone=text)


def test_a_panic_of_rust_is_reported(
    target: pyosd.Target, tmp_path: Path, partition: PartitionId
) -> None:
    module = kit_rust_module(tmp_path, "panics", PANICS)
    target.functions.put(module, name="panics", methods=("main", "outside"), access=Access.READ)
    zone = made(target, partition, b"")
    for method, said in (("", b"it panics"), ("outside", b"index out of bounds")):
        job = target.functions.submit("panics", zone=zone, method=method)
        with pytest.raises(ScriptError, match="unreachable"):
            job.result()
        assert said in job.stderr()


def test_the_access_class_binds(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_module(kit, "words"), name="meek", access=Access.READ)
    text = made(target, partition, b"two words")
    with pytest.raises(ScriptError, match="setattr"):
        target.functions.call("meek", (PAGE.to_bytes(4, "big") * 2), zone=text)


CHANGES = """(module
  (import "osd" "zone" (func $zone (param i32) (result i64)))
  (import "osd" "read" (func $read (param i64 i64 i64 i32 i32) (result i64)))
  (import "osd" "write" (func $write (param i64 i64 i64 i32 i32) (result i64)))
  (import "osd" "result" (func $result (param i32 i32 i32) (result i64)))
  (memory (export "memory") 4) (data (i32.const 200000) "new")
  (func $get (result i32) (i32.wrap_i64 (call $read (call $zone (i32.const 0))
    (call $zone (i32.const 1)) (i64.const 0) (i32.const 0) (i32.const 131072))))
  (func (export "main") (result i32)
    (if (i32.ne (call $get) (i32.const 70000)) (then unreachable))
    (drop (call $write (call $zone (i32.const 0)) (call $zone (i32.const 1)) (i64.const 70000)
      (i32.const 200000) (i32.const 3)))
    (if (i32.ne (call $get) (i32.const 70003)) (then unreachable))
    (i32.wrap_i64 (call $result (i32.const 0) (i32.const 69998) (i32.const 5)))))"""


def test_a_long_read_sees_what_the_call_wrote(target: pyosd.Target, partition: PartitionId) -> None:
    """Long reads come from the files of the object, which the call's own write changes."""
    code = bytes(wasmtime.wat2wasm(CHANGES))
    target.functions.put(code, name="changes", engine="wasm", access=Access.WRITE)
    text = made(target, partition, b"." * 70_000)
    assert target.functions.call("changes", zone=text) == b"..new"


@pytest.mark.parametrize(
    "code",
    [
        b"\0asm\1\0\0\0\x7f",
        b"no module",
        bytes(wasmtime.wat2wasm('(module (import "osd" "none" (func)) (func (export "main")))')),
    ],
)
def test_what_cannot_run_is_not_activated(target: pyosd.Target, code: bytes) -> None:
    with pytest.raises(OSDError) as refused:
        target.functions.put(code, name="broken", engine="wasm")
    assert refused.value.asc << 8 | refused.value.ascq == NO_MODULE
    sense = refused.value.sense
    assert sense and sense.command_information == BAD_CODE
    assert sense.text and sense.text in str(refused.value)
    with pytest.raises(OSDError) as missing:
        target.functions.call("broken")
    assert missing.value.asc << 8 | missing.value.ascq == NO_FUNCTION


PANICS = """
mod osd;

fn panics() -> osd::Result<()> {
    panic!("it panics");
}

fn outside() -> osd::Result<()> {
    let none: Vec<u8> = osd::args();
    osd::result(&[none[1]])
}

osd::function!(main, crate::panics);
osd::function!(outside, crate::outside);
"""


def kept(target: pyosd.Target) -> int:
    """Bytes of code and machine code in the memory of the target."""
    return target.functions.capacity().kept


def test_an_activation_compiles(target: pyosd.Target, kit: Path) -> None:
    """The target keeps the machine code for all sandboxes; this pool starts one for each call."""
    module = kit_module(kit, "encrypt")
    before = kept(target)
    target.functions.put(module, name="ahead")
    assert kept(target) > before + 2 * module.stat().st_size
    target.functions.remove("ahead")
    assert kept(target) == before


def occupied(target: pyosd.Target, zone: ObjectRef) -> Job:
    """A call that runs in the only slot of the pool."""
    endless = wasmtime.wat2wasm('(module (func (export "main") (loop $l (br $l))))')
    target.functions.put(bytes(endless), name="endless", engine="wasm")
    busy: Job = target.functions.submit("endless", zone=zone)
    while busy.status().state is not JobState.RUNNING:
        time.sleep(0.01)
    return busy


def test_an_activation_waits_for_its_pool(
    target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    """The pool has one slot, and a call runs in it."""
    busy = occupied(target, made(target, partition, b""))
    with ThreadPoolExecutor(1) as threads:
        put = threads.submit(target.functions.put, kit_module(kit, "echo"), name="late")
        with pytest.raises(TimeoutError):
            put.result(0.5)
        busy.kill()
        put.result(60)
    assert target.functions.call("late", b"x") == b"x"


def machine_files(served: Serving) -> list[Path]:
    """Machine code that the store of the target has."""
    return sorted((served.data / "machine").iterdir())


@pytest.mark.parametrize("changed", [False, True])
def test_machine_code_is_there_after_a_restart(kit: Path, changed: bool) -> None:
    """The first call has it, unless the file was changed: then it is made again."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    with Serving("--isolation", "best", "--pool", "w:engine=wasm,max=1") as served:
        with served.connect() as target:
            target.functions.put(kit_module(kit, "echo"))
            before = kept(target)
        served.kill("tgtd")
        (file,) = machine_files(served)
        content = file.read_bytes()
        if changed:
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        served.restarted()
        with served.connect() as target:
            zone = ref(target.create_partition())
            target.exec("pass", zone=zone).wait(WAIT_S)  # there are sandboxes again
            assert target.functions.call("echo", b"x") == b"x"
            end = time.monotonic() + WAIT_S
            while kept(target) < before:
                assert changed and time.monotonic() < end
                time.sleep(0.02)
            assert target.functions.call("echo", b"y") == b"y"
            while file.read_bytes() != content:  # Wasmtime makes the same of the same code
                assert changed and time.monotonic() < end
                time.sleep(0.02)
            target.functions.remove("echo")
            assert machine_files(served) == []


def test_machine_code_is_made_again_after_a_restart(kit: Path) -> None:
    """Calls do not wait for it.  No call counts as a user of the function because of it."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    module = kit_module(kit, "encrypt")
    with Serving("--isolation", "best", "--pool", "w:engine=wasm,max=1") as served:
        with served.connect() as target:
            target.functions.put(kit_module(kit, "echo"))
            target.functions.put(module, access=Access.NONE)
        served.kill("tgtd")
        for file in machine_files(served):
            file.unlink()
        served.restarted()
        with served.connect() as target:
            assert kept(target) == 0
            zone = ref(target.create_partition())
            target.exec("pass", zone=zone).wait(WAIT_S)  # there are sandboxes again
            assert target.functions.call("echo", b"x") == b"x"
            size = kit_module(kit, "echo").stat().st_size
            end = time.monotonic() + WAIT_S
            while kept(target) < 2 * size:
                assert time.monotonic() < end
                time.sleep(0.02)
            assert target.functions.call("echo", b"y") == b"y"
            with pytest.raises(ScriptError, match="main returned 2"):
                target.functions.call("encrypt", b"")
            target.functions.remove("encrypt")


def test_a_pool_for_others_compiles(kit: Path) -> None:
    """Who may activate a function may be another person than those who may call it."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    pool = "w:engine=wasm,max=1,access.users=chap:somebody"
    with Serving("--isolation", "best", "--pool", pool) as served, served.connect() as target:
        target.functions.put(kit_module(kit, "echo"))
        with pytest.raises(PermissionDenied):
            target.functions.call("echo", b"x", zone=ref(target.create_partition()))


def test_a_kill_before_it_is_compiled_leaves_a_stored_function(kit: Path) -> None:
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    with Serving("--isolation", "best", "--pool", "w:engine=wasm,max=1") as served:
        with served.connect() as target, ThreadPoolExecutor(1) as threads:
            occupied(target, ref(target.create_partition()))
            late = target.functions.put(kit_module(kit, "echo"), name="late", activate=False)
            activation = threads.submit(target.functions.activate, "late")
            until(lambda: any(each.queued for each in target.pools()), "it does not wait")
            served.kill("tgtd")
            with pytest.raises(SessionLost):
                activation.result(WAIT_S)
            served.restarted()
        with served.connect() as target:
            assert not target.functions.show(late.id).active
            with pytest.raises(NotFound):
                target.functions.call("late")


@pytest.mark.parametrize("engine", ["native", "java", "was", "w"])
def test_an_engine_without_a_pool(target: pyosd.Target, engine: str) -> None:
    with pytest.raises(OSDError) as refused:
        target.functions.put(b"code", name="none", engine=engine)
    assert refused.value.asc << 8 | refused.value.ascq == NO_ENGINE


def test_a_pool_of_another_engine(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    """A module is compiled in the pool of its calls; other code is not."""
    with pytest.raises(OSDError) as refused:
        target.functions.put(kit_module(kit, "echo"), name="lost", pool="default")
    assert refused.value.asc << 8 | refused.value.ascq == NO_ENGINE
    target.functions.put(b"def main(args): pass", name="lost", pool="w")
    with pytest.raises(OSDError) as refused:
        target.functions.call("lost", zone=made(target, partition, b""))
    assert refused.value.asc << 8 | refused.value.ascq == NO_ENGINE
