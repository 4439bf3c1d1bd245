# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of the engine `native` over the wire: those of the kit, the signers that are needed, and how
attacks in machine code end (tests/sandbox/hostile_native.c)."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

import pyosd
from pyosd.cli import main
from pyosd.errors import OSDError, ScriptError
from pyosd.functions import Access
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.exec_params import ExecFlag, ExecParams
from pyosd.wire.job_status import JobFlag, JobState, JobStatus
from tests import warm
from tests.exec.conftest import WAIT_S
from tests.machine import unavailable
from tests.native_kit import hostile_library, kit_library
from tests.serving import Serving, sandboxes_missing, shared

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

UNSIGNED, BAD_SIGNER, NO_ENGINE = 0x8020, 0x8022, 0x8018
PAGE = 0x10000


class Keys:
    """Keys of signers: bob is listed for the engine native, ann is not, eve is in no list."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("ann", "bob", "eve"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        self.list = folder / "signers"
        self.list.write_text(
            f"ann {self.public('ann')}\n"
            f'bob namespaces="iosd-function,iosd-function-native" {self.public("bob")}\n'
        )

    def public(self, name: str) -> str:
        return " ".join((self.folder / f"{name}.pub").read_text().split()[:2])

    def __getitem__(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def serving(keys: Keys) -> Iterator[Serving]:
    """A target with a pool of the engine native beside the default one."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    words = ["--isolation", "best", "--slots", "1", "--function-signers", str(keys.list)]
    with shared(*words, "--pool", "n:engine=native,max=1") as served:
        yield served


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_library(tmp_path_factory.mktemp("hostile"))


Put = Callable[..., None]


@pytest.fixture
def put(target: pyosd.Target, kit: Path, keys: Keys) -> Put:
    """Put a function of the kit, signed by bob."""

    def put(file: str, **options: object) -> None:
        target.functions.put(kit_library(kit, file), sign_with=keys["bob"], **options)  # type: ignore[arg-type]

    return put


def made(target: pyosd.Target, partition: PartitionId, data: bytes) -> ObjectRef:
    obj = target.create(partition)
    if data:
        target.write(obj, 0, data)
    return obj


def sense(error: OSDError) -> int:
    return error.asc << 8 | error.ascq


# ---- the kit ----


def test_lines_are_counted(target: pyosd.Target, put: Put, partition: PartitionId) -> None:
    put("count", access=Access.READ)
    text = os.urandom(3 << 20) + b"\n" * 1000
    log = made(target, partition, text)
    assert target.functions.call("count", zone=log) == text.count(b"\n")
    assert target.functions.call("count", zone=made(target, partition, b"")) == 0
    job = target.functions.submit("count", zone=log)
    assert job.result() == text.count(b"\n")
    status = job.status()
    assert (status.engine, status.pool) == ("native", "n")
    assert JobFlag.NATIVE in status.flags


def test_arguments_come_back(target: pyosd.Target, put: Put) -> None:
    put("echo")
    for text in (b"", b"x", os.urandom(4096)):
        assert (target.functions.call("echo", text) or b"") == text
    with pytest.raises(ScriptError, match="main returned 1"):
        target.functions.call("echo", bytes(4097))


def test_rundes_encryption(target: pyosd.Target, put: Put, partition: PartitionId) -> None:
    """Figure 2.5 of the thesis."""
    put("encrypt", access=Access.WRITE)
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


def test_rundes_form_of_an_entry_point(
    target: pyosd.Target, put: Put, partition: PartitionId
) -> None:
    """The function of the thesis's appendix A: more than one piece of 4 MiB."""
    put("copy", access=Access.WRITE)
    data = os.urandom(9_000_001)
    source, copied = made(target, partition, data), made(target, partition, b"")
    ids = (source.partition_id, source.object_id, copied.partition_id, copied.object_id)
    words = b"".join(each.to_bytes(8, "big") for each in ids)
    answer = target.functions.call("copy", words, zone=ref(partition))
    assert answer == len(data).to_bytes(8, "big")
    assert target.read(copied, 0, len(data) + 1) == data
    with pytest.raises(ScriptError, match="main returned 2"):
        target.functions.call("copy", words[1:], zone=ref(partition))
    other = target.create_partition()
    outside = made(target, other, b"secret")
    ids = (outside.partition_id, outside.object_id, copied.partition_id, copied.object_id)
    words = b"".join(each.to_bytes(8, "big") for each in ids)
    with pytest.raises(ScriptError, match="zone"):
        target.functions.call("copy", words, zone=ref(partition))
    target.remove_partition(other, contents=True)


def test_oasis_filter(target: pyosd.Target, put: Put, partition: PartitionId) -> None:
    """Figure 2 of the paper."""
    put("filter", access=Access.READ)
    numbers = made(target, partition, b"5\n\n100\n99\n-7\n99999999999999\n42")
    assert target.functions.call("filter", zone=numbers) == b"5\n99\n-7\n42"
    assert target.functions.call("filter", b"43", zone=numbers) == b"5\n-7\n42"


