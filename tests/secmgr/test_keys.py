# SPDX-License-Identifier: GPL-2.0-or-later
"""The key manager over the model of a target: rotation, what is left half done, what a target has lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from iosd_secmgr import process
from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.keys import manager
from iosd_secmgr.keys.derive import Exchange, KeyPair, from_secret, from_seed
from iosd_secmgr.keys.device import Device
from iosd_secmgr.keys.dh_groups import PRIMES
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.keys.manager import KeyManager, new_target
from iosd_secmgr.records import store
from iosd_secmgr.records.audit import Head
from iosd_secmgr.records.database import DatabaseFault, Transaction
from iosd_secmgr.records.store import TargetRecord
from pyosd import errors
from pyosd.secmgr.errors import SecmgrError
from pyosd.security.credentials import Credential
from pyosd.security.master_key import MasterKey
from pyosd.types import ObjectType, ref
from pyosd.wire.capability import Permission
from tests.secmgr.conftest import PARTITION, TARGET, World
from tests.secmgr.model_target import Died
from tests.waiting import DEADLINE_S, until


def credential(world: World, partition_id: int = PARTITION) -> Credential:
    signer = world.keys.signer(TARGET, partition_id)
    kind = ObjectType.PARTITION if partition_id else ObjectType.ROOT
    return signer.own(ref(partition_id), kind, Permission.READ, 0)


def to_remove(world: World) -> Credential:
    """For REMOVE PARTITION, which partition zero's key signs."""
    signer = world.keys.signer(TARGET, 0)
    permissions = Permission.REMOVE | Permission.GBL_REM
    return signer.own(ref(PARTITION), ObjectType.PARTITION, permissions, 0)


def all_good(world: World) -> None:
    """Credentials for whatever the target has are taken by it."""
    for partition_id in (0, *world.model.ids):
        assert world.model.takes(credential(world, partition_id), partition_id), hex(partition_id)


def taken_over(world: World) -> World:
    world.add_target()
    world.keys.set_master("root", TARGET)
    return world


def pi(bits: int) -> int:
    """Its integer part times 2^bits, by Machin's formula."""
    guard = 64
    one = 1 << bits + guard

    def arctan_inverse(x: int) -> int:
        power = total = one // x
        n, sign = 3, -1
        while power:
            power //= x * x
            total += sign * (power // n)
            n, sign = n + 2, -sign
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239)) >> guard


@pytest.mark.parametrize(("group", "bits", "added"), [(14, 2048, 124476), (15, 3072, 1690314)])
def test_primes_are_those_of_the_rfc(group: int, bits: int, added: int) -> None:
    """RFC 3526 gives each prime as digits, and as this formula."""
    formula = (1 << bits) - (1 << bits - 64) - 1 + (pi(bits - 130) + added << 64)
    assert PRIMES[group] == formula


def test_both_halves_of_an_exchange_agree() -> None:
    one, other = Exchange(14), Exchange(14)
    assert one.secret(other.public) == other.secret(one.public)
    assert len(one.secret(other.public)) == 256
    for bad in (0, 1, PRIMES[14] - 1, PRIMES[14]):
        with pytest.raises(ValueError):
            one.secret(bad.to_bytes(256, "big"))


def test_derivation_inverts_the_lowest_bit() -> None:
    from hashlib import sha256
    from hmac import digest

    from pyosd.wire.capability import Algorithm

    parent = KeyPair(bytes(32), bytes(range(32)))
    made = from_seed(parent, b"\0" * 20, Algorithm.HMAC_SHA256)
    assert made.generation == digest(bytes(range(32)), b"\0" * 20, sha256)
    assert made.authentication == digest(bytes(range(32)), b"\0" * 19 + b"\1", sha256)
    short = from_seed(parent, b"\0" * 20, Algorithm.HMAC_SHA1)
    assert short.generation == digest(bytes(range(32)), b"\0" * 20, "sha1") + bytes(12)
    new = from_secret(parent, b"\3" * 8, b"\7" * 20, Algorithm.HMAC_SHA256)
    seed = b"\3" * 7 + b"\2"
    assert new.authentication == digest(bytes(range(32)), seed + b"\7" * 20, sha256)


