# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport inside a sandbox: `_osdcore`, built into the interpreter there (sandbox/osdcore_*.c).

Large reads and maps do not go through the proxy. It passes read-only descriptors of an object's
head and tail files, and a page with a counter. The counter is odd during a write.  A read that
finds the same even number before and after is as atomic as a READ. After three failed attempts the
read goes through the proxy.
"""

from __future__ import annotations

import importlib
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, cast, overload

from ._errors import ANSWERS, NotFound, OSDError
from ._transport import Call, Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["SandboxTransport", "core"]

SHARE_ABOVE = 64 << 10  # smaller reads are cheaper as calls
SHARE_AT_ONCE = 256 << 10  # a longer read means that more will follow
SHARES_MAX = 64  # two descriptors each, of the 256 a job may hold
PAGE_BYTES = 4096
ENTER = int(Call.ENTER)
NO_ACCESS = 0  # a function's access class
ATTEMPTS = 3
COUNTER, LENGTH, REMOVED, LAYOUT = range(4)  # 64-bit words of the version page, native order


class Core(Protocol):
    """Names of the module _osdcore."""

    call: Callable[..., tuple[int, int, bytes]]
    write_long: Callable[[int, int, int, int, ReadableBuffer, int], tuple[int, int]]
    place: Callable[[memoryview], bool]
    readinto: Callable[[int, int, int, WriteableBuffer], int]
    pread: Callable[[memoryview, int, int, int, int, int, WriteableBuffer], int]
    share: Callable[[int, int], tuple[int, int, int, int, int]]
    Map: type
    register: Callable[[tuple[type[BaseException], ...]], None]
    script: Callable[[bool], None]
    changed: Callable[..., list[int]]
    restore: Callable[[dict[Any, Any], tuple[Any, ...]], None]
    watch: Callable[[int, tuple[object, ...]], None]
    altered: Callable[[int], list[object]]
    reach: Callable[[list[Any], tuple[type, ...]], dict[int, list[Any]]]
    on_end: Callable[..., None]


core = cast("Core", importlib.import_module("_osdcore"))
core.register(ANSWERS)


class OutOfDate(Exception):
    """The descriptors are not, or no longer, all of the object."""


class Shared:
    """One object's descriptors; closed with the last reference, which may be a map's.

    ids, released: where to note then that the proxy may forget them (not told from here: this may
    run in the middle of another call).
    """

    def __init__(self, ids: tuple[int, int], released: list[tuple[int, int]]) -> None:
        self.head_fd = self.tail_fd = -1
        self.head_bytes, _, self.head_fd, self.tail_fd, version_fd = core.share(*ids)
        self.ids, self.released = ids, released
        try:
            page = core.Map(version_fd, PAGE_BYTES, -1, PAGE_BYTES)
        finally:
            os.close(version_fd)
        self.words = memoryview(page).cast("B").cast("Q")
        self.layout = self.words[LAYOUT]

    def __del__(self) -> None:
        for fd in (self.head_fd, self.tail_fd):
            if fd >= 0:
                os.close(fd)
        if hasattr(self, "ids"):
            self.released.append(self.ids)

    def readinto(self, offset: int, buffer: memoryview) -> int | None:
        """Read; None where no stable moment was found."""
        words = self.words
        for _ in range(ATTEMPTS):
            before = words[COUNTER]
            if before & 1:
                continue
            self.check()
            count = max(0, min(len(buffer), words[LENGTH] - offset))
            self._check_covered(offset + count)
            self._fill(offset, buffer[:count])
            if words[COUNTER] == before:
                return count
        return None

    def read_now(self, offset: int, buffer: memoryview) -> int:
        """The usual case of readinto(), in one step; -1: it is another."""
        head_fd, tail_fd, head_bytes = self.head_fd, self.tail_fd, self.head_bytes
        return core.pread(self.words, self.layout, head_fd, head_bytes, tail_fd, offset, buffer)

    def check(self) -> None:
        """Raise NotFound or OutOfDate where these files are not the object any more."""
        if self.words[REMOVED]:
            raise NotFound("the object has been removed")
        if self.words[LAYOUT] != self.layout:
            raise OutOfDate

    def _check_covered(self, end: int) -> None:
        if (end > 0 and self.head_fd < 0) or (end > self.head_bytes and self.tail_fd < 0):
            raise OutOfDate

    def _fill(self, offset: int, buffer: memoryview) -> None:
        """The bytes of the files, then zeros if the files end before the object."""
        in_head = max(0, min(len(buffer), self.head_bytes - offset))
        for fd, at, part in (
            (self.head_fd, offset, buffer[:in_head]),
            (self.tail_fd, max(0, offset - self.head_bytes), buffer[in_head:]),
        ):
            while part:
                count = os.preadv(fd, [part], at)
                if not count:
                    part[:] = bytes(len(part))
                    break
                part, at = part[count:], at + count

    def map(self) -> LiveMap:
        """Map all there is now."""
        self.check()
        counter, length = self.words[COUNTER], self.words[LENGTH]
        self._check_covered(length)
        live = LiveMap(self.head_fd, self.head_bytes, self.tail_fd, length)
        live.shared, live.counter = self, counter
        return live


class LiveMap(core.Map):  # type: ignore[name-defined,misc]
    """The object's own bytes, in place: what others write shows."""

    shared: Shared
    counter: int

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> int | bytes:
        found = memoryview(self)[key]
        return bytes(found) if isinstance(found, memoryview) else found

    def changed(self) -> bool:
        """Whether somebody has written since, or is writing."""
        self.shared.check()
        now = self.shared.words[COUNTER]
        return now != self.counter or now % 2 == 1


