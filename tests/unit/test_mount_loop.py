# SPDX-License-Identifier: GPL-2.0-or-later
"""The event loop of a mount, and what its core answers itself.  A socket stands for /dev/fuse."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Iterator
from contextvars import Context, ContextVar
from struct import Struct
from typing import Any, cast

import pytest

from pyosd import _core, errors
from pyosd.fronts.osdfs import kernel
from pyosd.fronts.osdfs.file_page import Defaults, Facts
from pyosd.fronts.osdfs.files import FileOperations
from pyosd.fronts.osdfs.kernel import KernelRequest, Op, Stat, WithErrno
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.mounted import CacheTimes, Mounted
from pyosd.fronts.osdfs.nodes import AllNames, Node, NodeTable, UnstoredFile
from pyosd.fronts.osdfs.run import close_all
from pyosd.fronts.osdfs.server import KernelServer, MountLoop, _Resumption
from pyosd.fronts.osdfs.writer import Writer
from pyosd.types import ref

IN, OUT = Struct("=IIQQIIIHH"), Struct("=IiQ")
KEPT = 3600.0
"""Seconds.  Longer than any test takes."""
NEW_MOST = 1000
HANDLED = sum(1 << each for each in Op)


class Kernel:
    """The kernel's side, and the nodes of ours."""

    def __init__(self) -> None:
        self.theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for each in (self.theirs, ours):
            each.setblocking(False)
        self.sockets = (self.theirs, ours, *socket.socketpair())
        facts = Facts(Stat(0o40755, uid=1, gid=2), xattrs=b"")
        self.nodes = NodeTable(ref(65536), facts)
        self.device = _core.KernelDevice(
            ours.fileno(),
            self.sockets[2].fileno(),
            kernel.BUFFER,
            NEW_MOST,
            HANDLED,
            KEPT,
            self.nodes.by_id,
            KernelRequest,
        )

    def known(self, **values: Any) -> Node:
        """A file whose attributes are those of a moment ago."""
        stat = Stat(0o100644, 1000, 2, 3, 4, 0, -1, 2_000_000_003, 10**9)
        facts, parent = Facts(stat, xattrs=b""), self.nodes.root
        node = self.nodes.found(
            parent, b"a", ref(65536, 65537), is_directory=False, facts=facts, since=0
        )
        self.nodes.inode(node)
        for name, value in values.items():
            setattr(node, name, value)
        return node

    def ask(self, op: int, node: int, body: bytes = b"") -> tuple[int, bytes] | KernelRequest:
        """What is answered, errno and reply, or the request that is handed out."""
        length = IN.size + len(body)
        self.theirs.send(IN.pack(length, op, 7, node, 8, 9, 10, 0, 0) + body)
        request = self.device.next(0)
        if request is not None:
            assert isinstance(request, KernelRequest)
            assert (request.op, request.unique, request.node) == (op, 7, node)
            assert (request.uid, request.gid, request.pid) == (8, 9, 10)
            assert request.body == body
            return request
        data = self.theirs.recv(1000)
        length, number, unique = OUT.unpack_from(data)
        assert (length, unique) == (len(data), 7)
        return -number, data[OUT.size :]


@pytest.fixture
def fuse() -> Iterator[Kernel]:
    found = Kernel()
    yield found
    for each in found.sockets:
        each.close()


def ask_xattr(fuse: Kernel, node: Node, name: bytes) -> tuple[int, bytes] | KernelRequest:
    return fuse.ask(Op.GETXATTR, node.id, kernel.GETXATTR_IN.pack(0, 0) + name + b"\0")


# ---- answers of the core -------------------------------------------------------------------------


