# SPDX-License-Identifier: GPL-2.0-or-later
"""Partitions, collections and user objects in dictionaries: what the test proxy serves calls from."""

from __future__ import annotations

import hashlib
import mmap
import os
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proxy import TEXTS_AT

from pyosd.osd._query import Query

if TYPE_CHECKING:
    from proxy import Sandbox

ROOT, PARTITION, COLLECTION, USER_OBJECT = 0x01, 0x02, 0x40, 0x80
OK, NOT_FOUND, EXISTS, PERMISSION, NO_SPACE, INVALID, IO, NOT_EMPTY, CONFLICT = range(9)
FIRST_ID = 0x10000
ANSWER_BYTES = 1 << 20
LENGTH_MOST = 1 << 30
IDS_PER_ANSWER = 3  # few, so that continuation is exercised
CODE_PIECE = 16  # the same of code
SHARE_MESSAGE = struct.pack(">HH", 1, 4)
FINISH_KEPT, FINISH_PLACED = 0x100, 0x200


class Refusal(Exception):
    """An answer that is not OK."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class Thing:
    """One object."""

    kind: int
    data: bytearray = field(default_factory=bytearray)
    attributes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)
    files: Files | None = None


class Files:
    """The two files and the version page of a shared object."""

    def __init__(self, thing: Thing, head_bytes: int) -> None:
        self.head_bytes = head_bytes
        self.writable = [os.memfd_create(name) for name in ("head", "tail", "version")]
        os.ftruncate(self.writable[2], 4096)
        self.page = mmap.mmap(self.writable[2], 4096)
        self.head, self.tail, self.page_fd = (
            os.open(f"/proc/self/fd/{fd}", os.O_RDONLY) for fd in self.writable
        )
        self.has_tail = len(thing.data) > head_bytes
        self.update(thing)

    def update(self, thing: Thing) -> None:
        """What the target does around a write: odd, the bytes, the length, even."""
        version = struct.unpack_from("=Q", self.page)[0]
        struct.pack_into("=Q", self.page, 0, version + 1)
        for fd, data in zip(
            self.writable,
            (thing.data[: self.head_bytes], thing.data[self.head_bytes :]),
            strict=False,
        ):
            os.pwrite(fd, data, 0)
        struct.pack_into("=Q", self.page, 8, len(thing.data))
        struct.pack_into("=Q", self.page, 0, version + 2)

    def __del__(self) -> None:
        self.page.close()
        for fd in (*self.writable, self.head, self.tail, self.page_fd):
            os.close(fd)


def entries(attributes: dict[tuple[int, int], bytes]) -> bytes:
    """Type 9 list entries."""
    return b"".join(
        struct.pack(">II6xH", *name, len(value)) + value + bytes(-len(value) % 8)
        for name, value in attributes.items()
    )


class MemoryObjects:
    """Serves every call of proxy_frame.h; fails on anything malformed."""

    def __init__(self, head_bytes: int = 1 << 62, share: bool = True) -> None:
        self.things: dict[tuple[int, int], Thing] = {(0, 0): Thing(ROOT)}
        self.head_bytes, self.share = head_bytes, share
        self.functions: dict[str, tuple[int, bytes]] = {}  # access class and code, by name
        self.entered: list[tuple[int, bytes]] = []
        self.code_calls = 0

    def serve(
        self, sandbox: Sandbox, op: int, pid: int, oid: int, a: int, b: int, body: bytes
    ) -> None:
        handler = getattr(self, f"op_{op}")
        try:
            answer = handler(sandbox, (pid, oid), a, b, body)
        except Refusal as refusal:
            sandbox.answer(refusal.code, body=str(refusal).encode())
            return
        thing = self.things.get((pid, oid))
        if thing and thing.files and 33 <= op <= 37:
            thing.files.update(thing)
        sandbox.answer(0, *(answer or ()))

    def thing(self, ids: tuple[int, int], kind: int | None = None) -> Thing:
        thing = self.things.get(ids)
        if thing is None or (kind is not None and thing.kind != kind):
            raise Refusal(NOT_FOUND, f"no object {ids[0]:#x}/{ids[1]:#x}")
        return thing

    def make(self, ids: tuple[int, int], kind: int) -> None:
        if ids in self.things:
            raise Refusal(EXISTS, "the id is taken")
        self.things[ids] = Thing(kind)

    def free_id(self, pid: int) -> int:
        used = [oid for p, oid in self.things if p == pid]
        return max([FIRST_ID - 1, *used]) + 1

    # -- functions

    def op_42(self, sandbox, ids, a, b, body):  # ENTER
        method, name = body[:a].decode() or "main", body[a:].decode()
        if name not in self.functions:
            raise Refusal(NOT_FOUND, f"{ids[0]:#x}/{ids[1]:#x}: no active function has this name")
        self.entered.append(self.functions[name])
        access, code = self.entered[-1]
        return len(code), access, hashlib.sha256(code).digest() + method.encode()

    def op_43(self, sandbox, ids, a, b, body):  # CODE
        self.code_calls += 1
        return 0, 0, self.entered[-1][1][a : a + CODE_PIECE]

    def op_44(self, sandbox, ids, a, b, body):  # LEAVE
        self.entered.pop()

    # -- the job itself

    def op_1(self, sandbox, ids, a, b, body):  # FINISH
        end = 4 + int.from_bytes(body[:4], "big")
        form, length = ids
        out = sandbox.outcome
        out.exit_code, out.kind, out.kept = a, b & 0xFF, bool(b & FINISH_KEPT)
        out.traceback, out.placed = body[4:end].decode(), bool(b & FINISH_PLACED)
        behind = end + (4 if out.placed else length)
        if form:
            place = int.from_bytes(body[end:behind], "big")
            at_place = sandbox.memory[TEXTS_AT + place : TEXTS_AT + place + length]
            out.result[:] = at_place if out.placed else body[end:behind]
            out.result_encoding = form - 1
        out.line = body[behind:].decode()

    def op_2(self, sandbox, ids, a, b, body):  # PROGRESS
        sandbox.outcome.progress.append((a, body.decode()))

    def op_3(self, sandbox, ids, a, b, body):  # RESULT
        del sandbox.outcome.result[a:]
        sandbox.outcome.result += body
        sandbox.outcome.result_encoding = b

    # -- objects

    def op_16(self, sandbox, ids, a, b, body):  # TYPE
        thing = self.things.get(ids)
        return (thing.kind if thing else 0,)

    def op_17(self, sandbox, ids, a, b, body):  # CREATE PARTITION
        pid = ids[0] or max([FIRST_ID - 1, *(p for p, _ in self.things)]) + 1
        self.make((pid, 0), PARTITION)
        return (pid,)

    def op_18(self, sandbox, ids, a, b, body):  # REMOVE PARTITION
        self.thing((ids[0], 0), PARTITION)
        inside = [key for key in self.things if key[0] == ids[0] and key[1]]
        if inside and not a:
            raise Refusal(NOT_EMPTY, "the partition has objects")
        for key in [*inside, (ids[0], 0)]:
            del self.things[key]

    def op_19(self, sandbox, ids, a, b, body):  # CREATE
        self.thing((ids[0], 0), PARTITION)
        first = ids[1] or self.free_id(ids[0])
        for oid in range(first, first + a):
            self.make((ids[0], oid), USER_OBJECT)
        return (first,)

    def op_20(self, sandbox, ids, a, b, body):  # REMOVE
        thing = self.thing(ids, USER_OBJECT)
        if thing.files:
            struct.pack_into("=Q", thing.files.page, 16, 1)
        del self.things[ids]

    def op_21(self, sandbox, ids, a, b, body):  # CREATE COLLECTION
        self.thing((ids[0], 0), PARTITION)
        oid = ids[1] or self.free_id(ids[0])
        self.make((ids[0], oid), COLLECTION)
        return (oid,)

    def op_22(self, sandbox, ids, a, b, body):  # REMOVE COLLECTION
        if self.thing(ids, COLLECTION).members and not a:
            raise Refusal(NOT_EMPTY, "the collection has members")
        del self.things[ids]

    def op_23(self, sandbox, ids, a, b, body):  # COLLECTION ADD
        self.thing((ids[0], a), USER_OBJECT)
        self.thing(ids, COLLECTION).members.add(a)

    def op_24(self, sandbox, ids, a, b, body):  # COLLECTION DROP
        members = self.thing(ids, COLLECTION).members
        if a not in members:
            raise Refusal(NOT_FOUND, f"no member {a:#x}")
        members.remove(a)

    def op_25(self, sandbox, ids, a, b, body):  # LIST
        if a == 0:
            found = [p for p, oid in self.things if p and not oid]
        elif a == 3:
            found = list(self.thing(ids, COLLECTION).members)
        else:
            kind = USER_OBJECT if a == 1 else COLLECTION
            found = [o for (p, o), t in self.things.items() if p == ids[0] and t.kind == kind]
        wanted = sorted(i for i in found if i >= b)
        after = wanted[IDS_PER_ANSWER] if len(wanted) > IDS_PER_ANSWER else 0
        return after, len(wanted), b"".join(i.to_bytes(8, "big") for i in wanted[:IDS_PER_ANSWER])

    # -- attributes

    def op_26(self, sandbox, ids, a, b, body):  # GETATTR
        thing = self.thing(ids)
        names = [struct.unpack_from(">II", body, at) for at in range(0, len(body), 8)]
        found = b"".join(entries({n: thing.attributes.get(n, b"")}) for n in names)
        if len(found) > ANSWER_BYTES:
            raise Refusal(INVALID, "more than an answer holds")
        return 0, 0, found

    def op_27(self, sandbox, ids, a, b, body):  # SETATTR
        thing, at = self.thing(ids), 0
        while at < len(body):
            page, number, length = struct.unpack_from(">II6xH", body, at)
            thing.attributes[page, number] = body[at + 16 : at + 16 + length]
            at += 16 + length + -length % 8
        assert at == len(body)

    def op_28(self, sandbox, ids, a, b, body):  # LISTATTR
        found = {k: v for k, v in sorted(self.thing(ids).attributes.items()) if v}
        if a != 0xFFFFFFFF:
            found = {k: v for k, v in found.items() if k[0] == a}
        rest = dict(list(found.items())[b:])
        return int(len(rest) > 2), 0, entries(dict(list(rest.items())[:2]))

    def op_29(self, sandbox, ids, a, b, body):  # QUERY
        query = Query.decode(body)
        if ids[1]:
            found = self.thing(ids, COLLECTION).members
        else:
            self.thing(ids, PARTITION)
            found = {
                o for (p, o), t in self.things.items() if p == ids[0] and t.kind == USER_OBJECT
            }
        looked = sorted(oid for oid in found if oid >= a)
        after = looked[IDS_PER_ANSWER] if len(looked) > IDS_PER_ANSWER else 0
        matches = [oid for oid in looked[:IDS_PER_ANSWER] if self.matches((ids[0], oid), query)]
        return after, len(matches), b"".join(oid.to_bytes(8, "big") for oid in matches)

    def matches(self, ids: tuple[int, int], query: Query) -> bool:
        """Bytewise, bounds included; nothing where the attribute is undefined."""
        attributes = self.things[ids].attributes
        if not query.criteria:
            return True
        return (all if query.match_all else any)(
            value and each.minimum <= value and (not each.maximum or value <= each.maximum)
            for each in query.criteria
            for value in [attributes.get((each.page, each.number), b"")]
        )

    def op_30(self, sandbox, ids, a, b, body):  # SWAPATTR
        attributes, name = self.thing(ids, USER_OBJECT).attributes, (a >> 32, a & 0xFFFFFFFF)
        before = attributes.get(name, b"")
        if before == body[:b]:
            attributes[name] = body[b:]
        return before == body[:b], 0, before

    def op_31(self, sandbox, ids, a, b, body):  # ADDATTR
        attributes, name = self.thing(ids, USER_OBJECT).attributes, (a >> 32, a & 0xFFFFFFFF)
        before = attributes.get(name, b"")
        if len(before) not in (0, 8):
            raise Refusal(INVALID, "no number of 8 bytes")
        number = int.from_bytes(before, "big")
        attributes[name] = ((number + b) % (1 << 64)).to_bytes(8, "big")
        return (number,)

    # -- data

    def op_32(self, sandbox, ids, a, b, body):  # READ
        data = bytes(self.thing(ids, USER_OBJECT).data[a : a + b])
        return len(data), 0, data

    def op_33(self, sandbox, ids, a, b, body):  # WRITE
        data = self.thing(ids, USER_OBJECT).data
        if a > LENGTH_MOST:
            raise Refusal(NO_SPACE, "no space")
        data.extend(bytes(max(0, a - len(data))))
        data[a : a + len(body)] = body

    def op_34(self, sandbox, ids, a, b, body):  # APPEND
        data = self.thing(ids, USER_OBJECT).data
        data.extend(body)
        return (len(data) - len(body),)

    def op_35(self, sandbox, ids, a, b, body):  # TRUNCATE
        data = self.thing(ids, USER_OBJECT).data
        data[:] = data[:a].ljust(a, b"\0")

    def op_36(self, sandbox, ids, a, b, body):  # CLEAR
        data = self.thing(ids, USER_OBJECT).data
        data[a : a + b] = bytes(b)

    def op_37(self, sandbox, ids, a, b, body):  # PUNCH
        del self.thing(ids, USER_OBJECT).data[a : a + b]

    def op_38(self, sandbox, ids, a, b, body):  # LENGTH
        return (len(self.thing(ids, USER_OBJECT).data),)

    def op_39(self, sandbox, ids, a, b, body):  # FLUSH
        self.thing(ids, USER_OBJECT)

    def op_40(self, sandbox, ids, a, b, body):  # SHARE
        thing = self.thing(ids, USER_OBJECT)
        if not self.share:
            raise Refusal(PERMISSION, "no descriptors for this object")
        thing.files = files = Files(thing, self.head_bytes)
        fds = [files.head, *([files.tail] if files.has_tail else []), files.page_fd]
        socket.send_fds(sandbox.job, [SHARE_MESSAGE], fds)
        flags = 1 | (2 if files.has_tail else 0)
        return self.head_bytes, len(thing.data), b"", flags, len(fds)

    def op_41(self, sandbox, ids, a, b, body):  # UNSHARE
        pass
