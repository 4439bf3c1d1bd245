# SPDX-License-Identifier: GPL-2.0-or-later
"""The key manager: the keys of all targets, the signing keys of credentials, and key rotation.

Working keys rotate through the 16 versions, so that credentials signed with older ones stay good
until they expire; a version is not used again before that. Changing a key above them makes all
credentials of what is below worthless at once: clients ask for others, which wait here until the
new keys are set.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from iosd_secmgr.access.limits import Buckets
from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.access.rules import DEFAULT_LIFETIME_S
from iosd_secmgr.keys.derive import KeyPair
from iosd_secmgr.keys.device import VERSIONS, Device
from iosd_secmgr.keys.keystore import KeyStore, Level, Slot, TargetKey
from iosd_secmgr.keys.keywork import KeyWork
from iosd_secmgr.keys.signer import CredentialSigner
from iosd_secmgr.records import store
from iosd_secmgr.records.audit import Audit
from iosd_secmgr.records.database import Database, DatabaseFault
from iosd_secmgr.records.sealing import Sealer
from iosd_secmgr.records.store import TargetRecord
from pyosd import errors
from pyosd.security.master_key import MasterKey
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Algorithm, SecurityMethod

LOG = logging.getLogger("iosd.secmgr.keys")

SELF = "secmgr"
"""Name in the log for actions without a request."""
WAIT_S = 15.0  # for somebody else who works on the same target
TICK_S = 5.0
VERIFY_RATE, VERIFY_BURST = 1.0, 20.0  # in vain, for one user who says to be refused
NONCE_REFUSALS = {(0x24, 6), (0x24, 7)}  # whether the command acted is not known
GROUP = 14

Connect = Callable[[TargetRecord, str], Device]
"""Opens a session.  Args: the target, its login opened ("user%secret", or nothing)."""


class KeyManager:
    """Any thread; one at a time works on a target's keys."""

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        audit: Audit,
        connect: Connect,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._audit = audit
        self._connect = connect
        self._clock = clock
        self._keys = KeyStore(sealer)
        self._signers: dict[tuple[str, int], CredentialSigner] = {}  # under _lock
        self._generation = 0  # under _lock; of what _signers was made from
        self._changing: set[str] = (
            set()
        )  # under _lock; targets whose credentials are about to be void
        self._verified = Buckets(VERIFY_RATE, VERIFY_BURST)
        self._trouble: dict[str, str] = {}  # under _lock
        self._lock = threading.Lock()
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- signing ----

    def signer(self, target: str, partition_id: int) -> CredentialSigner:
        """The present signing key of capabilities for a partition.

        A partition we know nothing of is given keys.  Raises: Refusal: there is no such target or
        partition, or the target is needed and cannot be reached.
        """
        with self._lock:
            found, changing = self._signers.get((target, partition_id)), target in self._changing
            generation = self._generation
        if changing:
            with self._target_lock(target):
                return self.signer(target, partition_id)
        if found is not None:
            return found
        with self._database.transaction() as tx:
            record = store.target(tx, target)
            key = self._keys.current(tx, target, partition_id)
        if key is None:
            with self._work(target, SELF) as work:
                work.complete_partition(partition_id)
            with self._lock:
                generation = self._generation
            with self._database.transaction() as tx:
                key = self._keys.current(tx, target, partition_id)
        if key is None:
            raise Refusal("not-ready", f"partition {partition_id:#x} has no key yet")
        return self._remember(record, key, generation)

    def _remember(self, record: TargetRecord, key: TargetKey, generation: int) -> CredentialSigner:
        """Keep it until keys change; not if they did since it was looked up."""
        slot = key.slot
        signer = CredentialSigner(
            key.pair.authentication,
            slot.version,
            record.system_id,
            record.algorithm,
            record.method,
        )
        with self._lock:
            if generation == self._generation:
                self._signers[record.name, slot.partition_id] = signer
        return signer

    def refused(self, target: str, partition_id: int, user: str = SELF) -> None:
        """A user says that the target did not take our credential: look whether it has our key."""
        if self._verified.empty(user):
            return
        with self._work(target, SELF) as work:
            in_vain = work.verify(partition_id)
        if in_vain:
            self._verified.take(user)
        else:
            LOG.warning(
                "%s had lost its keys of partition %#x: they were set again", target, partition_id
            )

    def look_at_tag(self, target: str, obj: ObjectRef, object_type: ObjectType) -> None:
        """The object's policy access tag. The object may have been removed and created again."""
        with self._work(target, SELF) as work:
            tag = work.tag(obj, object_type)
            with self._database.transaction() as tx:
                store.set_tag(tx, target, obj, tag)

    # ---- what administrators ask for ----

    def add(self, who: str, record: TargetRecord, master: MasterKey, login: str = "") -> None:
        """Take a target with its master key; what we knew of its keys before is forgotten.

        Raises: Refusal: the target has another master key; nothing is changed then.
        """
        name, pair = record.name, KeyPair(master.authentication, master.generation)
        sealed = self._sealer.seal(login.encode(), f"login {name}") if login else b""
        record = replace(record, system_id=master.system_id, login=sealed, made_ms=self._now_ms())
        with self._target_lock(name):
            with self._session(record, who) as work:
                work.check_master(pair, GROUP)
            with self._database.transaction() as tx:
                store.put_target(tx, record)
                slot = Slot(name, Level.MASTER)
                self._keys.put(tx, slot, bytes(7), pair, self._now_ms())
                self._keys.done(tx, slot)
                self._audit.append(tx, who, "key.import", target=name, url=record.url)
        self._forget_signers(name)

    def set_master(self, who: str, target: str, group: int = GROUP) -> None:
        """SET MASTER KEY: one that is nowhere else; and all keys below."""
        with self._work(target, who, voiding=True) as work:
            work.set_master(group)
            work.complete()

    def rotate(
        self, who: str, target: str, level: Level, partition_id: int | None = None
    ) -> list[int]:
        """New keys.

        level: WORKING: of one partition or, with None, of all, partition zero among them; no
        credential is harmed.  PARTITION, ROOT: and all below it.  PARTITION of one: also partition
        zero's, which has signed CREATE PARTITION and REMOVE PARTITION of it.
        Returns: partitions whose working keys are new.
        """
        if level is Level.MASTER:
            raise Refusal("bad-request", "set the master key with its own command")
        with self._work(target, who, voiding=level is not Level.WORKING) as work:
            if level is Level.ROOT:
                work.set_key(Slot(target, Level.ROOT))
                work.complete()
                return [0, *work.partitions()]
            if partition_id is None:
                chosen = [0, *work.partitions()]
            else:
                chosen = _signing(partition_id) if level is Level.PARTITION else [partition_id]
            for each in chosen:
                if level is Level.PARTITION:
                    work.set_key(Slot(target, Level.PARTITION, each))
                    work.complete_partition(each)
                else:
                    self._rotate_working(work, target, each)
            return chosen

    def _rotate_working(self, work: KeyWork, target: str, partition_id: int) -> None:
        with self._database.transaction() as tx:
            current = self._keys.current(tx, target, partition_id)
            if current is None:
                version = None
            else:
                version = (current.slot.version + 1) % VERSIONS
                following = self._keys.key(tx, Slot(target, Level.WORKING, partition_id, version))
                longest = tx.run("SELECT MAX(lifetime_s) FROM rules")[0][0] or 0
        if version is None:
            work.complete_partition(partition_id)
            return
        free_ms = following.retired_ms + max(longest, DEFAULT_LIFETIME_S) * 1000 if following else 0
        if free_ms > self._now_ms():
            raise Refusal(
                "too-soon",
                f"credentials signed with version {version} may be good for "
                f"{(free_ms - self._now_ms()) // 1000} s more: freeze them, or rotate the partition key",
            )
        work.rotate_working(partition_id, version)

    def open_to_all(self, who: str, target: str) -> list[int]:
        """Partitions of a target that demand no capabilities, so that no rule binds anybody there; 0: the
        root, and partition zero.
        """
        with self._work(target, who) as work:
            return work.open_to_all()

    def forget(self, who: str, target: str) -> None:
        """Lose a target with its keys and the rules about it."""
        with self._target_lock(target), self._database.transaction() as tx:
            store.remove_target(tx, target)
            self._audit.append(tx, who, "key.forget", target=target)
        self._forget_signers(target)

    def freeze(self, who: str, target: str, partition_id: int) -> list[int]:
        """Make all credentials given so far for a partition worthless.

        It gets a new working key, and the others are frozen.  So does partition zero: its keys have
        signed CREATE PARTITION and REMOVE PARTITION of it.

        Returns: frozen versions of the partition's own key.
        """
        with self._work(target, who, voiding=True) as work:
            frozen = [self._freeze(work, who, target, each) for each in _signing(partition_id)]
            return frozen[0]

    def _freeze(self, work: KeyWork, who: str, target: str, partition_id: int) -> list[int]:
        with self._database.transaction() as tx:
            current = self._keys.current(tx, target, partition_id)
            known = [
                key.slot.version
                for key in self._keys.keys(tx, target)
                if key.slot.level is Level.WORKING and key.slot.partition_id == partition_id
            ]
        # No grace: nothing that was signed before shall be good for anything.
        version = (current.slot.version + 1) % VERSIONS if current else 0
        work.rotate_working(partition_id, version)
        frozen = [each for each in known if each != version]
        work.freeze(partition_id, frozen)
        self._audit.add(who, "key.freeze", target=target, partition=partition_id, versions=frozen)
        return frozen

    def revoke(self, who: str, target: str, obj: ObjectRef, object_type: ObjectType) -> int:
        """Give an object another policy access tag: credentials for it that have a tag are void.

        Returns: the new tag.
        """
        with self._work(target, who) as work:
            with self._database.transaction() as tx:
                tag = store.next_tag(tx, target, obj)
                # First, so that whatever is given from now on is for the new one.
                store.set_tag(tx, target, obj, tag)
                self._audit.append(tx, who, "acl.revoke", target=target, object=str(obj), tag=tag)
            work.set_tag(obj, object_type, tag)
            return tag

    def keys(self, target: str) -> list[TargetKey]:
        """Our records of a target.  Raises: Refusal: nothing."""
        with self._database.transaction() as tx:
            store.target(tx, target)
            return self._keys.keys(tx, target)

    def trouble(self) -> dict[str, str]:
        """Targets whose keys could not be checked or rotated lately, and why."""
        with self._lock:
            return dict(self._trouble)

    # ---- by itself ----

    def start(self) -> None:
        """Finish what was left half done, then rotate on schedule, in a thread."""
        self._thread = threading.Thread(target=self._run, name="iosd-keys")
        self._thread.start()

    def close(self) -> None:
        """End that thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        fresh = True
        while not self._stop.wait(0 if fresh else TICK_S):
            try:
                self._look_after_all(fresh)
                fresh = False
            except DatabaseFault as error:  # it may be back the next time
                LOG.warning("the keys of all targets wait: %s", error)
            except Exception:
                LOG.exception("the keys of all targets wait")

    def _look_after_all(self, fresh: bool) -> None:
        with self._database.transaction() as tx:
            records = store.targets(tx)
        for record in records:
            if self._stop.is_set():  # one that does not answer takes ten seconds
                return
            self._look_after(record, fresh)

    def _look_after(self, record: TargetRecord, fresh: bool) -> None:
        again = record.name in self.trouble()
        try:
            if fresh or again:
                with self._work(record.name, SELF) as work:
                    work.recover()
            for partition_id in self._due(record):
                with self._work(record.name, SELF) as work:
                    self._rotate_working(work, record.name, partition_id)
        except Exception as error:  # the next target has its own
            if not isinstance(error, (Refusal, errors.OSDError, DatabaseFault)):
                LOG.exception("our fault, keys of %s", record.name)
            elif not again:
                LOG.warning("keys of %s: %s", record.name, error)
            with self._lock:
                self._trouble[record.name] = str(error)
        else:
            with self._lock:
                self._trouble.pop(record.name, None)

    def _due(self, record: TargetRecord) -> list[int]:
        if not record.rotate_s:
            return []
        # A key from further ahead than a period was made while the clock was wrong.
        old, ahead = (self._now_ms() + step * record.rotate_s * 1000 for step in (-1, 1))
        with self._database.transaction() as tx:
            return [
                key.slot.partition_id
                for key in self._keys.keys(tx, record.name)
                if key.slot.level is Level.WORKING
                and key.current
                and not old < key.made_ms <= ahead
            ]

    # ---- within ----

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    @contextlib.contextmanager
    def _target_lock(self, target: str) -> Iterator[None]:
        with self._lock:
            lock = self._locks[target]
        if not lock.acquire(timeout=WAIT_S):
            raise Refusal("not-ready", f"keys of {target} are being changed: try again")
        try:
            yield
        finally:
            lock.release()

    def _forget_signers(self, target: str) -> None:
        with self._lock:
            self._generation += 1
            for place in [each for each in self._signers if each[0] == target]:
                del self._signers[place]

    @contextlib.contextmanager
    def _work(self, target: str, who: str, *, voiding: bool = False) -> Iterator[KeyWork]:
        """Work on a target's keys; what was left half done is finished first.

        voiding: credentials given so far will be worthless: no more are given meanwhile.
        """
        with self._target_lock(target):
            try:
                if voiding:
                    with self._lock:
                        self._changing.add(target)
                with self._database.transaction() as tx:
                    record = store.target(tx, target)
                    left = self._keys.intents(tx, target)
                with self._session(record, who) as work:
                    if left:
                        work.recover()
                    yield work
            finally:
                self._forget_signers(target)
                with self._lock:
                    self._changing.discard(target)

    @contextlib.contextmanager
    def _session(self, record: TargetRecord, who: str) -> Iterator[KeyWork]:
        """A session with the target, whose errors are refusals of ours."""
        login = b""
        if record.login:
            login = self._sealer.open(record.login, f"login {record.name}")
        device: Device | None = None
        try:
            device = self._connect(record, login.decode())
            parts = (self._database, self._keys, self._audit, who, self._clock)
            yield KeyWork(record, device, *parts)
        except errors.Unreachable as error:
            raise Refusal("target-unreachable", f"{record.url}: {error}") from None
        except errors.NotFound as error:
            raise Refusal("absent", str(error)) from None
        except errors.OSDError as error:
            unknown = (error.asc, error.ascq) in NONCE_REFUSALS
            code = "target-unreachable" if unknown else "conflict"
            raise Refusal(code, f"{record.name}: {error}") from None
        finally:
            if device is not None:
                device.close()


def _signing(partition_id: int) -> list[int]:
    """Partitions whose working keys sign credentials for a partition."""
    return list(dict.fromkeys((partition_id, 0)))


def new_target(
    name: str,
    url: str,
    algorithm: Algorithm = Algorithm.HMAC_SHA256,
    method: SecurityMethod = SecurityMethod.CAPKEY,
    rotate_s: int = 0,
) -> TargetRecord:
    """The description of a target that is about to be added."""
    return TargetRecord(name, url, b"", algorithm, method, rotate_s)
