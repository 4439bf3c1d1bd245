# SPDX-License-Identifier: GPL-2.0-or-later
"""Partitions of every security method on one target, all their keys, and the objects that cases need;
and the same world in the words of rights_model.py.

Lives here: keys, objects, sending under a capability of the model.  Not here: which cases there are.
"""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path
from typing import Any

from tests.conformance import wire as w
from tests.conformance.guard import SET_KEY, Guarded, Pair, Proof
from tests.conformance.lu import GOOD, Answer
from tests.security import rights_model as m

TOKEN = bytes(range(16))
CONTENT = bytes(range(1, 65))
LET_IN, LEFT_OUT, ALL_IN = 3, 4, 6
"""Numbers of attributes of 3000_0004h: what cases touch, something else, everything."""
FROZEN_VERSION, OURS_VERSION = 1, 2
FROZEN_MASK = struct.pack(">H", 1 << FROZEN_VERSION)
TAG = 5
APPLICATION = 0x1_0000
BASES = {m.USER: 0, m.PARTITION: 0x3000_0000, m.COLLECTION: 0x6000_0000, m.ROOT: 0x9000_0000}
_KEY_ROOT, _KEY_PARTITION, _KEY_WORKING = 1, 2, 3


def seed_of(pid: int, version: int, former: bool = False) -> bytes:
    """A seed of its own for every key, so that no two keys are equal."""
    return struct.pack(">QHB", pid, version, former).ljust(20, b"s")