def test_attributes_are_those_that_python_would_send(fuse: Kernel) -> None:
    began = time.monotonic()
    node = fuse.known()
    answer = fuse.ask(Op.GETATTR, node.id)
    took = time.monotonic() - began
    assert not isinstance(answer, KernelRequest)
    number, reply = answer
    assert (number, reply[16:]) == (0, kernel.attr_out(65537, node.facts.stat, 0)[16:])
    seconds, parts, _ = Struct("=QII").unpack_from(reply)
    assert KEPT - took - 1e-6 < seconds + parts / 1e9 <= KEPT
    assert node.told == node.facts.stat.shown


def test_attributes_of_a_new_file_are_known(fuse: Kernel) -> None:
    node = fuse.known(new=UnstoredFile(cuts=False), asked=0.0)
    assert fuse.ask(Op.GETATTR, node.id) == (0, kernel.attr_out(65537, node.facts.stat, KEPT))
    node.changed = 1
    assert fuse.ask(Op.GETATTR, node.id) == (0, kernel.attr_out(65537, node.facts.stat, 0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("asked", 0.0),
        ("asked", time.monotonic() - KEPT),
        ("shown", object()),
        ("writer", object.__new__(Writer)),
        ("inode", 0),
    ],
    ids=["not asked", "asked long ago", "shown", "writer", "inode"],
)
def test_attributes_that_python_must_answer_for(fuse: Kernel, name: str, value: object) -> None:
    node = fuse.known(**{name: value})
    assert isinstance(fuse.ask(Op.GETATTR, node.id), KernelRequest)
    assert isinstance(fuse.ask(Op.GETATTR, 99), KernelRequest)


def test_extended_attributes_that_are_absent(fuse: Kernel) -> None:
    node, absent = fuse.known(), (errno.ENODATA, b"")
    assert ask_xattr(fuse, node, b"user.a") == absent
    assert isinstance(ask_xattr(fuse, node, b"system.posix_acl_access"), KernelRequest)
    for value in (b"some", None):
        node.facts.xattrs = value
        assert isinstance(ask_xattr(fuse, node, b"security.capability"), KernelRequest)
    node.fresh = True
    assert ask_xattr(fuse, node, b"security.capability") == absent
    assert isinstance(ask_xattr(fuse, node, b"user.a"), KernelRequest)
    node.new = UnstoredFile(cuts=False)
    assert ask_xattr(fuse, node, b"user.a") == absent


def test_absent_names(fuse: Kernel) -> None:
    root = fuse.nodes.root
    assert isinstance(fuse.ask(Op.LOOKUP, root.id, b"b\0"), KernelRequest)
    root.names = AllNames({b"a"}, time.monotonic() + KEPT)
    assert fuse.ask(Op.LOOKUP, root.id, b"b\0") == (errno.ENOENT, b"")
    for name in (b"a", b".jobs", b"b" * 256):
        assert isinstance(fuse.ask(Op.LOOKUP, root.id, name + b"\0"), KernelRequest)
    root.names = AllNames({b"a"}, time.monotonic())
    assert isinstance(fuse.ask(Op.LOOKUP, root.id, b"b\0"), KernelRequest)


def test_times_that_only_python_can_tell(fuse: Kernel) -> None:
    node = fuse.known()
    for name in ("modified", "accessed"):
        setattr(node.facts.stat, name, 10**10 * 10**9)  # in the year 2286
        assert isinstance(fuse.ask(Op.GETATTR, node.id), KernelRequest)
        setattr(node.facts.stat, name, 0)
    node.facts.stat.size = 1 << 64
    assert isinstance(fuse.ask(Op.GETATTR, node.id), KernelRequest)


def ask_write(
    fuse: Kernel, node: Node, start: int, data: bytes, how: int = 0, flags: int = 0
) -> tuple[int, bytes] | KernelRequest:
    body = kernel.WRITE_IN.pack(0, start, len(data), how, 0, flags, 0) + data
    return fuse.ask(Op.WRITE, node.id, body)


def ask_read(fuse: Kernel, node: Node, start: int, size: int) -> tuple[int, bytes] | KernelRequest:
    return fuse.ask(Op.READ, node.id, kernel.READ_IN.pack(0, start, size, 0, 0, 0, 0))