def test_a_derived_attribute_in_cpp(target: pyosd.Target, put: Put, partition: PartitionId) -> None:
    put("words", access=Access.WRITE)
    text = made(target, partition, b"  many words\tare \n here " * 10_000)
    name = PAGE.to_bytes(4, "big") + (7).to_bytes(4, "big")
    target.functions.call("words", name, zone=text)
    (found,) = target.get_attributes(text, [AttributeId(PAGE, 7)])
    assert found == AttributeValue(PAGE, 7, (40_000).to_bytes(8, "big"))
    put("words", name="meek", access=Access.READ)
    with pytest.raises(ScriptError, match="setattr"):
        target.functions.call("meek", name, zone=text)


def test_an_encrypted_function_runs(target: pyosd.Target, put: Put, partition: PartitionId) -> None:
    put("count", name="sealed", access=Access.READ, encrypted=True)
    assert target.functions.call("sealed", zone=made(target, partition, b"\n\n")) == 2


def test_the_verb_puts_and_calls(serving: Serving, kit: Path, keys: Keys) -> None:
    library = kit_library(kit, "echo")
    environment = {"IOSD_TARGET": serving.url}
    words = ["fn", "put", str(library), "--name", "said", "--engine", "native"]
    runner = CliRunner(env=environment)
    done = runner.invoke(main, [*words, "--sign", str(keys["bob"])])
    assert done.exit_code == 0, done.output
    done = runner.invoke(main, ["fn", "call", "said", "--", "hello"])
    assert (done.exit_code, done.output.strip()) == (0, '["hello"]')
    assert "native" in runner.invoke(main, ["fn", "show", "said"]).output


# ---- who may put machine code there ----


@pytest.mark.parametrize(
    ("signer", "code"), [(None, UNSIGNED), ("ann", BAD_SIGNER), ("eve", BAD_SIGNER)]
)
def test_only_a_signer_of_the_engine_activates(
    target: pyosd.Target, kit: Path, keys: Keys, signer: str | None, code: int
) -> None:
    """Also where the policy requires no signature, as here."""
    with pytest.raises(OSDError) as refused:
        target.functions.put(
            kit_library(kit, "echo"), name="denied", sign_with=keys[signer] if signer else None
        )
    assert sense(refused.value) == code