def test_taking_over_replaces_every_key(world: World) -> None:
    first = world.model.master
    taken_over(world)
    assert world.model.master != first
    all_good(world)
    keys = world.keys.keys(TARGET)
    assert [(key.slot.level, key.slot.partition_id) for key in keys] == [
        (Level.MASTER, 0),
        (Level.ROOT, 0),
        *((Level.PARTITION, each) for each in (0, PARTITION, 0x10001)),
        *((Level.WORKING, each) for each in (0, PARTITION, 0x10001)),
    ]


def test_no_key_is_in_the_files_as_it_is(world: World) -> None:
    taken_over(world)
    world.ask("user.add", name="alice")
    secrets = {world.model.master.authentication, world.model.master.generation}
    secrets |= {part for pair, _ in world.model.keys.values() for part in (pair.authentication,)}
    secrets.add(world.token_file.read_text().strip().encode())
    for file in world.folder.iterdir():
        if file == world.token_file:
            continue
        data = file.read_bytes()
        for secret in secrets:
            assert secret not in data and secret.hex().encode() not in data, file


def test_a_new_partition_gets_its_keys_when_it_is_asked_for(world: World) -> None:
    taken_over(world)
    world.model.ids.append(0x10002)
    all_good(world)
    before = dict(world.model.keys)
    with pytest.raises(Refusal) as caught:
        world.keys.signer(TARGET, 0x10003)
    assert caught.value.code == "absent"
    assert world.model.keys == before  # asking for what is not there harms nobody


def test_credentials_outlast_a_rotation(world: World) -> None:
    taken_over(world)
    old = [credential(world)]
    for _ in range(15):
        world.keys.rotate("root", TARGET, Level.WORKING, PARTITION)
        old.append(credential(world))
    assert all(world.model.takes(each, PARTITION) for each in old)
    assert len({each.capability.key_version for each in old}) == 16
    with pytest.raises(Refusal) as caught:
        world.keys.rotate("root", TARGET, Level.WORKING, PARTITION)
    assert caught.value.code == "too-soon"
    assert all(world.model.takes(each, PARTITION) for each in old)
    world.clock.ahead = 601
    world.keys.rotate("root", TARGET, Level.WORKING, PARTITION)
    assert not world.model.takes(old[0], PARTITION)
    all_good(world)


def test_longer_lifetimes_hold_rotation_up_longer(world: World) -> None:
    taken_over(world)
    world.ask("user.add", name="alice")
    rule = {"user": "alice", "target": TARGET, "object": "*", "permissions": ["READ"]}
    world.ask("acl.add", **rule, lifetime_s=3600)
    for _ in range(15):
        world.keys.rotate("root", TARGET, Level.WORKING, 0)
    world.clock.ahead = 3000
    with pytest.raises(Refusal):
        world.keys.rotate("root", TARGET, Level.WORKING, 0)
    world.clock.ahead = 3601
    assert world.keys.rotate("root", TARGET, Level.WORKING, 0) == [0]


@pytest.mark.parametrize("level", [Level.PARTITION, Level.ROOT])
def test_rotation_above_working_keys(world: World, level: Level) -> None:
    taken_over(world)
    old, removal = credential(world), to_remove(world)
    world.keys.rotate("root", TARGET, level, PARTITION)
    assert not world.model.takes(old, PARTITION)
    assert not world.model.takes(removal, 0)
    all_good(world)


def test_frozen_versions_are_thawed_by_new_partition_keys(world: World) -> None:
    taken_over(world)
    world.keys.freeze("root", TARGET, PARTITION)  # 0
    world.keys.freeze("root", TARGET, PARTITION)  # 0 and 1
    assert world.model.masks[PARTITION] == 3
    world.keys.rotate("root", TARGET, Level.PARTITION, PARTITION)
    all_good(world)
    assert credential(world).capability.key_version == 2
    assert world.model.masks[PARTITION] == 0
    with world.opened.database.transaction() as tx:
        assert not tx.run("SELECT * FROM intents")


def test_freezing_ends_everything_given_before(world: World) -> None:
    taken_over(world)
    old = [credential(world)]
    for _ in range(3):
        world.keys.rotate("root", TARGET, Level.WORKING, PARTITION)
        old.append(credential(world))
    removals = [to_remove(world)]
    world.keys.rotate("root", TARGET, Level.WORKING, 0)
    removals.append(to_remove(world))
    elsewhere = credential(world, 0x10001)
    assert world.keys.freeze("root", TARGET, PARTITION) == [0, 1, 2, 3]
    assert not any(world.model.takes(each, PARTITION) for each in old)
    assert not any(world.model.takes(each, 0) for each in removals)
    assert world.model.takes(elsewhere, 0x10001)
    all_good(world)
    world.clock.ahead = 601
    for _ in range(20):  # thaws what it uses again
        world.clock.ahead += 601
        world.keys.rotate("root", TARGET, Level.WORKING, PARTITION)
        all_good(world)