class SandboxTransport:
    """Calls go through shared memory to the job's proxy."""

    def __init__(self, context: Context | None = None) -> None:
        self._context = context or Context()
        self._shares: OrderedDict[tuple[int, int], Shared] = OrderedDict()
        self._large: set[tuple[int, int]] = set()
        self._unshareable: set[tuple[int, int]] = set()
        self._released: list[tuple[int, int]] = []
        self._accesses: list[int] = []
        self._blind = False

    @property
    def context(self) -> Context:
        return self._context

    def call(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        a: int = 0,
        b: int = 0,
        body: ReadableBuffer = b"",
    ) -> tuple[int, int, bytes]:
        answer = core.call(op, partition_id, object_id, a, b, body)
        if op >= ENTER:
            self._follow(op, answer[1])
        return answer

    def _follow(self, op: int, access: int) -> None:
        """Note which functions run: one without access reads nothing through descriptors either."""
        if op == ENTER:
            self._accesses.append(access)
        elif op == Call.LEAVE:
            self._accesses.pop()
        self._blind = NO_ACCESS in self._accesses

    def write_long(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        offset: int,
        data: ReadableBuffer,
        b: int = 0,
    ) -> tuple[int, int]:
        return core.write_long(op, partition_id, object_id, offset, data, b)

    def readinto(
        self, partition_id: int, object_id: int, offset: int, buffer: WriteableBuffer
    ) -> int:
        view, ids = memoryview(buffer), (partition_id, object_id)
        if view.nbytes <= SHARE_ABOVE or self._blind:
            return core.readinto(partition_id, object_id, offset, view)
        shared = self._shares.get(ids)
        if shared is not None:
            self._shares.move_to_end(ids)
            count = shared.read_now(offset, view)
            if count >= 0:
                return count
        del shared  # its files may have been replaced
        if ids in self._large or view.nbytes > SHARE_AT_ONCE:
            found = self._read_shared(ids, offset, view.cast("B"))
            if found is not None:
                return found
        count = core.readinto(partition_id, object_id, offset, view)
        if count > SHARE_ABOVE:  # there is much to read: the next read is worth descriptors
            self._large.add(ids)
        return count

    def block(self, partition_id: int, object_id: int, offset: int, size: int) -> memoryview | None:
        del partition_id, object_id, offset, size
        return None

    def map(self, partition_id: int, object_id: int) -> LiveMap | None:
        if self._blind:
            return None
        for _ in range(2):
            shared = self._shared((partition_id, object_id))
            if shared is None:
                return None
            try:
                return shared.map()
            except OutOfDate:
                del self._shares[partition_id, object_id], shared
            except (OSError, ValueError):
                return None  # an odd head size, or no address space: a copy will do
        return None

    def _read_shared(self, ids: tuple[int, int], offset: int, view: memoryview) -> int | None:
        """None: has to be asked for by a call."""
        for _ in range(2):
            shared = self._shared(ids)
            if shared is None:
                return None
            count = shared.read_now(offset, view)
            if count >= 0:
                return count
            try:
                return shared.readinto(offset, view)
            except OutOfDate:
                del self._shares[ids], shared
        return None

    def _shared(self, ids: tuple[int, int]) -> Shared | None:
        shared = self._shares.get(ids)
        if shared is not None:
            self._shares.move_to_end(ids)
            return shared
        if ids in self._unshareable:
            return None
        while len(self._shares) >= SHARES_MAX:
            self._shares.popitem(last=False)
        while self._released:
            core.call(Call.UNSHARE, *self._released.pop())
        try:
            shared = self._shares[ids] = Shared(ids, self._released)
        except NotFound:
            raise
        except (OSDError, OSError):  # not the whole object is ours to read, or too many are open
            self._unshareable.add(ids)
        return shared