def test_a_script_does_not_run_in_the_pool(
    serving: Serving, target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    """Neither by the pool, nor by the engine, nor held for later."""
    library, zone = kit_library(kit, "count"), made(target, partition, b"\n")
    code = library.read_bytes()
    for params in (
        ExecParams(pool="n"),
        ExecParams(engine="native"),
        ExecParams(pool="n", engine="native"),
    ):
        with pytest.raises(OSDError) as refused:
            target.exec_code(zone, code, params)
        assert sense(refused.value) == UNSIGNED
    with pytest.raises(OSDError) as refused:
        target.exec("print(1)", zone=zone, pool="n", hold=True)
    assert sense(refused.value) == UNSIGNED
    words = [
        "exec",
        str(library),
        "--zone",
        f"{partition}/{zone.object_id}",
        "--pool",
        "n",
        "--no-check",
    ]
    done = CliRunner(env={"IOSD_TARGET": serving.url}).invoke(main, words)
    assert done.exit_code != 0
    assert "the engine runs signed functions only" in done.output


def test_the_code_of_a_job_does_not_become_machine_code(
    target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    """An unsigned function of another engine has a library as its code.  Its job is run again."""
    code, zone = kit_library(kit, "count").read_bytes(), made(target, partition, b"\n\n")
    target.functions.put(code, name="masked", engine="python", access=Access.READ, check=False)
    old = target.functions.submit("masked", zone=zone)
    assert old.wait(WAIT_S).state == JobState.FAILED
    for params in (ExecParams(pool="n"), ExecParams(engine="native")):
        again = dataclasses.replace(params, predecessor=old.id)
        try:
            job = target.exec_code(zone, b"", again).job
        except OSDError as refused:
            assert sense(refused) == NO_ENGINE
        else:
            assert job is not None
            status = target.job(job).wait(WAIT_S)
            assert JobFlag.NATIVE not in status.flags and status.state == JobState.FAILED, status
    assert target.retry(old).wait(WAIT_S).reason == old.status().reason


def test_a_function_of_another_engine_does_not_run_in_the_pool(
    target: pyosd.Target, put: Put, partition: PartitionId
) -> None:
    target.functions.put(b"def main(args): pass", name="lost", engine="python", pool="n")
    put("echo", name="astray", pool="default")
    for name in ("lost", "astray"):
        with pytest.raises(OSDError) as refused:
            target.functions.call(name, zone=ref(partition))
        assert sense(refused.value) == NO_ENGINE


POOLS = """
[target]
function_signers = '{signers}'
[pools.x]
engine = '{engine}'
max = 1
"""


def test_a_waiting_script_does_not_become_machine_code(
    tmp_path: Path, keys: Keys, hostile: Path
) -> None:
    """The administrator changes the engine of its pool to native before it starts."""
    run, file = tmp_path / "run", tmp_path / "iosd.toml"
    file.write_text(POOLS.format(signers=keys.list, engine="python"))
    environment = {"IOSD_RUN": str(run)}
    words = ["--config", str(file), "--isolation", "best", "--slots", "1"]
    with Serving(*words, environment=environment) as serving, serving.connect() as target:
        zone = ref(target.create_partition())
        params = ExecParams(pool="x", flags=ExecFlag.HOLD, name="waits")
        reply = target.exec_code(zone, hostile.read_bytes(), params)
        assert reply.job is not None
        file.write_text(POOLS.format(signers=keys.list, engine="native"))
        warm.run(["osd", "config", "reload"], env={**os.environ, **environment}, check=True)
        with pytest.raises(OSDError) as refused:
            target.exec_code(zone, b"pass", params)
        assert sense(refused.value) == UNSIGNED
        job = target.job(reply.job)
        job.release()
        status = job.wait(WAIT_S)
        assert (status.state, status.reason) == (JobState.FAILED, 205), status
        assert "signed for it" in status.message
        assert JobFlag.NATIVE not in status.flags


# ---- machine code of an attacker ----


@pytest.fixture
def attack(
    target: pyosd.Target, keys: Keys, hostile: Path, partition: PartitionId
) -> Callable[..., JobStatus]:
    """Run an entry point of the hostile library as a job, and then a harmless one."""

    def attack(method: str, **options: object) -> JobStatus:
        methods = (method, "files")
        target.functions.put(
            hostile, name="hostile", access=Access.WRITE, methods=methods, sign_with=keys["bob"]
        )
        zone = made(target, partition, b"data" * 50_000)
        target.set_attributes(zone, [AttributeValue(PAGE, 1, b"value")])
        job = target.functions.submit("hostile", zone=zone, **options)  # type: ignore[arg-type]
        status: JobStatus = job.wait(WAIT_S)
        assert target.read(zone, 0, 300_000) == b"data" * 50_000
        after = target.functions.submit("hostile", zone=zone, method="files")
        assert after.wait(WAIT_S).state == JobState.COMPLETED
        return status

    return attack


HARMLESS = [
    *("system_calls", "files", "new_code", "bad_parameters", "memory_that_is_not_counted"),
    *("shared_files", "traces", "forged_samples", "descriptors_closed", "job_socket_flooded"),
]
CRASHES = ["jump_into_shared_memory", "other_table", "stack", "range_read_long", "aborts"]
BREAKS = [
    "frame_of_ones",
    "frame_of_zeros",
    "frame_unknown",
    "frame_too_long",
    "forged_finish",
    "all_bits",
]


@pytest.mark.parametrize("method", HARMLESS)
def test_what_comes_to_nothing(attack: Callable[..., JobStatus], method: str) -> None:
    status = attack(method)
    assert (status.state, status.reason) == (JobState.COMPLETED, 0), status.message
    assert status.peak_memory < 1 << 31 and status.cpu_user + status.cpu_system < 60


@pytest.mark.parametrize("method", CRASHES)
def test_a_crash(attack: Callable[..., JobStatus], method: str) -> None:
    status = attack(method)
    assert (status.state, status.reason) == (JobState.FAILED, 203), status.message
    assert status.signal in (signal.SIGSEGV, signal.SIGSYS, signal.SIGABRT)


@pytest.mark.parametrize("method", BREAKS)
def test_frames_that_no_sandbox_sends(attack: Callable[..., JobStatus], method: str) -> None:
    status = attack(method)
    assert (status.state, status.reason) == (JobState.FAILED, 404), status.message


LIMITS: dict[str, tuple[dict[str, Any], JobState, int]] = {
    "loop": ({"cpu": 0.2, "wall": 50.0}, JobState.LIMIT_EXCEEDED, 302),
    "loop_without_signals": ({"cpu": 50.0, "wall": 0.3}, JobState.TIMEOUT, 301),
    "frame_in_the_other_area": ({"wall": 0.3}, JobState.TIMEOUT, 301),
    "flood": ({"output": "64KiB", "wall": 50.0}, JobState.LIMIT_EXCEEDED, 304),
    "memory": ({"mem": "64MiB", "wall": 50.0}, JobState.FAILED, 202),
    "endless_result": ({"wall": 50.0}, JobState.LIMIT_EXCEEDED, 308),
    "ends_at_once": ({}, JobState.FAILED, 204),
}


@pytest.mark.parametrize("method", LIMITS)
def test_a_limit(attack: Callable[..., JobStatus], method: str) -> None:
    limits, state, reason = LIMITS[method]
    status = attack(method, limits=pyosd.Limits(**limits))
    assert (status.state, status.reason) == (state, reason), status.message