def test_data_of_a_new_file_are_written_and_read(fuse: Kernel) -> None:
    node = fuse.known()
    assert isinstance(ask_write(fuse, node, 0, b"a"), KernelRequest)
    assert isinstance(ask_read(fuse, node, 0, 10), KernelRequest)
    node.new = new = UnstoredFile(cuts=False, modified=1)
    before, stat = time.time_ns(), node.facts.stat
    assert ask_write(fuse, node, 2, b"abc") == (0, kernel.WRITE_OUT.pack(3, 0))
    assert (bytes(new.data), stat.size, new.modified) == (b"\0\0abc", 5, None)
    assert before <= stat.modified == stat.changed <= time.time_ns()
    assert ask_write(fuse, node, 0, b"xyz") == (0, kernel.WRITE_OUT.pack(3, 0))
    assert (bytes(new.data), stat.size) == (b"xyzbc", 5)
    for start, size, data in ((0, 3, b"xyz"), (3, 10, b"bc"), (5, 1, b""), (1 << 63, 1, b"")):
        assert ask_read(fuse, node, start, size) == (0, data)
    assert ask_write(fuse, node, NEW_MOST - 1, b"e")[0] == 0
    assert len(new.data) == NEW_MOST


def test_writes_to_a_new_file_that_python_must_answer_for(fuse: Kernel) -> None:
    new = UnstoredFile(cuts=False)
    node = fuse.known(new=new)
    for start in (NEW_MOST, (1 << 64) - 1):
        assert isinstance(ask_write(fuse, node, start, b"a"), KernelRequest)
    for how, flags in ((kernel.KILL_SUIDGID_AT_WRITE, 0), (0, os.O_APPEND)):
        assert isinstance(ask_write(fuse, node, 0, b"a", how, flags), KernelRequest)
    new.storing = asyncio.new_event_loop().create_future()
    assert isinstance(ask_write(fuse, node, 0, b"a"), KernelRequest)
    new.storing.get_loop().close()
    assert not new.data
    new.storing, held = None, memoryview(new.data)
    assert isinstance(ask_write(fuse, node, 0, b"a"), KernelRequest)
    held.release()
    assert ask_write(fuse, node, 0, b"a")[0] == 0


def test_closing_files_of_which_nothing_waits(fuse: Kernel) -> None:
    head: Any = (0.0, None)
    node, done = fuse.known(opens=2, fresh=True, head=head), (0, b"")
    assert fuse.ask(Op.FLUSH, node.id) == fuse.ask(Op.RELEASE, node.id) == done
    assert (node.opens, node.fresh, node.head) == (1, True, head)
    waiting = {"new": UnstoredFile(cuts=False), "writer": object.__new__(Writer), "hidden": b"a"}
    for name, value in waiting.items():
        before = getattr(node, name)
        setattr(node, name, value)
        assert isinstance(fuse.ask(Op.RELEASE, node.id), KernelRequest)
        if name != "hidden":
            assert isinstance(fuse.ask(Op.FLUSH, node.id), KernelRequest)
        setattr(node, name, before)
    assert fuse.ask(Op.RELEASE, node.id) == done
    assert (node.opens, node.fresh, node.head) == (0, False, None)
    assert isinstance(fuse.ask(Op.RELEASE, node.id), KernelRequest)


def test_operations_of_nobody(fuse: Kernel) -> None:
    for op in (39, 63, 64, 1 << 31):  # IOCTL, and such as there are none
        assert fuse.ask(op, 1) == (errno.ENOSYS, b"")


