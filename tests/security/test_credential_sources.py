# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources of the client's credentials, which are shown nowhere."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pyosd.errors import PermissionDenied
from pyosd.security.credentials import CachingSource, Credential, KeySource, StaticSource, covers
from pyosd.types import ROOT, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.capability import (
    JOB_RIGHTS,
    Capability,
    Need,
    Permission,
    SecurityMethod,
    milliseconds,
)

P, PARTITION, USER = Permission, ObjectType.PARTITION, ObjectType.USER_OBJECT
PID = 0x10000
OBJ = ref(PID, 0x10001)
KEY, SYSTEM_ID = bytes(range(32)), b"i" * 20


def source(**options: float) -> KeySource:
    return KeySource({0: b"0" * 32, PID: KEY}, SYSTEM_ID, **options)  # type: ignore[arg-type]


def test_keys_make_what_is_asked_for() -> None:
    made = source().credential(OBJ, USER, P.READ)
    assert made == Credential.sign(made.capability, KEY, SYSTEM_ID)
    assert covers(made.capability, Need(OBJ, USER, P.READ)) and made.lasts(3000)
    job = source().credential(ref(PID), PARTITION, P.FUN_EXE | JOB_RIGHTS)
    assert job == Credential.sign(job.capability, KEY, SYSTEM_ID)
    root = source().credential(ref(PID), PARTITION, P.CREATE)
    assert root == Credential.sign(root.capability, b"0" * 32, SYSTEM_ID)
    with pytest.raises(PermissionDenied, match="0x10001/0x5 that allows READ"):
        source().credential(ref(PID + 1, 5), USER, P.READ)


@pytest.mark.parametrize(
    ("obj", "kind", "permissions", "covered"),
    [
        (OBJ, USER, P.READ, True),
        (OBJ, USER, P.READ | P.WRITE, False),
        (OBJ, ObjectType.COLLECTION, P.READ, False),
        (ref(PID, 0x10002), USER, P.READ, False),
        (ref(PID + 1, 0x10001), USER, P.READ, False),
    ],
)
def test_covers(obj: ObjectRef, kind: ObjectType, permissions: Permission, covered: bool) -> None:
    capability = Capability(OBJ, USER, P.READ | P.GET_ATTR)
    assert covers(capability, Need(obj, kind, permissions)) is covered


def test_wide_capabilities_cover() -> None:
    whole = Capability(ref(PID), USER, P.READ)
    assert covers(whole, Need(OBJ, USER, P.READ))
    make = Capability(ROOT, PARTITION, P.CREATE)
    assert covers(make, Need(ref(PID), PARTITION, P.CREATE))
    assert not covers(make, Need(ref(PID), PARTITION, P.READ))


def test_file_of_credentials(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    made = source().credential(OBJ, USER, P.READ)
    StaticSource([made]).write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    read = StaticSource.read(path)
    assert read.credential(OBJ, USER, P.READ) == made
    read.refused(made)
    with pytest.raises(PermissionDenied):
        read.credential(OBJ, USER, P.READ)
    path.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        StaticSource.read(path)


@pytest.mark.parametrize("change", ["schema", "key", "capability", "json"])
def test_wrong_file_says_nothing_of_its_secrets(tmp_path: Path, change: str) -> None:
    path = tmp_path / "credentials"
    StaticSource([source().credential(OBJ, USER, P.READ)]).write(path)
    table = json.loads(path.read_text())
    secret = table["credentials"][0]["key"]
    if change == "schema":
        table["schema"] = "iosd.credentials/9"
    elif change != "json":
        table["credentials"][0][change] = secret + "zz"
    path.write_text(json.dumps(table)[: -1 if change == "json" else None])
    with pytest.raises(ValueError) as caught:
        StaticSource.read(path)
    assert secret not in str(caught.value) and caught.value.__cause__ is None


def test_expired_credentials_are_not_handed_out() -> None:
    capability = Capability(OBJ, USER, P.READ, expires_ms=milliseconds(time.time() - 1))
    old = StaticSource([Credential.sign(capability, KEY, SYSTEM_ID)])
    with pytest.raises(PermissionDenied):
        old.credential(OBJ, USER, P.READ)


class Counting:
    """A source that tells how often it was asked."""

    def __init__(self, lifetime: float) -> None:
        self.keys, self.asked = source(lifetime=lifetime), 0
        self.given_back: list[Credential] = []

    def credential(self, obj: ObjectRef, kind: ObjectType, permissions: Permission) -> Credential:
        self.asked += 1
        return self.keys.credential(obj, kind, permissions)

    def refused(self, credential: Credential) -> None:
        self.given_back.append(credential)

    def partitions(self) -> list[PartitionId]:
        return [PartitionId(0x1_0000)]


def test_cache_knows_the_partitions_of_its_source() -> None:
    """A user without a permission on the root lists jobs of these, also through a cache."""
    assert CachingSource(Counting(3600)).partitions() == [0x1_0000]
    assert CachingSource(source()).partitions() is None


def test_cache_keeps_what_lasts() -> None:
    counting = Counting(lifetime=3600)
    cache = CachingSource(counting, most=2)
    both = cache.credential(OBJ, USER, P.READ | P.WRITE)
    assert cache.credential(OBJ, USER, P.READ) == both and counting.asked == 1
    cache.refused(both)
    assert counting.given_back == [both]
    assert cache.credential(OBJ, USER, P.READ) != both and counting.asked == 2
    for at in range(3):  # more than it may keep
        cache.credential(ref(PID, 0x20000 + at), USER, P.READ)
    cache.credential(OBJ, USER, P.READ)
    assert counting.asked == 6


def test_cache_asks_anew_before_the_end() -> None:
    counting = Counting(lifetime=20)
    cache = CachingSource(counting, margin=30)
    cache.credential(OBJ, USER, P.READ)
    cache.credential(OBJ, USER, P.READ)
    assert counting.asked == 2


def test_keys_never_show() -> None:
    made = source().credential(OBJ, USER, P.READ)
    static = StaticSource([made])
    for thing in (made, static, source(), CachingSource(static)):
        assert made.key.hex() not in repr(thing) and repr(made.key) not in repr(thing)
        assert repr(KEY) not in repr(thing)
    assert SecurityMethod.CAPKEY is made.capability.method
