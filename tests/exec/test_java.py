# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of the engine `java`, called over the wire: those of the kit, their rights, limits and ends."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pyosd
from pyosd.cli import main
from pyosd.errors import (
    JobCancelled,
    JobOutOfMemory,
    JobTimeout,
    LimitExceeded,
    OSDError,
    ScriptError,
)
from pyosd.functions import Access
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId
from pyosd.wire.job_status import JobState
from tests.java_kit import compiled, java_home, kit_jar, packed
from tests.serving import Serving, shared
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

PAGE = 0x10000
POOL = "j:engine=java,max=1,limits.mem=256MiB"
BODIES = {
    "Echo": "return args;",
    "Spin": "while (true) Thread.onSpinWait();",
    "Hoard": "List<byte[]> all = new ArrayList<>(); while (true) all.add(new byte[1 << 20]);",
    "Talk": 'while (true) System.out.println("x".repeat(1000));',
    "Exit": "System.exit(args[0]); return null;",
    "Beyond": "Osd.write(Osd.zonePartition(), Osd.zoneObject(), 0, args); return null;",
    "Outside": "Osd.length(Osd.zonePartition() + 1, Osd.zoneObject()); return null;",
    "Threads": """Thread[] all = new Thread[args[0]];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(() -> Osd.result(new byte[] {1})); all[i].start(); }
        for (Thread each : all) each.join(); return null;""",
    "Connect": 'new Socket("127.0.0.1", 3260); return null;',
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target with a pool of the engine java beside the default one."""
    java_home()
    with shared("--isolation", "best", "--slots", "1", "--pool", POOL) as served:
        yield served


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return packed(compiled(tmp_path_factory.mktemp("classes"), BODIES), "Echo")


def made(target: pyosd.Target, partition: PartitionId, data: bytes) -> ObjectRef:
    obj = target.create(partition)
    if data:
        target.write(obj, 0, data)
    return obj


def test_lines_are_counted(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_jar(kit, "Count"), access=Access.READ)
    text = os.urandom(3 << 20) + b"\n" * 1000
    log = made(target, partition, text)
    assert target.functions.call("Count", zone=log) == text.count(b"\n")
    assert target.functions.call("Count", zone=made(target, partition, b"")) == 0
    job = target.functions.submit("Count", zone=log)
    assert job.result() == text.count(b"\n")
    assert (job.status().engine, job.status().pool) == ("java", "j")


def test_oasis_filter(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_jar(kit, "Filter"), access=Access.READ)
    numbers = made(target, partition, b"5\n\n100\n99\n-7\n99999999999999\n42")
    assert target.functions.call("Filter", zone=numbers) == b"5\n99\n-7\n42"
    assert target.functions.call("Filter", b"43", zone=numbers) == b"5\n-7\n42"


def test_a_derived_attribute(target: pyosd.Target, kit: Path, partition: PartitionId) -> None:
    target.functions.put(kit_jar(kit, "Digest"), access=Access.WRITE)
    text = os.urandom(2_500_000)
    obj = made(target, partition, text)
    name = PAGE.to_bytes(4, "big") + (7).to_bytes(4, "big")
    digest = hashlib.sha256(text).digest()
    assert target.functions.call("Digest", name, zone=obj) == digest
    (found,) = target.get_attributes(obj, [AttributeId(PAGE, 7)])
    assert found == AttributeValue(PAGE, 7, digest)


def test_a_jar_is_a_job_too(
    serving: Serving, target: pyosd.Target, kit: Path, partition: PartitionId
) -> None:
    """`osd exec` sends it as it is; in a pool of another engine it is no script."""
    jar = kit_jar(kit, "Count")
    log = made(target, partition, b"a\nb\n")
    assert target.exec(jar, zone=log, pool="j").result() == 2
    zone = f"{log.partition_id}/{log.object_id}"
    words = ["exec", str(jar), "--zone", zone, "--pool", "j", "--wait"]
    done = CliRunner(env={"IOSD_TARGET": serving.url}).invoke(main, words)
    assert done.exit_code == 0, done.output
    with pytest.raises(ScriptError):
        target.exec(jar, zone=log).result()


def test_put_by_the_suffix_of_the_file(serving: Serving, target: pyosd.Target, kit: Path) -> None:
    words = ["fn", "put", str(kit_jar(kit, "Count")), "--name", "by-suffix", "--access", "read"]
    done = CliRunner(env={"IOSD_TARGET": serving.url}).invoke(main, words)
    assert done.exit_code == 0, done.output
    words = ["fn", "show", "by-suffix"]
    done = CliRunner(env={"IOSD_TARGET": serving.url}).invoke(main, words)
    assert "java" in done.output


@pytest.fixture
def functions(target: pyosd.Target, jar: bytes) -> None:
    methods = tuple(BODIES)
    for name, access in (("meek", Access.READ), ("writer", Access.WRITE), ("alone", Access.NONE)):
        target.functions.put(jar, name=name, engine="java", access=access, methods=methods)


@pytest.mark.usefixtures("functions")
def test_the_access_class_binds(target: pyosd.Target, partition: PartitionId) -> None:
    obj = made(target, partition, b"data")
    target.functions.call("writer", b"DATA", zone=obj, method="Beyond")
    assert bytes(target.read(obj, 0, 4)) == b"DATA"
    for name in ("meek", "alone"):
        with pytest.raises(ScriptError, match="OsdException"):
            target.functions.call(name, b"none", zone=obj, method="Beyond")
    with pytest.raises(ScriptError, match="OsdException"):
        target.functions.call("meek", zone=obj, method="Outside")
    assert bytes(target.read(obj, 0, 4)) == b"DATA"


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    ("method", "limits", "error", "reason"),
    [
        ("Spin", {"wall": 0.3}, JobTimeout, 301),
        ("Spin", {"cpu": 0.3}, LimitExceeded, 302),
        ("Hoard", {}, JobOutOfMemory, 303),
        ("Talk", {"output": 1 << 16}, LimitExceeded, 304),
    ],
)
def test_limits(
    target: pyosd.Target, method: str, limits: dict[str, Any], error: type[Exception], reason: int
) -> None:
    chosen = pyosd.Limits(**{"wall": 50.0, "cpu": 50.0, **limits})
    job = target.functions.submit("alone", method=method, limits=chosen)
    with pytest.raises(error):
        job.result()
    assert job.status().reason == reason
    assert target.functions.call("alone", b"next") == b"next"


@pytest.mark.usefixtures("functions")
def test_limits_of_a_call_without_a_record(target: pyosd.Target) -> None:
    for method, limits, error in (
        ("Spin", pyosd.Limits(wall=0.3, cpu=50), JobTimeout),
        ("Hoard", pyosd.Limits(wall=50, cpu=50), JobOutOfMemory),
    ):
        with pytest.raises(error):
            target.functions.call("alone", method=method, limits=limits)
    with pytest.raises(ScriptError, match=r"System.exit\(3\)"):
        target.functions.call("alone", b"\3", method="Exit")
    with pytest.raises(ScriptError, match="Exception"):
        target.functions.call("alone", method="Connect")
    assert target.functions.call("alone", b"next") == b"next"


@pytest.mark.usefixtures("functions")
def test_threads_share_a_result(target: pyosd.Target) -> None:
    limits = pyosd.Limits(procs=4)
    answer = target.functions.call("alone", b"\4", method="Threads", limits=limits)
    assert answer == b"\1\1\1\1"


@pytest.mark.usefixtures("functions")
def test_a_killed_call_ends(target: pyosd.Target) -> None:
    job = target.functions.submit("alone", method="Spin")
    until(lambda: job.status().state is JobState.RUNNING, "it does not run")
    job.kill()
    with pytest.raises(JobCancelled):
        job.result()


def test_what_is_no_jar(target: pyosd.Target, kit: Path) -> None:
    target.functions.put(b"PK\3\4no", name="broken", engine="java")
    with pytest.raises(ScriptError, match="JAR"):
        target.functions.call("broken")
    target.functions.put(kit_jar(kit, "Count"), name="other", methods=("Other",))
    with pytest.raises(ScriptError, match="has no class Other"):
        target.functions.call("other")


def test_a_function_of_another_pool(target: pyosd.Target, jar: bytes) -> None:
    target.functions.put(jar, name="lost", engine="java", pool="default")
    with pytest.raises(OSDError) as refused:
        target.functions.call("lost")
    assert refused.value.asc << 8 | refused.value.ascq == 0x8018
