# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of the engine `wasm`, called over the wire: those of the kit, and how they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

import pyosd
from iosd_host.common.paths import wasmtime_library
from pyosd.cli import main
from pyosd.errors import OSDError, ScriptError
from pyosd.functions import Access
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing, shared
from tests.wasm_kit import kit_module

wasmtime = pytest.importorskip("wasmtime")
pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

NO_ENGINE = 0x8018
PAGE = 0x10000


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    """A target with a pool of the engine wasm beside the default one."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    if wasmtime_library() is None:
        unavailable("sandbox", "the Python package wasmtime is not installed")
    with shared("--isolation", "best", "--slots", "1", "--pool", "w:engine=wasm,max=1") as served:
        yield served


@pytest.fixture
def target(served: Serving) -> Iterator[pyosd.Target]:
    with served.connect() as session:
        yield session


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kit")


def made(target: pyosd.Target, partition: PartitionId, data: bytes) -> ObjectRef:
    obj = target.create(partition)
    if data:
        target.write(obj, 0, data)
    return obj


@pytest.fixture
def partition(target: pyosd.Target) -> Iterator[PartitionId]:
    found = target.create_partition()
    yield found
    target.remove_partition(found, contents=True)


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
    served: Serving, target: pyosd.Target, kit: Path, partition: PartitionId
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
    done = CliRunner(env={"IOSD_TARGET": served.url}).invoke(main, words)
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


def test_what_is_no_module(target: pyosd.Target, partition: PartitionId) -> None:
    target.functions.put(b"\0asm\1\0\0\0\x7f", name="broken", engine="wasm")
    with pytest.raises(ScriptError, match="compile"):
        target.functions.call("broken", zone=made(target, partition, b""))


@pytest.mark.parametrize("engine", ["native", "java", "was", "w"])
def test_an_engine_without_a_pool(target: pyosd.Target, engine: str) -> None:
    with pytest.raises(OSDError) as refused:
        target.functions.put(b"code", name="none", engine=engine)
    assert refused.value.asc << 8 | refused.value.ascq == NO_ENGINE


@pytest.mark.parametrize(("engine", "pool"), [("wasm", "default"), ("python", "w")])
def test_a_pool_of_another_engine(
    target: pyosd.Target, partition: PartitionId, engine: str, pool: str
) -> None:
    target.functions.put(b"def main(args): pass", name="lost", engine=engine, pool=pool)
    with pytest.raises(OSDError) as refused:
        target.functions.call("lost", zone=made(target, partition, b""))
    assert refused.value.asc << 8 | refused.value.ascq == NO_ENGINE