OPERATIONS: dict[str, Callable[[KeyManager], object]] = {
    "master": lambda keys: keys.set_master("root", TARGET),
    "root": lambda keys: keys.rotate("root", TARGET, Level.ROOT),
    "partition": lambda keys: keys.rotate("root", TARGET, Level.PARTITION, PARTITION),
    "working": lambda keys: keys.rotate("root", TARGET, Level.WORKING, PARTITION),
    "all": lambda keys: keys.rotate("root", TARGET, Level.WORKING),
    "freeze": lambda keys: keys.freeze("root", TARGET, PARTITION),
    "revoke": lambda keys: keys.revoke(
        "root", TARGET, ref(PARTITION, 0x10000), ObjectType.USER_OBJECT
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_death_at_any_step_loses_no_key(tmp_path: Path, name: str) -> None:
    world = World(tmp_path / "secmgr")
    taken_over(world)
    deaths = 0
    for step in range(1, 60):
        world.model.steps, world.model.die_at = 0, step
        world.clock.ahead += 601  # or versions run out
        try:
            OPERATIONS[name](world.keys)
        except Died:
            deaths += 1
        else:
            break
        finally:
            world.model.die_at = None
        world.restart()
        if step % 2:  # finished when it starts, or when somebody is refused before that
            world.keys._look_after_all(fresh=True)
            with world.opened.database.transaction() as tx:
                assert not tx.run("SELECT * FROM intents")
        else:
            for partition_id in (0, *world.model.ids):
                world.keys.refused(TARGET, partition_id)
        all_good(world)
    else:
        pytest.fail("it never came to its end")
    assert deaths >= 2
    all_good(world)
    assert not list(world.opened.audit.verify())
    world.stop()


def test_deaths_while_what_is_left_over_is_finished(world: World) -> None:
    taken_over(world)
    for first in range(1, 12):
        world.model.steps, world.model.die_at = 0, first
        with pytest.raises(Died):
            world.keys.set_master("root", TARGET)
        for again in (1, 2, 3, 5):
            world.restart()
            world.model.steps, world.model.die_at = 0, again
            try:
                world.keys._look_after_all(fresh=True)
            except Died:
                continue
        world.model.die_at = None
        world.restart()
        world.keys._look_after_all(fresh=True)
        all_good(world)


def test_a_formatted_target_is_found_out_by_who_is_refused(world: World) -> None:
    taken_over(world)
    old = credential(world)
    world.model.format()
    world.model.ids.append(PARTITION)
    assert not world.model.takes(old, PARTITION)
    world.keys.refused(TARGET, PARTITION)
    all_good(world)


def test_lost_root_keys_are_set_again_by_the_master_key(world: World) -> None:
    taken_over(world)
    world.model.keys.clear()
    world.keys.refused(TARGET, PARTITION)
    all_good(world)


def test_another_master_key_must_be_imported(world: World) -> None:
    taken_over(world)
    world.model.keys.clear()
    world.model.master = KeyPair(b"\1" * 32, b"\2" * 32)
    with pytest.raises(Refusal, match="import its key again"):
        world.keys.refused(TARGET, PARTITION)
    taken_over(world)
    all_good(world)


def test_a_wrong_master_key_replaces_nothing(world: World) -> None:
    old = MasterKey.parse(world.model.master_file())
    taken_over(world)
    with pytest.raises(Refusal, match="another master key"):
        world.keys.add("root", new_target(TARGET, "iscsi://127.0.0.1/model/1"), old)
    world.keys.set_master("root", TARGET)
    all_good(world)


def test_a_target_that_is_away_stops_nobody_who_has_a_key(world: World) -> None:
    taken_over(world)
    world.model.unreachable = True
    assert world.model.takes(credential(world), PARTITION)
    with pytest.raises(Refusal) as caught:
        world.keys.rotate("root", TARGET, Level.WORKING)
    assert caught.value.code == "target-unreachable"
    world.keys._look_after_all(fresh=True)
    assert TARGET in world.keys.trouble()
    world.model.unreachable = False
    world.keys._look_after_all(fresh=False)
    assert not world.keys.trouble()


def test_keys_rotate_on_schedule(world: World) -> None:
    taken_over(world)
    with world.opened.database.transaction() as tx:
        tx.run("UPDATE targets SET rotate_s = 3600")
    before = credential(world).capability.key_version
    world.keys._look_after_all(fresh=True)
    assert credential(world).capability.key_version == before
    world.clock.ahead = 3601
    world.keys._look_after_all(fresh=False)
    assert credential(world).capability.key_version == before + 1
    world.keys._look_after_all(fresh=False)
    assert credential(world).capability.key_version == before + 1


def test_keys_rotate_again_after_the_clock_was_ahead(world: World) -> None:
    """As that of a host whose battery is empty, until NTP sets it.  Else none rotated for years."""
    taken_over(world)
    with world.opened.database.transaction() as tx:
        tx.run("UPDATE targets SET rotate_s = 3600")
    world.clock.ahead = 10 * 365 * 86400
    world.keys._look_after_all(fresh=True)
    before = credential(world).capability.key_version
    world.clock.ahead = 0
    for _ in range(2):
        world.keys._look_after_all(fresh=False)
        assert credential(world).capability.key_version == before + 1
    world.clock.ahead = 3601
    world.keys._look_after_all(fresh=False)
    assert credential(world).capability.key_version == before + 2


def test_the_end_waits_for_one_target_at_most(world: World) -> None:
    """Each that does not answer takes ten seconds, and systemd kills what does not end."""
    taken_over(world)
    with world.opened.database.transaction() as tx:
        record = store.target(tx, TARGET)
        store.put_target(tx, replace(record, name=f"{TARGET}-2"))
    asked: list[str] = []

    def connect(record: TargetRecord, login: str) -> Device:
        asked.append(record.name)
        world.keys._stop.set()
        raise errors.Unreachable("no answer")

    world.keys._connect = connect
    world.keys._look_after_all(fresh=True)
    assert len(asked) == 1


def test_the_schedule_goes_on_after_the_database_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_over(world)
    with world.opened.database.transaction() as tx:
        tx.run("UPDATE targets SET rotate_s = 3600")
    before = credential(world).capability.key_version
    targets, failed = store.targets, threading.Event()

    def once(tx: Transaction) -> list[TargetRecord]:
        monkeypatch.setattr(store, "targets", targets)
        failed.set()
        raise SecmgrError("the connection to the database was lost")

    monkeypatch.setattr(store, "targets", once)
    monkeypatch.setattr(manager, "TICK_S", 0.001)
    world.clock.ahead = 3601
    world.keys.start()
    assert failed.wait(DEADLINE_S)
    until(lambda: credential(world).capability.key_version > before, "no key was rotated")


def test_a_change_that_cannot_begin_holds_no_credential_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials wait while keys change.  As the change never began, nothing would have ended the wait."""
    taken_over(world)
    target = store.target

    def once(tx: Transaction, name: str) -> TargetRecord:
        monkeypatch.setattr(store, "target", target)
        raise DatabaseFault("no space left")

    monkeypatch.setattr(store, "target", once)
    with pytest.raises(DatabaseFault):
        world.keys.rotate("root", TARGET, Level.ROOT)
    all_good(world)


def test_the_head_of_the_log_is_kept_after_a_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "HEAD_EVERY_S", 0.001)
    audit, kept = world.opened.audit, threading.Event()
    keep_head = audit.keep_head

    def again() -> Head:
        kept.set()
        return keep_head()

    def once() -> Head:
        monkeypatch.setattr(audit, "keep_head", again)
        raise OSError("no space left")

    async def main() -> None:
        keeping = asyncio.create_task(process._keep_heads(audit))
        assert await asyncio.to_thread(kept.wait, DEADLINE_S)
        keeping.cancel()

    monkeypatch.setattr(audit, "keep_head", once)
    asyncio.run(main())


def test_whoever_asks_while_keys_are_void_waits(world: World) -> None:
    """Many threads sign while root keys change: none gets what was void when it was given."""
    taken_over(world)
    stop = threading.Event()
    bad: list[str] = []

    def sign() -> None:
        while not stop.is_set():
            with world.keys._target_lock(TARGET):  # no change is under way
                if not world.model.takes(credential(world), PARTITION):
                    bad.append("void")

    threads = [threading.Thread(target=sign) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        world.keys.rotate("root", TARGET, Level.ROOT)
    stop.set()
    for thread in threads:
        thread.join()
    assert not bad
    all_good(world)
