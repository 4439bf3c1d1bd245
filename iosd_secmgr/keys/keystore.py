# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys of targets as records: sealed, each for its own place, and the intents to set new ones.

An intent is stored before a target is asked to set a key. The transaction that stores the key
removes it. After a crash in between, the seed exists, and the same key can be set again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from iosd_secmgr.keys.derive import KEY_LENGTH, KeyPair
from iosd_secmgr.records.database import Row, Transaction, hex_id
from iosd_secmgr.records.sealing import Sealer


class Level(IntEnum):
    """Of keys; from ROOT on the numbers of SET KEY."""

    MASTER = 0
    ROOT = 1
    PARTITION = 2
    WORKING = 3


@dataclass(frozen=True)
class Slot:
    """Place of a key of a target. partition_id: 0 above the partitions, and for partition zero."""

    target: str
    level: Level
    partition_id: int = 0
    version: int = 0

    def __str__(self) -> str:
        return f"{self.target} {self.level.name.lower()} {self.partition_id:#x} {self.version}"

    @property
    def place(self) -> tuple[str, int, str, int]:
        """Its primary key."""
        return self.target, int(self.level), hex_id(self.partition_id), self.version


@dataclass(frozen=True)
class TargetKey:
    """A key that a target has, as far as we know.  retired_ms: when a newer one came, 0: it is current."""

    slot: Slot
    identifier: bytes
    pair: KeyPair = field(repr=False)
    current: bool = True
    made_ms: int = 0
    retired_ms: int = 0


@dataclass(frozen=True)
class Intent:
    """A key that a target was, or was not yet, told to set.  seed: of SET KEY; empty: SET MASTER KEY."""

    slot: Slot
    identifier: bytes
    pair: KeyPair = field(repr=False)
    seed: bytes = field(repr=False, default=b"")


class KeyStore:
    """Seals and opens what it keeps.  All within the caller's transaction."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def _seal(self, kind: str, slot: Slot, pair: KeyPair, seed: bytes = b"") -> bytes:
        generation = pair.generation or bytes(KEY_LENGTH)
        return self._sealer.seal(pair.authentication + generation + seed, f"{kind} {slot}")

    def _open(self, kind: str, slot: Slot, sealed: bytes) -> tuple[KeyPair, bytes]:
        plain = self._sealer.open(bytes(sealed), f"{kind} {slot}")
        pair = KeyPair(plain[:KEY_LENGTH], plain[KEY_LENGTH : 2 * KEY_LENGTH])
        return pair, plain[2 * KEY_LENGTH :]

    # ---- keys ----

    def put(
        self, tx: Transaction, slot: Slot, identifier: bytes, pair: KeyPair, now_ms: int
    ) -> None:
        """Keep a key as the current one; keys below it are no more, and an older one is retired."""
        if slot.level is Level.WORKING:
            tx.run(
                "UPDATE keys SET is_current = 0, retired_ms = ? WHERE target = ? AND level = ? "
                "AND partition_id = ? AND is_current = 1",
                *(now_ms, *slot.place[:3]),
            )
        else:
            self.forget_below(tx, slot)
        tx.run(
            "DELETE FROM keys WHERE target = ? AND level = ? AND partition_id = ? AND version = ?",
            *slot.place,
        )
        tx.run(
            "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, 1, ?, 0)",
            *(*slot.place, identifier, self._seal("key", slot, pair), now_ms),
        )

    def forget(self, tx: Transaction, slot: Slot) -> None:
        """The target has it no more, nor those below."""
        self.forget_below(tx, slot)
        tx.run(
            "DELETE FROM keys WHERE target = ? AND level = ? AND partition_id = ? AND version = ?",
            *slot.place,
        )

    def forget_below(self, tx: Transaction, slot: Slot) -> None:
        """Keys and intents of the levels under one."""
        for table in ("keys", "intents"):
            sql = f"DELETE FROM {table} WHERE target = ? AND level > ?"
            if slot.level is Level.PARTITION:
                tx.run(f"{sql} AND partition_id = ?", *slot.place[:3])
            else:
                tx.run(sql, *slot.place[:2])

    def key(self, tx: Transaction, slot: Slot) -> TargetKey | None:
        """One; None: there is none."""
        rows = tx.run(
            f"SELECT {COLUMNS} FROM keys "
            "WHERE target = ? AND level = ? AND partition_id = ? AND version = ?",
            *slot.place,
        )
        return self._key(rows[0]) if rows else None

    def current(self, tx: Transaction, target: str, partition_id: int) -> TargetKey | None:
        """The working key of a partition that credentials are signed with."""
        rows = tx.run(
            f"SELECT {COLUMNS} FROM keys WHERE target = ? AND level = ? AND partition_id = ? "
            "AND is_current = 1",
            *(target, int(Level.WORKING), hex_id(partition_id)),
        )
        return self._key(rows[0]) if rows else None

    def keys(self, tx: Transaction, target: str) -> list[TargetKey]:
        """All of a target, from the top."""
        rows = tx.run(
            f"SELECT {COLUMNS} FROM keys WHERE target = ? ORDER BY level, partition_id, version",
            target,
        )
        return [self._key(row) for row in rows]

    def _key(self, row: Row) -> TargetKey:
        target, level, pid, version, identifier, sealed, current, made_ms, retired_ms = row
        slot = Slot(target, Level(level), int(pid, 16), version)
        pair, _ = self._open("key", slot, sealed)
        return TargetKey(slot, bytes(identifier), pair, bool(current), made_ms, retired_ms)

    # ---- intents ----

    def intend(self, tx: Transaction, intent: Intent, now_ms: int) -> None:
        """Keep what is about to be done."""
        self.done(tx, intent.slot)
        sealed = self._seal("intent", intent.slot, intent.pair, intent.seed)
        tx.run(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(*intent.slot.place, intent.identifier, sealed, now_ms),
        )

    def done(self, tx: Transaction, slot: Slot) -> None:
        """It was done, or will not be."""
        tx.run(
            "DELETE FROM intents WHERE target = ? AND level = ? AND partition_id = ? AND version = ?",
            *slot.place,
        )

    def intents(self, tx: Transaction, target: str) -> list[Intent]:
        """Those left over, from the top."""
        rows = tx.run(
            "SELECT target, level, partition_id, version, identifier, sealed FROM intents "
            "WHERE target = ? ORDER BY level, partition_id",
            target,
        )
        found = []
        for name, level, pid, version, identifier, sealed in rows:
            slot = Slot(name, Level(level), int(pid, 16), version)
            pair, seed = self._open("intent", slot, sealed)
            found.append(Intent(slot, bytes(identifier), pair, seed))
        return found


COLUMNS = (
    "target, level, partition_id, version, identifier, sealed, is_current, made_ms, retired_ms"
)