def test_long_requests_replies_and_the_end(fuse: Kernel) -> None:
    data = bytes(range(256)) * 400
    first = fuse.ask(Op.WRITE, 1, data)
    second = fuse.ask(Op.WRITE, 1, data[::-1])  # has a buffer of its own
    assert isinstance(first, KernelRequest) and isinstance(second, KernelRequest)
    assert (bytes(first.body), bytes(second.body)) == (data, data[::-1])
    fuse.device.reply(7, b"done")
    assert fuse.theirs.recv(100) == OUT.pack(OUT.size + 4, 0, 7) + b"done"
    fuse.theirs.close()
    with pytest.raises(OSError, match="Errno"):
        fuse.device.reply(7, b"")
    with pytest.raises(OSError, match="Errno"):
        fuse.device.next(0)
    with pytest.raises(ValueError, match="longest request"):
        _core.KernelDevice(0, 0, 100, 0, 0, 0.0, {}, KernelRequest)


# ---- the loop ------------------------------------------------------------------------------------


class Busy:
    """Has a request at any time; serves it, too."""

    others_ready = False

    def __init__(self, loop: MountLoop) -> None:
        self.loop, self.served, self.seen = loop, 0, list[str]()
        self.over = asyncio.Event()

    def next(self, _: int, /) -> object | None:
        if self.served == 10:
            raise OSError(errno.ENODEV, "unmounted")
        return self

    def take(self, _: object, /) -> None:
        self.served += 1
        if self.served == 3:
            self.loop.call_soon(self.seen.append, f"soon {self.served}")

    def end(self, _: OSError, /) -> None:
        self.loop.serve_no_more()
        self.loop.call_soon(self.seen.append, "end")
        self.loop.call_soon(self.over.set)


def test_what_is_scheduled_has_its_turn_while_requests_come() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MountLoop)
        busy = Busy(loop)
        loop.serve(busy, busy)
        await asyncio.wait_for(busy.over.wait(), 20)
        busy.served = 0
        loop.serve(busy, busy)
        await asyncio.sleep(0)
        assert busy.served  # between turns, too
        loop.serve_no_more()
        return busy.seen

    with asyncio.Runner(loop_factory=MountLoop) as runner:
        assert runner.run(work()) == ["soon 3", "end"]


def test_an_answer_goes_on_in_the_context_that_is_given() -> None:
    """Also in an empty one, which is false."""
    known, seen = ContextVar("known", default=False), list[bool]()
    answer = cast(Any, None)

    async def work() -> None:
        known.set(True)
        over = asyncio.Event()

        def go_on(_: Any) -> None:
            seen.append(known.get())
            over.set()

        loop = asyncio.get_running_loop()
        for context in (None, Context()):
            over.clear()
            loop.call_soon(_Resumption(go_on, answer), None, context=context)
            await asyncio.wait_for(over.wait(), 20)

    with asyncio.Runner(loop_factory=MountLoop) as runner:
        runner.run(work())
    assert seen == [True, False]


def test_an_answer_that_fails_is_reported_and_the_next_goes_on() -> None:
    reported, answer = list[object](), cast(Any, None)

    async def work() -> None:
        over = asyncio.Event()

        def fail(_: Any) -> None:
            raise ZeroDivisionError

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        for each in (fail, lambda _: over.set()):
            loop.call_soon(_Resumption(each, answer), None)
        await asyncio.wait_for(over.wait(), 20)

    with asyncio.Runner(loop_factory=MountLoop) as runner:
        runner.run(work())
    assert [type(each) for each in reported] == [ZeroDivisionError]


def test_an_answer_goes_on_when_its_data_come_or_nobody_sends_them() -> None:
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    target, session = socket.socketpair()
    for each in (theirs, ours, target, session):
        each.setblocking(False)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        waiting = list[asyncio.Future[bytes]]()

        async def wait(request: KernelRequest) -> bytes:
            waiting.append(loop.create_future())
            return await waiting[-1]

        def forget(_: KernelRequest) -> None:
            raise AssertionError

        loop.add_reader(session, lambda: waiting.pop(0).set_result(session.recv(100)))
        server = KernelServer(ours.fileno(), {Op.STATFS: wait}, forget, {}, 0.0)
        for unique in (1, 2):
            theirs.send(IN.pack(IN.size, Op.STATFS, unique, 1, 0, 0, 0, 0, 0))
        while len(waiting) < 2:
            await asyncio.sleep(0)
        target.send(b"abc")
        while len(waiting) == 2:
            await asyncio.sleep(0.001)
        waiting[0].cancel()
        server.stop()
        await server.serve()
        loop.remove_reader(session)

    with asyncio.Runner(loop_factory=MountLoop) as runner:
        runner.run(work())
    assert theirs.recv(100) == OUT.pack(OUT.size + 3, 0, 1) + b"abc"
    assert theirs.recv(100) == OUT.pack(OUT.size, -errno.EIO, 2)
    for each in (theirs, ours, target, session):
        each.close()


