# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit log: credentials issued and refused, and changes; each record has the hash of the one before.

Anybody can check the chain. Its head (number and hash of the last record) is authenticated with the
sealing key in the same transaction. A copy is written to a file at times. So a rewritten chain and
a shortened one are both detected. Against somebody who puts back an older
database and file, keep heads elsewhere: verify() takes one. Secrets are never in it.

The chain is written here because a record must commit in the transaction of the change that it
describes, which a separate log library cannot do.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosd_secmgr.records.database import Database, DatabaseFault, Row, Transaction
from iosd_secmgr.records.sealing import Sealer

FIRST = bytes(32)
HEAD = "audit-head"
HEAD_FILE = "audit.head"
HEAD_EVERY = 64  # records between copies of the head in the file
PAGE = 1000


@dataclass(frozen=True)
class AuditRecord:
    """One record.  seq: from 1 on.  at_ms: since 1970.  detail: fields by name."""

    seq: int
    at_ms: int
    who: str
    what: str
    detail: dict[str, Any]
    hash: bytes


@dataclass(frozen=True)
class Head:
    """The end of a chain."""

    seq: int
    hash: bytes

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read SEQ:HASH.  Raises: ValueError."""
        seq, _, hash_ = text.partition(":")
        found = cls(int(seq), bytes.fromhex(hash_))
        if found.seq < 0 or len(found.hash) != 32:
            raise ValueError(f"'{text}' is not SEQ:HASH")
        return found

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash.hex()}"

    def signed(self, sealer: Sealer) -> bytes:
        """It and its check value."""
        return f"{self} {sealer.mac(b'audit ' + str(self).encode()).hex()}".encode()

    @classmethod
    def verified(cls, text: bytes, sealer: Sealer) -> Head | None:
        """The reverse; None: not ours."""
        words, _, check = text.decode(errors="replace").strip().partition(" ")
        mac = sealer.mac(b"audit " + words.encode()).hex()
        if not hmac.compare_digest(mac.encode(), check.encode(errors="replace")):
            return None
        return cls.parse(words)


def chained(before: bytes, seq: int, at_ms: int, who: str, what: str, detail: str) -> bytes:
    """The hash of a record."""
    text = json.dumps([seq, at_ms, who, what, detail], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(before + text.encode()).digest()


class Audit:
    """The log of one database.  Any thread.

    Args: head_file: where copies of the head go; None: nowhere.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        head_file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._file = head_file
        self._clock = clock

    def append(self, tx: Transaction, who: str, what: str, **detail: Any) -> None:
        """Add a record within a transaction: what it tells of happens with it or not at all."""
        head = self._head(tx)
        seq, at_ms = head.seq + 1, int(self._clock() * 1000)
        text = json.dumps(detail, ensure_ascii=False, sort_keys=True, default=str)
        made = Head(seq, chained(head.hash, seq, at_ms, who, what, text))
        tx.run(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", seq, at_ms, who, what, text, made.hash
        )
        tx.run(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            *(HEAD, made.signed(self._sealer)),
        )
        if self._file is not None and seq % HEAD_EVERY == 0:
            write_head(self._file, head, self._sealer)  # the one before, which is committed

    def add(self, who: str, what: str, **detail: Any) -> None:
        """Add a record by itself."""
        with self._database.transaction() as tx:
            self.append(tx, who, what, **detail)

    def _head(self, tx: Transaction) -> Head:
        rows = tx.run("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        return Head(int(rows[0][0]), bytes(rows[0][1])) if rows else Head(0, FIRST)

    def head(self) -> Head:
        """Present end of the log."""
        with self._database.transaction() as tx:
            return self._head(tx)

    def keep_head(self) -> Head:
        """Copy the head into its file."""
        with self._database.transaction() as tx:  # so only one thread writes the file
            head = self._head(tx)
            if self._file is not None:
                write_head(self._file, head, self._sealer)
        return head

    def entries(
        self,
        after: int = 0,
        most: int = PAGE,
        *,
        who: str = "",
        what: str = "",
        newest: bool = False,
    ) -> list[AuditRecord]:
        """Those with a greater number, in order; newest: the last ones of them."""
        conditions, values = ["seq > ?"], [after]
        texts: list[str] = []
        for column, value in (("who", who), ("what", what)):
            if value:
                conditions.append(f"{column} = ?")
                texts.append(value)
        order = "DESC" if newest else "ASC"
        where = " AND ".join(conditions)
        sql = f"SELECT * FROM audit WHERE {where} ORDER BY seq {order} LIMIT ?"
        with self._database.transaction() as tx:
            rows = tx.run(sql, *values, *texts, most)
        found = [entry_of(row) for row in rows]
        return found[::-1] if newest else found

    def verify(self, known: Head | None = None) -> Iterator[str]:
        """Everything that is wrong, a sentence each; nothing: the log is whole.

        The log as it is at the beginning; others use the database meanwhile.
        known: a head kept elsewhere, which the log must contain.
        """
        with self._database.transaction() as tx:
            end = self._head(tx).seq
            signed = tx.run("SELECT value FROM meta WHERE name = ?", HEAD)
            heads = [("the database's", bytes(signed[0][0]))] if signed else []
            if self._file is not None and self._file.exists():
                heads.append((f"that of {self._file}", self._file.read_bytes()))
        wanted: dict[int, list[tuple[str, bytes]]] = {}
        for name, text in heads:
            head = Head.verified(text, self._sealer)
            if head is None:
                yield f"the head of the log, {name}, was changed"
            else:
                wanted.setdefault(head.seq, []).append((name, head.hash))
        if known is not None:
            wanted.setdefault(known.seq, []).append(("the one you kept", known.hash))
        last = yield from self._verify_chain(end, wanted)
        if last and not signed:
            yield "the head of the log, the database's, was removed"
        yield from self._verify_end(last, wanted, signed)

    def _page(self, after: int, end: int) -> list[Row]:
        with self._database.transaction() as tx:
            return tx.run(
                "SELECT seq, at_ms, who, what, detail, hash FROM audit "
                "WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
                *(after, end, PAGE),
            )

    def _verify_chain(
        self, end: int, wanted: Mapping[int, list[tuple[str, bytes]]]
    ) -> Generator[str, None, int]:
        before, last = FIRST, 0
        while rows := self._page(last, end):
            for seq, at_ms, who, what, detail, hash_ in rows:
                if seq != last + 1:
                    gone = f"{last + 1}" if seq == last + 2 else f"{last + 1} to {seq - 1}"
                    yield f"record {gone} was removed"
                elif chained(before, seq, at_ms, who, what, detail) != bytes(hash_):
                    yield f"record {seq} was changed"
                for name, hash_wanted in wanted.get(seq, ()):
                    if bytes(hash_) != hash_wanted:
                        yield f"record {seq} is another one than {name} head says"
                before, last = bytes(hash_), seq
        return last

    def _verify_end(
        self, last: int, wanted: Mapping[int, list[tuple[str, bytes]]], signed: list[Row]
    ) -> Iterator[str]:
        furthest = max(wanted, default=0)
        if furthest > last:
            yield f"the log was cut: it ends at {last}, and its head says {furthest}"
        database = [seq for seq, names in wanted.items() if any("database" in n for n, _ in names)]
        if signed and database and database[0] < last:
            yield f"records {database[0] + 1} to {last} were added by somebody else"


def write_head(path: Path, head: Head, sealer: Sealer) -> None:
    """Replace the file by one with this head.  Raises: DatabaseFault: as the disk is full."""
    new = path.with_suffix(".new")
    try:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(head.signed(sealer) + b"\n")
            out.flush()
            os.fsync(out.fileno())
        new.replace(path)
    except OSError as error:
        raise DatabaseFault(f"cannot write {path}: {error.strerror}") from error


def entry_of(row: Row) -> AuditRecord:
    """A row of the table."""
    seq, at_ms, who, what, detail, hash_ = row
    return AuditRecord(int(seq), int(at_ms), who, what, json.loads(detail), bytes(hash_))