class Estate(Guarded):
    """A logical unit, its keys by the model's names, and its objects by what they are for."""

    def __init__(self, transport: Any, master: Path) -> None:
        choose = random.Random(1)
        super().__init__(transport, master, TOKEN, m.ALLDATA, residuals=False, choose=choose)
        self.secrets: dict[str, bytes] = {"nobody": bytes(32)}
        self.pairs: dict[int, Pair] = {}
        self.model = m.World(0, 0, {0: m.Policy(m.CAPKEY)})
        self.things: dict[tuple[int, int], m.Thing] = {}
        self.kept: dict[tuple[object, ...], Any] = {}
        self.lasting: dict[str, Any] = {}
        self.tick()

    def tick(self) -> None:
        """The model's clock; cases expire a minute or more away from it."""
        self.model.now = int(time.time() * 1000)

    # ---- keys ----

    def take_over(self) -> None:
        self.secrets["master"] = self.master.authentication
        self.secrets["root"] = self.root.authentication
        self._set_key(0, _KEY_ROOT, self.master.authentication)
        self._set_keys(0)

    def give_keys(self, pid: int) -> None:
        self._set_keys(pid)

    def _set_keys(self, pid: int) -> None:
        """The partition's key and its working keys; key 0 is set twice: the first is a former one."""
        self.set_key(pid, _KEY_PARTITION, 0, seed_of(pid, 0x100), self.root.authentication)
        pair = self.pairs[pid] = self.root.below(seed_of(pid, 0x100))
        self.secrets[f"partition {pid:x}"] = pair.authentication
        for version in (0, FROZEN_VERSION, OURS_VERSION):
            self.change_key(pid, version, former=version == 0)
        self.change_key(pid, 0)
        self.model.policies.setdefault(pid, m.Policy(m.ALLDATA))

    def change_key(self, pid: int, version: int, former: bool = False) -> None:
        """Set a working key."""
        seed = seed_of(pid, version, former)
        self.set_key(pid, _KEY_WORKING, version, seed, self.pairs[pid].authentication)
        secret = self.pairs[pid].below(seed).authentication
        self.secrets[f"former {pid:x}" if former else f"working {pid:x} {version:x}"] = secret

    def set_key(self, pid: int, which: int, version: int, seed: bytes, secret: bytes) -> None:
        request = self.key_request(pid, which, version, seed)
        kind = m.PARTITION if pid else m.ROOT
        self.is_good(self.send_proved(request, Proof(secret, m.ALLDATA, kind, pid, 0)))

    @staticmethod
    def key_request(pid: int, which: int, version: int, seed: bytes) -> w.Request:
        request = w.Request(SET_KEY, pid, byte11=which).patched(32, seed)
        return request.patched(24, bytes((version,)) + b"keyname")

    def proof(self, request: w.Request) -> Proof:
        """The administrator's: everything, by ALLDATA, with a working key that no case uses."""
        found = super().proof(request)
        zero = request.action in (0x8881, 0x888B, 0x888C, 0x889C) or not request.pid
        name = f"working {0 if zero else request.pid:x} {OURS_VERSION}"
        return found.but(secret=self.secrets[name], version=OURS_VERSION)

    # ---- partitions and their policies ----

    def add_partition(self, method: int) -> int:
        """A partition that demands a method, with lists of attributes and a frozen key."""
        pid = self.partition()
        kinds = (m.USER, m.PARTITION, m.COLLECTION)
        lists = {
            LET_IN: (
                *((BASES[kind] + APPLICATION, 1) for kind in kinds),
                *((BASES[kind] + 5, m.ANY) for kind in kinds),
                (0x1, m.ANY),
                (0x4, m.ANY),
                (0x7, m.ANY),
                (0x3000_0002, m.ANY),
                (0x3000_0004, m.ANY),
            ),
            LEFT_OUT: ((0x2_0000, 7),),
            ALL_IN: ((m.ANY, m.ANY),),
        }
        for number, pairs in lists.items():
            value = b"".join(struct.pack(">II", *pair) for pair in pairs)
            self.set(0, m.ACCESS_PAGE, number, value, pid)
        self.set(0, 0x3000_0005, 5, FROZEN_MASK, pid)
        self.model.policies[pid] = m.Policy(m.ALLDATA, dict(lists), frozenset((FROZEN_VERSION,)))
        self.things[pid, 0] = self.observed(m.Thing(m.PARTITION, pid))
        self.demand(pid, method)
        return pid

    def demand(self, pid: int, method: int) -> None:
        """Set a partition's least method, or with 0 the root's."""
        page = 0x3000_0005 if pid else 0x9000_0005
        self.good(w.Request(0x888F, pid, 0, sets=((page, 1, bytes((method,))),)))
        self.model.policies[pid].method = method

    def observed(self, thing: m.Thing) -> m.Thing:
        """With its created time, as the target says."""
        created = self.number(thing.oid, BASES[thing.kind] + 3, 1, thing.pid)
        return thing.but(created=created)

    def freeze(self) -> None:
        """Freeze partition zero's working key 1."""
        self.good(w.Request(0x888F, 0, 0, sets=((0x9000_0005, 5, FROZEN_MASK),)))
        self.model.policies[0].frozen = frozenset((FROZEN_VERSION,))

    def begin_again(self) -> None:
        """All objects have gone; the keys of root and partition zero are still there."""
        self.kept.clear()
        self.lasting.clear()
        self.partitions.clear()
        self.pairs = {0: self.pairs[0]}
        self.demand(0, self.model.policies[0].method)
        self.freeze()

    # ---- objects ----

    def thing(self, pid: int, oid: int = 0) -> m.Thing:
        return self.things[pid, oid]

    def new_object(self, pid: int, tag: int = 0, content: bytes = CONTENT) -> int:
        oid = self.object(content, pid)
        if tag:
            self.set(oid, 0x5, 0x4000_0001, struct.pack(">I", tag), pid)
        self.things[pid, oid] = self.observed(m.Thing(m.USER, pid, oid, tag))
        return oid

    def new_collection(self, pid: int, *members: int, tag: int = 0) -> int:
        self.supported.add("CREATE COLLECTION")
        cid = self.collection(*members, pid=pid)
        if tag:
            self.set(cid, 0x6000_0005, 0x4000_0001, struct.pack(">I", tag), pid)
        self.things[pid, cid] = self.observed(m.Thing(m.COLLECTION, pid, cid, tag))
        return cid

    def keep(self, make: Any, *key: Any) -> Any:
        """Call `make` once for each key, and again after spend()."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def keep_for_ever(self, key: str, make: Any) -> Any:
        """Call `make` once for each key."""
        if key not in self.lasting:
            self.lasting[key] = make()
        return self.lasting[key]

    def spend(self) -> None:
        """A command was carried out: what it was about may be gone or changed."""
        self.kept.clear()

    # ---- sending under a capability of the model ----

    def proof_of(self, c: m.Capability | None, extensions: tuple[m.Capability, ...] = ()) -> Proof:
        """A capability of the model as the bytes and the key that sign it."""
        if c is None:
            return Proof(bytes(32), 0, m.USER, 0, 0, permissions=0, fields={80: bytes(104)})
        fields = {
            84: c.expires.to_bytes(6, "big"),
            122: c.created.to_bytes(6, "big"),
            136: c.attributes.to_bytes(4, "big"),
            144: c.epoch.to_bytes(2, "big"),
            168: struct.pack(">QQ", c.length, c.start),
        }
        if c.form != 2:
            fields[80] = bytes((c.form,))
        if c.descriptor:
            fields[135] = bytes((c.descriptor << 4,))
        return Proof(
            *(self.secrets[c.key], c.method, c.kind, c.pid, c.oid),
            permissions=int(c.permissions),
            version=c.version,
            tag=c.tag,
            fields=fields,
            tampered=None if c.intact else "request",
            extensions=tuple(self.proof_of(each) for each in extensions),
        )

    def try_it(
        self,
        request: w.Request,
        c: m.Capability | None,
        extensions: tuple[m.Capability, ...] = (),
        room: bool = False,
    ) -> Answer:
        """Send a request under a capability.  room: for an extension capability, also where none is."""
        if extensions or room:
            count = max(1, len(extensions))
            space = struct.pack(">H6x", count) + bytes(136 * count)
            request = request.but(segment=request.segment + w.descriptor(0xFFEE, space))
        return self.send_proved(request, self.proof_of(c, extensions))

    def outcome(self, answer: Answer) -> m.Verdict:
        """The answer in the words of the model."""
        if answer.status == GOOD:
            return m.PERMITTED
        sense = answer.sense
        assert sense is not None
        return m.Verdict(False, "", sense.pointer, sense.code)


def open_estate(transport: Any, master: Path) -> Estate:
    """An estate with the keys of root and partition zero."""
    estate = Estate(transport, master)
    estate.take_over()
    estate.model.epoch = estate.number(0, 0x9000_0005, 0xA, 0)
    estate.freeze()
    estate.things[0, 0] = m.Thing(m.ROOT, 0)
    return estate