def test_a_file_that_cannot_be_closed_keeps_no_other_from_it(fuse: Kernel) -> None:
    class Refusing(Mounted):
        def __init__(self, nodes: NodeTable) -> None:
            self.nodes, self.closed = nodes, list[Node]()

        async def close(self, node: Node) -> None:
            self.closed.append(node)
            raise ValueError("an answer that makes no sense")

    fuse.nodes.root.opens = fuse.known(opens=3).opens
    mounted = Refusing(fuse.nodes)
    asyncio.run(close_all(mounted))
    assert [node.opens for node in mounted.closed] == [1, 1]


class Full:
    """A session with a target that has no room."""

    fs = None

    async def carry(self, dialogue: object) -> object:
        raise errors.NoSpace(7, 0x55, 7, "no room")


@pytest.mark.parametrize("at_the_end", [False, True])
def test_data_that_fail_behind_the_last_flush_are_logged(
    caplog: pytest.LogCaptureFixture, at_the_end: bool
) -> None:
    """Pages of a mapping come after close(2): several WRITEs, of which the first fails."""

    async def work() -> None:
        session = PatientSession(cast(Any, Full()), 1.0)
        mounted = Mounted(session, ref(65536), Defaults(0, 0), CacheTimes())
        facts, root = Facts(Stat(0o100644), xattrs=b""), mounted.nodes.root
        node = mounted.nodes.found(
            root, b"a", ref(65536, 65537), is_directory=False, facts=facts, since=0
        )
        mounted.nodes.inode(node)
        node.opens = 2
        files = FileOperations(mounted)
        for start in (0, 4096):
            body = kernel.WRITE_IN.pack(0, start, 1, kernel.WRITE_CACHE, 0, 0, 0) + b"a"
            request = KernelRequest(Op.WRITE, 1, node.id, 0, 0, memoryview(body), 0)
            assert await files.write(request) == kernel.WRITE_OUT.pack(1, 0)
            assert node.writer
            await node.writer.drain()
        await mounted.close(node)
        assert not caplog.messages  # the other close() can report it
        await (close_all(mounted) if at_the_end else mounted.close(node))
        assert node.writer is None and not node.opens

    asyncio.run(work())
    assert caplog.messages == ["data of file 0x10000/0x10001 are lost: no room"]


def test_no_directory_is_below_itself() -> None:
    """Others have moved directories, or the target is wrong: the way to each has an end."""
    facts = Facts(Stat(0o40755))
    nodes = NodeTable(ref(65536, 65536), facts)

    def found(parent: Node, name: bytes, obj: int) -> Node:
        place = ref(65536, obj)
        return nodes.found(parent, name, place, is_directory=True, facts=facts, since=0)

    outer = found(nodes.root, b"outer", 65537)
    inner = found(outer, b"inner", 65538)
    for obj in (65536, 65537, 65538):
        with pytest.raises(WithErrno) as caught:
            found(inner, b"loop", obj)
        assert caught.value.number == errno.ELOOP
    assert nodes.anchor(inner) == (ref(65536, 65536), [b"outer", b"inner"])
    assert found(nodes.root, b"inner", 65538) is inner
    assert found(inner, b"outer", 65537) is outer
    assert nodes.anchor(outer) == (ref(65536, 65536), [b"inner", b"outer"])
